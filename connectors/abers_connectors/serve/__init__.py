"""`abers serve`: predictions and labels over HTTP, on a durable processor, without Kafka."""

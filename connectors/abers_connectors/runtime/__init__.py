"""The exactly-once runtime, independent of the Kafka client."""

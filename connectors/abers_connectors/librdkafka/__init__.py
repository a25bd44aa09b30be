"""The transport of librdkafka, by confluent-kafka."""

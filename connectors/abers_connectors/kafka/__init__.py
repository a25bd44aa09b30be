"""The Kafka service: exactly once, whatever dies."""

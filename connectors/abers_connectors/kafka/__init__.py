"""Kafka: the client behind the runtime's transport, topics and the service."""

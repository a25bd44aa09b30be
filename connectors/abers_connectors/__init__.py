"""Connectors of abers: files, Apache Kafka, dashboards, metrics and the command line."""

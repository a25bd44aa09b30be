"""Metrics and traces of a service for OpenTelemetry, by OTLP over HTTP."""

"""Sinks: rows to files, standard output, memory and webhooks."""

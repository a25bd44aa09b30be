"""Kafka: the service, and what it stands on.

Governing rule: what was read, what it did to the state, and what came of it are
one transaction; memory is valid only while commits succeed.
"""

"""Record fields to columns of events."""

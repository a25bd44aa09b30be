"""Record formats with schemas in a schema registry."""

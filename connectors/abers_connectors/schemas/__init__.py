"""Record formats whose schemas are in a schema registry."""

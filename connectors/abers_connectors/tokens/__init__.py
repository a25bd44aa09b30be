"""Bearer tokens: where they come from, and their renewal."""

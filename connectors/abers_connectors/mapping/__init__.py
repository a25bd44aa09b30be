"""Records to raw columns, and the checks before that."""

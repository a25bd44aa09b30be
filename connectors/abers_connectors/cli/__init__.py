"""The `abers` command."""

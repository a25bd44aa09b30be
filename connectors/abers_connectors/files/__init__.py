"""File names, formats, compression and identity."""

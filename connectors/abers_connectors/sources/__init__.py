"""Sources: files, data sets and URLs to batches of events."""

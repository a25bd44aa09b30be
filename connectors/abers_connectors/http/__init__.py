"""Parts of the HTTP server: connections, limits, host names and tokens."""

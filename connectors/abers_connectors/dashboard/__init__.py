"""The dashboard: the live page, and the report, which is the live page frozen."""

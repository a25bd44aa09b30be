"""The configuration of a stream processor: sections, layers, rules and errors."""

"""Connections of abers to the world: files, brokers and the command line."""

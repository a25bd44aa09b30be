"""Replays of historical streams: from the options of the command to the run."""

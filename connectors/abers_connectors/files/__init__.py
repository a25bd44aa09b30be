"""Files: a stream read from one, predictions written to one."""

from __future__ import annotations

from abers_connectors.files.sink import JsonLines, opened
from abers_connectors.files.source import FileSource, GivenScores

__all__ = ["FileSource", "GivenScores", "JsonLines", "opened"]

"""Files: streams read from them, predictions written to them."""

from __future__ import annotations

from abers_connectors.files.reading import open_source
from abers_connectors.files.writing import open_sink

__all__ = ["open_sink", "open_source"]

"""What came of a replay, as a page or as numbers."""

from __future__ import annotations

from abers_connectors.report.reporter import Reporter, require_name

__all__ = ["Reporter", "require_name"]

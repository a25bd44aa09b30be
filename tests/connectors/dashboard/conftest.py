"""Fixtures of the tests of report and live page."""

from tests.connectors.dashboard.pages import url, worked
from tests.connectors.dashboard.replays import replayed, replays

__all__ = ["replayed", "replays", "url", "worked"]

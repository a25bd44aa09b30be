"""Fixtures of the tests of pages."""

from tests.browsing import browser

__all__ = ["browser"]

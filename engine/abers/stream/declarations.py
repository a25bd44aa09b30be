"""Declarations of options of the usual kinds: spans of time, counts and shares."""

from __future__ import annotations

from typing import Any

from abers.stream.option import Option

__all__ = ["LARGEST_TIME", "MAX_COUNT", "count", "share", "span"]

LARGEST_TIME = 1 << 53  # whole numbers below are exact as doubles, and in every JSON reader
MAX_COUNT = (1 << 31) - 1
"""The largest count: the processor numbers what it keeps with 32 bits."""


def span(key: str, sentence: str, more: str = "", least: int = 0, **rest: Any) -> Option:  # noqa: ANN401 - see `Option`
    """Return the declaration of a span of time, in milliseconds."""
    return Option(key, sentence, more, unit="ms", least=least, most=LARGEST_TIME, **rest)


def count(key: str, sentence: str, more: str = "", least: int = 1, **rest: Any) -> Option:  # noqa: ANN401 - likewise
    """Return the declaration of a number of things."""
    return Option(key, sentence, more, least=least, most=MAX_COUNT, **rest)


def share(key: str, sentence: str, more: str = "", **rest: Any) -> Option:  # noqa: ANN401 - likewise
    """Return the declaration of a number between 0 and 1, without the ends."""
    return Option(key, sentence, more, least=0.0, most=1.0, inner=True, **rest)

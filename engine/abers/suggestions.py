"""Suggestions for a misspelled name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["closest", "did_you_mean"]

_CUTOFF = 0.75  # with a lower value, two files are close because both end in .csv


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the closest known name, whatever its case, or None.

    Examples
    --------
    >>> closest("feilds", ["format", "fields"])
    'fields'
    """
    by_case = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), by_case, n=1, cutoff=_CUTOFF)
    return by_case[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message that asks for the closest known name, or the empty string.

    Examples
    --------
    >>> did_you_mean("phising", ["Bananas", "Phishing"])
    '; did you mean Phishing?'
    >>> did_you_mean("xyz", ["Bananas", "Phishing"])
    ''
    """
    close = closest(word, known)
    return f"; did you mean {close}?" if close else ""

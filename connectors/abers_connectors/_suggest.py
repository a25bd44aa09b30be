"""Suggestions for a name that is not known.

Governing rule: a message about an unknown name asks, if a known one is close,
whether that was meant.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["closest", "did_you_mean"]

_CUTOFF = 0.75  # lower, and two files seem close because both end in .csv


def closest(word: str, known: Iterable[str]) -> str | None:
    """Find the closest known name, whatever its case.

    Parameters
    ----------
    word
        The name that is not known.
    known
        The names that are.

    Returns
    -------
    str or None
        The name, or None if none is close.

    Examples
    --------
    >>> closest("feilds", ["format", "fields"])
    'fields'
    """
    by_case = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), by_case, n=1, cutoff=_CUTOFF)
    return by_case[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Ask for the closest known name, whatever its case, or say nothing.

    Parameters
    ----------
    word
        The name that is not known.
    known
        The names that are.

    Returns
    -------
    str
        The question with a leading semicolon, or the empty string.

    Examples
    --------
    >>> did_you_mean("phising", ["Bananas", "Phishing"])
    '; did you mean Phishing?'
    >>> did_you_mean("xyz", ["Bananas", "Phishing"])
    ''
    """
    close = closest(word, known)
    return f"; did you mean {close}?" if close else ""

"""Suggestions for a misspelled file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.suggestions import did_you_mean
from abers_connectors.regular_files import irregular

if TYPE_CHECKING:
    from pathlib import Path

<<<<<<< HEAD
__all__ = ["no_such_file"]
=======
__all__ = ["closest", "did_you_mean", "no_such_file"]

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
>>>>>>> words


def no_such_file(path: Path) -> str:
    """Describe why there is no file at a path, with the closest name in its directory."""
    if what := irregular(path):  # a link to a missing file
        return what
    beside = path.parent.iterdir() if path.parent.is_dir() else []
    return f"no such file{did_you_mean(path.name, [one.name for one in beside])}"

"""The nine sets of Vovk & Petej, with the encodings that their results fit best.

A feature is a column of numbers, NaN where it is missing; a nominal one holds the
places of its words in alphabetical order, and says how many there are.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.papers.manifest import read

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["SETS", "Encoded", "encoded"]


class _Set(NamedTuple):
    file: str
    positive: str  # the target that is label 1
    as_numbers: bool = False  # nominal features are coded as numbers
    pairs: bool = False  # features of two numbers are nominal
    dropped: tuple[str, ...] = ()


SETS = {
    "Australian": _Set("australian", "1", as_numbers=True),
    "Breast": _Set("breast_cancer_ljubljana", "recurrence-events", as_numbers=True),
    "Diabetes": _Set("pima_diabetes", "tested_positive"),
    "Echo": _Set(
        "echocardiogram_labelled", "1", dropped=("survival", "still_alive", "mult", "group")
    ),
    "Hepatitis": _Set("hepatitis", "LIVE", pairs=True),
    "Ionosphere": _Set("ionosphere", "g"),
    "Labor": _Set("labor", "good"),
    "Liver": _Set("liver_bupa", "1"),
    "Vote": _Set("vote", "republican"),
}


class Encoded(NamedTuple):
    """Features, their numbers of levels (0: a number), and labels."""

    features: NDArray[np.float64]
    levels: tuple[int, ...]
    labels: NDArray[np.uint8]


@cache
def encoded(folder: Path, name: str) -> Encoded:
    """Read a set and encode it."""
    what = SETS[name]
    names, columns, target = read(folder, what.file)
    chosen = [c for n, c in zip(names, columns, strict=True) if n not in what.dropped]
    coded = [_coded(column, what) for column in chosen]
    labels = np.array([label == what.positive for label in target], np.uint8)
    return Encoded(np.column_stack([c for c, _ in coded]), tuple(n for _, n in coded), labels)


def _coded(column: list[str], what: _Set) -> tuple[NDArray[np.float64], int]:
    levels = sorted({word for word in column if word})
    numeric = all(_is_number(word) for word in levels)
    if numeric and not (what.pairs and len(levels) <= 2):  # noqa: PLR2004 - a pair
        return np.array([float(word or "nan") for word in column]), 0
    places = {word: float(place) for place, word in enumerate(levels)} | {"": np.nan}
    return np.array([places[word] for word in column]), 0 if what.as_numbers else len(levels)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True

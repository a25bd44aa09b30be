"""Data sets as matrices: numbers as they are, words by an indicator for each.

A row with a gap is left out, and so is a column that the paper's note names.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.papers.manifest import MANIFEST, read

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["labelled", "matrix"]

_WIDE = 100  # features


@cache
def matrix(folder: Path, name: str, dropped: tuple[str, ...] = ()) -> tuple[Floats, Floats]:
    """Read features of shape (n, p) and targets of shape (n,)."""
    table = read(folder, name)
    whole = [all(row) for row in zip(*table.columns, table.target, strict=True)]
    parts = [
        _numbers([word for word, good in zip(column, whole, strict=True) if good])
        for title, column in zip(table.names, table.columns, strict=True)
        if title not in dropped
    ]
    target = [float(word) for word, good in zip(table.target, whole, strict=True) if good]
    return np.hstack(parts), np.array(target)


def _numbers(column: list[str]) -> Floats:
    try:
        return np.array([[float(word)] for word in column])
    except ValueError:
        words = sorted(set(column))
        return np.array([[float(word == level) for level in words[1:]] for word in column])


@cache
def labelled(folder: Path, name: str) -> tuple[Floats, Integers]:
    """Read numbers of shape (n, p) and classes of shape (n,), numbered in alphabetical order."""
    path = folder / MANIFEST[name].file
    if MANIFEST[name].features > _WIDE:  # too many words to keep
        rows = np.loadtxt(path, np.uint8, delimiter=",", skiprows=1)
        return rows[:, :-1].astype(np.float64), rows[:, -1].astype(np.int64)
    table = read(folder, name)
    levels = {word: number for number, word in enumerate(sorted(set(table.target)))}
    features = np.array(table.columns, np.float64).T
    return features, np.array([levels[word] for word in table.target], np.int64)

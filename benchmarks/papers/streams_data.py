"""The streams: two classes, several classes, or numbers, in the order of their files.

What is done to a row uses that row and those before it, never later ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from river import datasets

from benchmarks.papers.tabular import labelled, matrix

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["RECENT", "SETS", "Numbers", "numbers", "several", "standardised", "two"]

SETS = {
    "Elec2": "elec2",
    "Bike sharing": "bike_sharing_hour",
    "Insects": "insects_gradual_balanced",
    "Phishing": "phishing_websites46",
    "Banana": "banana",
    "MNIST": "mnist",
}
RECENT = 1_000  # labels: windows and half-lives
_PIXEL = 255.0
_NOT_KNOWN = ("instant", "dteday", "casual", "registered")  # numbers of rows, parts of the label
_MEDIAN = 142.0  # bicycles an hour


def two(folder: Path, data: str) -> tuple[Floats, Integers]:
    """Read a stream of two classes: its features, on one scale, and which labels are 1."""
    if data == "Bike sharing":
        x, bikes = matrix(folder, SETS[data], _NOT_KNOWN)
        return standardised(x), (bikes > _MEDIAN).astype(np.int64)
    x, y = several(folder, data)
    if data == "MNIST":
        y = y % 2
    if data == "Insects":
        y = (y == np.max(y)).astype(np.int64)
    return x, y


def several(folder: Path, data: str) -> tuple[Floats, Integers]:
    """Read a stream of classes: its features, on one scale, and the numbers of the classes."""
    x, y = labelled(folder, SETS[data])
    return (x / _PIXEL if data == "MNIST" else standardised(x)), y


def standardised(x: Floats) -> Floats:
    """Put each row on the scale of the rows up to it."""
    count = np.arange(1, len(x) + 1)[:, np.newaxis]
    mean = x.cumsum(axis=0) / count
    spread = np.sqrt(np.maximum((x**2).cumsum(axis=0) / count - mean**2, 0.0))
    return (x - mean) / np.where(spread > 1e-9 * np.abs(mean), spread, 1.0)


class Numbers(NamedTuple):
    """A stream of numbers: its features and labels, and between what they must lie."""

    x: Floats
    y: Floats
    support: tuple[float, float]


def numbers(folder: Path, data: str) -> Numbers:
    """Read a stream of numbers."""
    if data == "Bike sharing":
        return Numbers(*matrix(folder, SETS[data], _NOT_KNOWN), (0.0, 1_000.0))
    kinds: dict[str, tuple[Any, float]] = {
        "Trump approval": (datasets.TrumpApproval, 100.0),
        "Chick weights": (datasets.ChickWeights, 400.0),
    }
    kind, high = kinds[data]
    rows = [([float(value) for value in x.values()], float(y)) for x, y in kind()]
    return Numbers(np.array([x for x, _ in rows]), np.array([y for _, y in rows]), (0.0, high))

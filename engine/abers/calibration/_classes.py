"""The classes that a calibrator knows, and their scores.

A class is known from its first score or label on, in the order of appearance, and keeps its number.
A class that is missing from a dict of scores has score 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from abers import validation
from abers.arrays import unmasked
from abers.exceptions import InputError, LabelError, ParameterError, ScoreError
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from abers.arrays import Floats, Integers

__all__ = ["ClassScores", "Classes", "Label"]

Label: TypeAlias = str | int | bool
ClassScores: TypeAlias = "Mapping[Any, float]"  # by label: a mapping is invariant in its keys
_FEWEST = 2  # classes that make a choice


class Classes:
    """At most `most` labels, numbered from 0: all those given, or None for any to come."""

    def __init__(self, given: Iterable[Label] | None, most: int) -> None:
        self.most = validation.count(most, "max_classes", _FEWEST)
        self.closed = given is not None
        self.numbers: dict[Label, int] = {}
        if given is None:
            return
        if isinstance(given, str | bytes | Mapping):
            msg = f"classes={shown(given)} must be a list of labels"
            raise ParameterError(msg)
        labels = [label(each) for each in given]
        if not _FEWEST <= len(labels) <= self.most or len({*labels}) < len(labels):
            msg = f"classes={shown(labels)} are not 2 to {self.most} different labels"
            raise ParameterError(msg)
        self.add(labels)

    @classmethod
    def known(cls, labels: list[Label], most: int, *, closed: bool) -> Classes:
        """Restore classes from their labels."""
        if closed:
            return cls(labels, most)
        classes = cls(None, most)
        classes.add(classes.unknown(map(label, labels)))
        return classes

    def __len__(self) -> int:
        """Count the classes."""
        return len(self.numbers)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The classes in the order of their numbers."""
        return tuple(self.numbers)

    def add(self, labels: Iterable[Label]) -> None:
        """Add labels that `unknown` returned."""
        for each in labels:
            self.numbers[each] = len(self.numbers)

    def unknown(self, labels: Iterable[Label]) -> list[Label]:
        """Return the labels that have no number yet, or raise a LabelError for them."""
        new = [*dict.fromkeys(each for each in labels if each not in self.numbers)]
        if new and self.closed:
            msg = f"class {shown(new[0])} is not among classes={shown([*self.numbers])}"
            raise LabelError(msg)
        if len(self) + len(new) > self.most:
            msg = (
                f"class {shown(new[self.most - len(self)])} would be one more than "
                f"max_classes={self.most}; raise it, or map rare labels to one"
            )
            raise LabelError(msg)
        return new

    def index(self, labels: ArrayLike, length: int) -> Integers:
        """Return the numbers of an array of labels of known classes."""
        given = unmasked(labels)
        column = given if isinstance(given, np.ndarray) else np.array(given, dtype=object)
        if column.shape != (length,):
            msg = f"labels is of shape {column.shape}, not ({length},), one for each row of scores"
            raise ParameterError(msg)
        if column.dtype.kind in "biuU":  # one look-up a class, not one a row
            different, row, back = np.unique(column, return_index=True, return_inverse=True)
            first = sorted(zip(row.tolist(), different, strict=True))
            found = {each: self._number(at, each) for at, each in first}
            return np.array([found[each] for each in different], np.int64)[back]
        return np.fromiter(map(self._number, range(length), column), np.int64, length)

    def _number(self, row: int, given: object) -> int:
        named = validation.at(f"row {row}", label, given)
        if named not in self.numbers:
            msg = f"row {row}: class {shown(named)} is not among classes={shown([*self.numbers])}"
            raise LabelError(msg)
        return self.numbers[named]


def label(given: object) -> Label:
    """Check one label: a string, a whole number, or a truth value (True is 1, as in Python)."""
    if isinstance(given, np.generic):
        given = given.item()
    if not isinstance(given, str | int):
        msg = f"label {shown(given)} must be a string, a whole number or a truth value"
        raise LabelError(msg)
    return given


def mapping(given: ClassScores, smallest: float) -> dict[Label, float]:
    """Check the scores of one observation, by class: finite and not below `smallest`."""
    if not isinstance(given, Mapping):
        msg = f"scores {shown(given)} must be a dict from class to score"
        raise ScoreError(msg)
    return {label(each): _score(each, score, smallest) for each, score in given.items()}


def _score(named: Label, given: object, smallest: float) -> float:
    try:
        score = validation.score(given)
    except InputError as error:
        msg = f"class {shown(named)}: {error}"
        raise ScoreError(msg) from None
    if score < smallest:
        msg = (
            f"class {shown(named)}: score {score!r} is negative; give probabilities, or one-vs-rest"
        )
        raise ScoreError(msg)
    return score


def table(given: ArrayLike, classes: Classes, smallest: float) -> Floats:
    """Check scores with a row for each observation; return them with a row for each class."""
    if not len(classes):
        msg = "arrays of scores need classes: give them when the calibrator is made"
        raise ParameterError(msg)
    array = _two_dimensional(given)
    if array.shape[1] != len(classes):
        msg = (
            f"scores are of shape {array.shape}; give a column for each of the {len(classes)} "
            f"classes {shown([*classes.labels])}"
        )
        raise ParameterError(msg)
    bad = np.argwhere(~(np.isfinite(array) & (array >= smallest)))
    if len(bad):
        row, column = bad[0].tolist()
        score = float(array[row, column])
        validation.at(f"row {row}", _score, classes.labels[column], score, smallest)
    return np.ascontiguousarray(array.T)


def _two_dimensional(given: ArrayLike) -> Floats:
    array = validation.array(given, "scores must be of shape (n, number of classes)")
    if array.ndim != _FEWEST or array.dtype.kind not in "fiub":
        msg = (
            f"scores are {array.dtype} of shape {array.shape}; "
            "give numbers of shape (n, number of classes)"
        )
        raise ParameterError(msg)
    numbers: Floats = array.astype(np.float64)
    return numbers + 0.0  # -0.0 becomes 0.0

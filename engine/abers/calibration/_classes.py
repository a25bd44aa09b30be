"""The classes that a calibrator knows: their labels, scores and probabilities, and their checks.

A class is known from its first score or label on, in the order of appearance, and keeps its number.
A class that is missing from a dict of scores has score 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from abers import validation
from abers.arrays import unmasked
from abers.exceptions import InputError, LabelError, ParameterError, ScoreError
from abers.mathematics import LEARN
from abers.validation import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Bytes, Floats, Integers

__all__ = ["ClassLabels", "ClassProbabilities", "ClassScores", "Classes", "Label"]

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
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            msg = f"classes={shown(given)} must be a list of labels"
            raise ParameterError(msg)
        labels = [checked_label(each) for each in given]
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
        classes.add(classes.unknown(map(checked_label, labels)))
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
        named = validation.at(f"row {row}", checked_label, given)
        if named not in self.numbers:
            msg = f"row {row}: class {shown(named)} is not among classes={shown([*self.numbers])}"
            raise LabelError(msg)
        return self.numbers[named]


def checked_label(given: object) -> Label:
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
    return {checked_label(each): _score(each, score, smallest) for each, score in given.items()}


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
    array = _two_dimensional(_by_name(given, classes))
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


def _by_name(given: Any, classes: Classes) -> Any:
    """Return scores, in the order of the classes if columns of a frame have their names."""
    names = getattr(given, "column_names", getattr(given, "columns", ()))
    listed = [*names] if isinstance(names, Iterable) else []
    labels = [*classes.labels]
    named = all(isinstance(one, str) for one in listed) and {*listed} == {*labels}
    if not named or len(listed) != len(labels):
        return given
    return given.select(labels) if hasattr(given, "column_names") else given[labels]


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


class ClassLabels:
    """Labels that are classes; arrays of steps have their numbers."""

    _classes: Classes

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes known, in the order of their columns."""
        return self._classes.labels

    @property
    def max_classes(self) -> int:
        """The greatest number of classes."""
        return self._classes.most

    def _labels(self, labels: ArrayLike, length: int) -> Integers:
        return self._classes.index(labels, length)

    def _step_labels(self, labels: ArrayLike, kinds: Bytes) -> Integers:
        """Check the labels of steps, which are numbers of classes."""
        column = np.asarray(unmasked(labels))
        if column.shape != kinds.shape:
            msg = f"labels is of shape {column.shape}, not {kinds.shape}, one for each row"
            raise ParameterError(msg)
        learned = kinds == LEARN
        numbers = range(len(self._classes))
        if column.dtype.kind in "iubf":
            known = np.isin(column[learned], numbers)
        else:
            known = np.array([one in numbers for one in column[learned].tolist()], bool)
        if not known.all():
            row = int(np.flatnonzero(learned)[int(np.argmin(known))])
            raise LabelError(self._unnumbered(row, column[row : row + 1].tolist()[0]))
        return np.where(learned, column, 0).astype(np.int64)

    def _unnumbered(self, row: int, label: object) -> str:
        """Return what is wrong with the label of a step, and what to do instead."""
        wrong = f"row {row}: label {shown(label)} is not the number of a class"
        return (
            f"{wrong}, 0 to {len(self._classes) - 1}; run takes numbers, for classes by name "
            "calibrator.classes.index(name); learn_many and prequential take the classes"
        )


_ROUNDING = 0.02  # probabilities that were written with few digits; streams refuse at half of it
_NO_PROBABILITIES = "not probabilities that sum to 1; divide the scores by their sum"


class ClassProbabilities(ClassLabels):
    """A mixin of calibrators: scores are probabilities of all classes, and labels are classes."""

    def _score(self, score: Any) -> Floats:
        checked = mapping(score, 0.0)
        self._classes.unknown(checked)
        row = np.array([checked.get(each, 0.0) for each in self.classes])
        if not _are_probabilities(row):
            msg = f"scores {shown(checked)} are {_NO_PROBABILITIES}"
            raise ScoreError(msg)
        return row

    def _scores(self, scores: ArrayLike) -> Floats:
        found = table(scores, self._classes, 0.0)
        bad = np.flatnonzero(~_are_probabilities(found))
        if bad.size:
            msg = f"row {bad[0]}: scores {shown(found[:, bad[0]].tolist())} are {_NO_PROBABILITIES}"
            raise ScoreError(msg)
        return found

    def _label(self, label: object) -> int:
        named = checked_label(label)
        self._classes.unknown([named])
        return self._classes.numbers[named]


def _are_probabilities(scores: Floats) -> Any:
    """Return whether scores that are not negative sum to 1, as far as digits go."""
    with np.errstate(over="ignore"):  # an infinite sum is not 1
        return np.abs(np.asarray(sum(scores)) - 1.0) <= _ROUNDING

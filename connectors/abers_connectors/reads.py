"""How the scores and labels of each task are read.

Governing rule: a task is told from another by what its values look like in a
record, and here is all that readers know of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from abers_connectors import values

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["Reads", "binary", "cross", "multiclass", "regression"]


class Reads(NamedTuple):
    """How the scores and labels of a task are read.

    Parameters
    ----------
    label, score
        Each reads one value, or raises a BadRecordError.
    type
        Of a score, in JSON.
    """

    label: Callable[[Any], Any]
    score: Callable[[Any], Any]
    type: Any


def binary(positive: Collection[object] = ()) -> Reads:
    """Tell how the scores and labels of a binary task are read; see `values.label_reader`."""
    return Reads(values.label_reader(positive), values.score, float)


def cross(positive: Collection[object] = ()) -> Reads:
    """Tell how those of a binary task are read if several learners may give a score each."""
    reader = values.label_reader(positive)
    return Reads(reader, values.fold_scores, float | list[float])


def multiclass(classes: Collection[str]) -> Reads:
    """Tell how those of several classes are read; see `values.class_reader`."""
    return Reads(values.class_reader(classes), values.scores, dict[str, float])


def regression() -> Reads:
    """Tell how those of a regression task are read."""
    return Reads(values.number, values.score, float)

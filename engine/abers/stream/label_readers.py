"""Readers of labels that are one of two or of several classes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.stream.cells import BadRecordError, plain
from abers.stream.option import SET, Option, Ref
from abers.stream.readers import RepeatedReader, number, shown

if TYPE_CHECKING:
    from collections.abc import Collection

    from abers.stream.column_types import Column
    from abers.stream.option import Part

__all__ = ["ClassReader", "LabelReader"]

_BOOLEANS = {"true": "1", "false": "0"}
# A configuration has a section for these, which declares more of them.
_POSITIVE = Ref(Option("input.pos_label", flag="--positive", name="positive"))
_TASK = Ref(Option("task.kind", flag="--task", name="task"), "regression")
_CLASSES = Ref(Option("task.classes", flag="--score", name="classes"))
_NAME_ONES = (", or name the values that mean 1 in ", _POSITIVE)
_IF_NUMBERS = ("; for labels that are numbers, ", SET, _TASK)
_UNKNOWN = frozenset(["na", "n/a", "#n/a", "<na>", "nan", "null"])  # what programs write for none


class LabelReader(RepeatedReader):
    """Reads a binary label as 0 or 1.

    Parameters
    ----------
    positive
        Values that mean 1; every other value then means 0, but for "NA", "NaN" and "null", which
        mean no label unless they are named. Without any, labels are 0 and 1, or false and true. The
        number 1, the string "1" and "true" in any case are equal.

    Examples
    --------
    >>> read = LabelReader(["fraud", 1]).one
    >>> read("fraud"), read("1"), read(True), read("genuine")
    (1, 1, 1, 0)
    """

    def __init__(self, positive: Collection[object] = ()) -> None:
        self._named = bool(positive)
        self._ones = frozenset(_form(value) for value in positive) or frozenset("1")

    def one(self, cell: Any) -> int:  # noqa: ANN401
        """Return the label, or raise a BadRecordError."""
        form = _form(cell)
        if form in self._ones:
            return 1
        if form is not None and form.lower() in _UNKNOWN:
            detail = f"{shown(plain(cell))} is not a label; leave it empty until the label is known"
            raise BadRecordError("bad-label", detail)
        if form == "0" or (self._named and form is not None):
            return 0
        allowed = "a string, a number or a boolean" if self._named else "0 or 1, or false or true"
        text: list[Part] = [f"{shown(plain(cell))} is not a label; write {allowed}"]
        if not self._named:
            text += [*_NAME_ONES, *(_IF_NUMBERS if math.isfinite(number(cell)) else ())]
        raise BadRecordError("bad-label", *text)

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        del kind
        if self._named or cells.dtype == object or not ((cells == 0) | (cells == 1)).all():
            return None
        return cells.astype(np.int64, copy=False)


class ClassReader(RepeatedReader):
    """Reads the label of a multi-class task as the name of a class.

    The number 1, the string "1" and "true" in any case are equal, unless they name different
    classes.

    Examples
    --------
    >>> read = ClassReader(["cat", "7"]).one
    >>> read("cat"), read(7), read("7.0")
    ('cat', '7', '7')
    """

    def __init__(self, classes: Collection[str]) -> None:
        self._classes = classes
        self._forms = {_form(name): name for name in classes} | {name: name for name in classes}

    def one(self, cell: Any) -> str:  # noqa: ANN401
        """Return the class, or raise a BadRecordError."""
        cell = plain(cell)
        is_name = type(cell) is str and cell in self._forms
        found = self._forms.get(cell if is_name else _form(cell))
        if found is None:
            detail = f"{shown(cell)} is not among the classes {shown(list(self._classes))}"
            raise BadRecordError("bad-label", f"{detail}; add it to ", _CLASSES, ", or fix it")
        return found


def _form(given: Any) -> str | None:  # noqa: ANN401
    """Return the canonical form of a label, equal for equal meanings; None for no label."""
    cell: Any = plain(given)
    if type(cell) is str:
        cell = cell.strip()
        found = number(cell)
        if not math.isfinite(found):
            text: str = cell
            return _BOOLEANS.get(text.lower(), text)
        cell = found
    if type(cell) is bool:
        return "1" if cell else "0"
    if type(cell) in {int, float}:
        try:
            return str(int(cell) if cell == int(cell) else cell)
        except (ValueError, OverflowError):  # infinite, or thousands of digits
            return None
    return None

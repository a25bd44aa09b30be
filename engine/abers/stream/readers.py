"""Readers of the cells of a field: ids, names, scores, labels and features.

`CellReader.one` is the meaning of a cell. A text that parses as the value is the value, so that
CSV, JSON and Parquet accept the same records. Everything else raises a BadRecordError that says
what is accepted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from itertools import chain
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from abers.stream.cells import PLAIN, BadRecordError, Refused, plain
from abers.stream.column_types import Column, column, kind_of, numbers, objects, repeated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from numpy.typing import NDArray

__all__ = [
    "CellReader",
    "ClassReader",
    "ClassScoresReader",
    "ExtraReader",
    "FeaturesReader",
    "FoldScoresReader",
    "IdReader",
    "LabelReader",
    "NameReader",
    "NumberReader",
    "PlainReader",
    "ScoreReader",
    "number",
    "shown",
    "text_numbers",
]

_INT_BOUND = 2**63
_MAX_SHOWN_CHARACTERS = 60  # of a value in a message
_BOOLEANS = {"true": "1", "false": "0"}


class CellReader(ABC):
    """Reads the cells of a field, none of which is None or ""."""

    @abstractmethod
    def one(self, cell: Any) -> Any:  # noqa: ANN401 - whatever a column holds
        """Return the value of a cell, or raise a BadRecordError."""

    def many(self, cells: Column) -> tuple[Column, list[Refused]]:
        """Return what `one` returns of each cell, and the rows that it refuses.

        A refused cell stays as it is.
        """
        cells, kind = _uniform(cells)
        found = self._whole(cells, kind)
        return self._each(cells) if found is None else (found, [])

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        """Return the values of a column at once; None if a cell needs a closer look.

        The cells are an array of numbers, or objects, all of one kind unless that is None.
        """
        del cells, kind
        return None

    def _each(self, cells: Column) -> tuple[Column, list[Refused]]:
        values, refused = [], []
        for row, cell in enumerate(_listed(cells)):
            try:
                values.append(self.one(cell))
            except BadRecordError as error:
                refused.append(Refused(row, error.reason, error.detail))
                values.append(cell)
        return column(values), refused


class RepeatedReader(CellReader):
    """Reads cells of which many are equal: each different one is read once."""

    def many(self, cells: Column) -> tuple[Column, list[Refused]]:
        """Return what `one` returns of each cell, and the rows that it refuses."""
        cells, kind = _uniform(cells)
        if (found := self._whole(cells, kind)) is not None:
            return found, []
        if kind not in {str, int} and cells.dtype.kind not in "bi":
            return self._each(cells)
        given = cells.tolist()
        try:
            known = {cell: self.one(cell) for cell in dict.fromkeys(given)}
        except BadRecordError:
            return self._each(cells)
        return column([*map(known.__getitem__, given)]), []


class IdReader(CellReader):
    """Reads an id: a string, or an integer, which becomes its digits.

    Examples
    --------
    >>> IdReader().one("a1"), IdReader().one(17)
    ('a1', '17')
    """

    def __init__(self, name: str = "id", reason: str = "bad-id") -> None:
        self._name, self._reason = name, reason

    def one(self, cell: Any) -> str:  # noqa: ANN401
        """Return the id, or raise a BadRecordError."""
        if type(cell) is str:
            return cell
        cell = plain(cell)
        if isinstance(cell, str | UUID):
            return str(cell)
        if type(cell) is int:
            try:
                return str(cell)
            except ValueError:  # thousands of digits
                pass
        detail = f"{shown(cell)} is not a valid {self._name}; write a string or a whole number"
        raise BadRecordError(self._reason, detail)

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        if cells.dtype == np.int64:
            return objects([*map(str, cells.tolist())])
        return cells if kind is str else None


class NameReader(RepeatedReader, IdReader):
    """Reads the name of a model or segment: a string, or an integer, which becomes its digits."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "bad-model")

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        if (found := super()._whole(cells, kind)) is None or not len(found):
            return found
        names = found.tolist()
        return repeated(names[0], len(names)) if names.count(names[0]) == len(names) else found


class NumberReader(CellReader):
    """Reads a score, or a label that is a number: any finite number."""

    def __init__(self, name: str, remedy: str) -> None:
        self._name, self._remedy, self._reason = name, remedy, f"bad-{name}"

    def one(self, cell: Any) -> Any:  # noqa: ANN401
        """Return the number, or raise a BadRecordError."""
        if math.isfinite(found := float(number(cell))):
            return found
        remedy, cell = self._remedy, plain(cell)
        if isinstance(cell, str) and math.isfinite(number(cell.replace(",", "."))):
            remedy = "write a point before decimals, and no other"
        detail = f"{self._name} {shown(cell)} is not a finite number; {remedy}"
        raise BadRecordError(self._reason, detail)

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        found: Column | None = None
        if kind is str:
            found = text_numbers(cells.tolist(), np.float64)
        elif cells.dtype.kind in "if":
            found = cells.astype(np.float64, copy=False)
        return found if found is not None and np.isfinite(found).all() else None


class ScoreReader(NumberReader):
    """Reads a score: any finite number."""

    def __init__(self) -> None:
        super().__init__("score", "drop the record or repair the model's output")


class FoldScoresReader(ScoreReader):
    """Reads a score, or a list of scores, one a fold."""

    def one(self, cell: Any) -> Any:  # noqa: ANN401
        """Return the score or the scores, or raise a BadRecordError."""
        if isinstance(cell, np.ndarray):
            cell = cell.tolist()
        read = super().one
        return [*map(read, cell)] if type(cell) is list else read(cell)

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        if kind is not list:
            return super()._whole(cells, kind)
        return cells if _are_finite(chain.from_iterable(cells.tolist())) else None


class ClassScoresReader(ScoreReader):
    """Reads the scores of several classes: an object with a number for each class."""

    def one(self, cell: Any) -> Any:  # noqa: ANN401
        """Return the scores by class, or raise a BadRecordError."""
        if type(cell) is not dict:
            detail = f'score {shown(cell)} is not an object; write {{"class": number, …}}'
            raise BadRecordError("bad-score", detail)
        read = super().one
        return {name: read(found) for name, found in cell.items()}

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        if kind is not dict:
            return None
        values = map(dict.values, cells.tolist())
        return cells if _are_finite(chain.from_iterable(values)) else None


class LabelReader(RepeatedReader):
    """Reads a binary label as 0 or 1.

    Parameters
    ----------
    positive
        Values that mean 1; every other value then means 0. Without any, labels are 0 and 1, or
        false and true. The number 1, the string "1" and "true" in any case are equal.

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
        if form == "0" or (self._named and form is not None):
            return 0
        allowed = "a string, a number or a boolean" if self._named else "0 or 1, or false or true"
        hint = "" if self._named else ", or name the values that mean 1 in input.pos_label"
        if not self._named and math.isfinite(number(cell)):
            hint += '; for labels that are numbers, set task.kind = "regression"'
        detail = f"{shown(plain(cell))} is not a label; write {allowed}{hint}"
        raise BadRecordError("bad-label", detail)

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
            raise BadRecordError("bad-label", f"{detail}; add it to task.classes, or fix it")
        return found


class FeaturesReader(CellReader):
    """Reads features: an object of names and values."""

    def one(self, cell: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the features, or raise a BadRecordError."""
        if type(cell) is dict:
            return cell
        detail = (
            f"features {shown(cell)} are not an object; "
            'write {"name": value, …}, or list the fields in input.fields.x'
        )
        raise BadRecordError("bad-features", detail)


class PlainReader(CellReader):
    """Reads any cell, as the plain Python value that it equals."""

    def one(self, cell: Any) -> Any:  # noqa: ANN401
        """Return the value."""
        return plain(cell)

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        return cells if cells.dtype != object or kind in PLAIN else None


class ExtraReader(CellReader):
    """Reads a field of text: a finite number if it parses as one, otherwise the text."""

    def one(self, cell: Any) -> Any:  # noqa: ANN401
        """Return the number or the text."""
        found = number(cell)
        return found if math.isfinite(found) else cell


def _uniform(cells: Column) -> tuple[Column, type | None]:
    """Return a column, and the type of its objects if they have one; of numbers an array."""
    if cells.dtype != object:
        return cells, None
    given = cells.tolist()
    kind = kind_of(given)
    found = numbers(given, kind)
    return (cells if found is None else found), kind


def number(cell: Any) -> float:  # noqa: ANN401
    """Read a number, NaN if the cell is none; an integer of up to 64 bits stays one."""
    cell = plain(cell)
    if type(cell) is str and "_" not in cell:  # Python allows underscores between digits
        try:
            cell = int(cell)
        except ValueError:
            try:
                return float(cell)
            except ValueError:
                return math.nan
    if type(cell) is int:
        return cell if -_INT_BOUND < cell < _INT_BOUND else _rounded(cell)
    return cell if type(cell) is float else math.nan


def text_numbers(texts: list[Any], kind: type[np.int64 | np.float64]) -> NDArray[Any] | None:
    """Return the numbers that all texts of a column are; None if one is none, or no text."""
    read = int if kind is np.int64 else float
    try:
        # Python allows underscores between digits; records do not.
        return None if "_" in "".join(texts) else np.fromiter(map(read, texts), kind, len(texts))
    except (TypeError, ValueError, OverflowError):
        return None


def shown(value: object) -> str:
    """Return a value for a message, shortened: a record may be large and nested."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}…"


def _listed(cells: Column) -> list[Any]:
    """Return the cells; `tolist` would make integers or other dates of some times."""
    return [*cells] if cells.dtype.kind == "M" else cells.tolist()


def _are_finite(cells: Iterable[Any]) -> bool:
    given = [*cells]
    return {*map(type, given)} <= {float} and bool(np.isfinite(np.array(given, float)).all())


def _rounded(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


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

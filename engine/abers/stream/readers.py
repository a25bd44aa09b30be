"""Readers of the cells of a field: ids, names, scores, features and labels.

`CellReader.one` is the meaning of a cell. A text that parses as the value is the value, so that
CSV, JSON and Parquet accept the same records. Everything else raises a BadRecordError that says
what is accepted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from datetime import date, datetime, time, timedelta
from itertools import chain
from types import NoneType
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
import numpy as np

from abers.exceptions import ParameterError
from abers.stream.cells import (
    BadRecordError,
    Column,
    RefusedCell,
    column,
    kind_of,
    numbers,
    objects,
    plain,
    plain_nested,
    repeated,
    whole_milliseconds,
)
from abers.stream.option import SET, Option, Phrase, Ref

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from numpy.typing import NDArray

    from abers.stream.option import Part

__all__ = [
    "SCALARS",
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
    "PassedReader",
    "PlainReader",
    "RepeatedReader",
    "ScoreReader",
    "are_scalars",
    "is_no_label",
    "number",
    "shown",
    "text_numbers",
]

SCALARS = frozenset([str, int, float, bool, NoneType, datetime])
_INT_BOUND = 2**63
_OF_FEATURES = Ref(Option("input.fields.x", name="x"))
_DIVIDED = Phrase("set input.percent = true", "divide it by 100", "add --scores percent")
_POINT = "write a point before decimals, and no other"
_DECIMALS = Phrase(
    f'{_POINT}, or set input.decimal = "," for CSV', _POINT, f"{_POINT}, or add --decimal , for CSV"
)
_WHOLE = 100.0  # per cent
_MAX_SHOWN_CHARACTERS = 60  # of a value in a message


class CellReader(ABC):
    """Reads the cells of a field; no cell is None or ""."""

    @abstractmethod
    def one(self, cell: Any) -> Any:  # noqa: ANN401 - anything a column holds
        """Return the value of a cell, or raise a BadRecordError."""

    def many(self, cells: Column, kind: type | None = None) -> tuple[Column, list[RefusedCell]]:
        """Return what `one` returns of each cell, and the rows that it refuses.

        A refused cell stays as it is. `kind` is the type of all objects, if it is known.
        """
        if len(cells) == 1:
            return self._each(cells)  # a single value costs less than a column
        cells, kind = _uniform(cells, kind)
        found = self._whole(cells, kind)
        return self._each(cells) if found is None else (found, [])

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        """Return the values of a column at once; None if a cell needs a closer look.

        The cells are an array of numbers, or objects, all of one kind unless that is None.
        """
        del cells, kind
        return None

    def _each(self, cells: Column) -> tuple[Column, list[RefusedCell]]:
        values, refused = [], []
        for row, cell in enumerate(_listed(cells)):
            try:
                values.append(self.one(cell))
            except BadRecordError as error:
                refused.append(RefusedCell(row, error.reason, error.text))
                values.append(cell)
        return column(values), refused


class RepeatedReader(CellReader):
    """Reads cells that are often equal: each different cell is read once."""

    def many(self, cells: Column, kind: type | None = None) -> tuple[Column, list[RefusedCell]]:
        """Return what `one` returns of each cell, and the rows that it refuses."""
        if len(cells) == 1:
            return self._each(cells)
        cells, kind = _uniform(cells, kind)
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
        if isinstance(cell, np.datetime64) and not np.isnat(cell):
            return str(whole_milliseconds(cell))
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
        remedy: Part = self._remedy
        cell = plain(cell)
        if isinstance(cell, str) and math.isfinite(number(cell.replace(",", "."))):
            remedy = _DECIMALS
        detail = f"{self._name} {shown(cell)} is not a finite number; "
        raise BadRecordError(self._reason, detail, remedy)

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        found: Column | None = None
        if kind is str:
            found = text_numbers(cells.tolist(), np.float64)
        elif cells.dtype.kind in "if":
            found = cells.astype(np.float64, copy=False)
        return found if found is not None and np.isfinite(found).all() else None


class ScoreReader(NumberReader):
    """Reads a score: any finite number, or a percentage, which becomes a probability.

    Examples
    --------
    >>> ScoreReader().one("36"), ScoreReader(percent=True).one("36 %")
    (36.0, 0.36)
    """

    def __init__(self, *, percent: bool = False) -> None:
        super().__init__("score", "drop the record or repair the model's output")
        self._percent = percent

    def one(self, cell: Any) -> Any:  # noqa: ANN401
        """Return the score, or raise a BadRecordError."""
        signed = isinstance(cell, str) and cell.rstrip().endswith("%")
        share = cell.rstrip().removesuffix("%") if signed else cell
        if not self._percent:
            if signed and math.isfinite(number(share)):
                raise BadRecordError("bad-score", f"score {shown(cell)} is in per cent; ", _DIVIDED)
            return super().one(cell)
        found = super().one(share)
        if not 0.0 <= found <= _WHOLE:
            detail = f"score {shown(cell)} is not a percentage from 0 to 100; fix it"
            raise BadRecordError("bad-score", detail)
        return found / _WHOLE

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        found = super()._whole(cells, kind)
        if not self._percent or found is None:
            return found
        return found / _WHOLE if ((found >= 0.0) & (found <= _WHOLE)).all() else None


class FoldScoresReader(ScoreReader):
    """Reads a score, or a list of scores, one a fold."""

    def one(self, cell: Any) -> Any:  # noqa: ANN401
        """Return the score or the scores, or raise a BadRecordError."""
        if isinstance(cell, np.ndarray):
            cell = cell.tolist()
        read = super().one
        return [*map(read, cell)] if type(cell) is list else read(cell)

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        if kind is not list or self._percent:
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
        if kind is not dict or self._percent:
            return None
        values = map(dict.values, cells.tolist())
        return cells if _are_finite(chain.from_iterable(values)) else None


class PlainReader(CellReader):
    """Reads any cell, as the plain Python value that it equals."""

    def one(self, cell: Any) -> Any:  # noqa: ANN401
        """Return the value."""
        try:
            return plain_nested(cell)
        except RecursionError:
            return cell

    def many(self, cells: Column, kind: type | None = None) -> tuple[Column, list[RefusedCell]]:
        """Return what `one` returns of each cell; moments of a column are milliseconds."""
        if cells.dtype.kind == "M":
            return cells.astype("datetime64[ms]").astype(np.int64), []
        return super().many(cells, kind)

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        if kind is dict:
            return cells if all(map(are_scalars, cells.tolist())) else None
        return cells if cells.dtype != object or kind in SCALARS else None


class FeaturesReader(PlainReader):
    """Reads features: an object of names and plain values."""

    def one(self, cell: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the features, or raise a BadRecordError."""
        if type(cell) is dict:
            return super().one(cell)  # type: ignore[no-any-return]
        wrong = f"features {shown(cell)} are not an object; "
        remedy = 'write {"name": value, …}, or list the fields in '
        raise BadRecordError("bad-features", wrong + remedy, _OF_FEATURES)

    def _whole(self, cells: Column, kind: type | None) -> Column | None:
        return super()._whole(cells, kind) if kind is dict else None


class PassedReader(PlainReader):
    """Reads the extra fields of an observation, which its prediction repeats."""

    def one(self, cell: Any) -> Any:  # noqa: ANN401
        """Return the fields; a ParameterError says that JSON cannot hold one of them."""
        found = super().one(cell)
        try:
            msgspec.json.encode(found)
        except (TypeError, ValueError, RecursionError) as error:
            msg = f"extra fields {shown(cell)} cannot be encoded ({error}); pass through only what "
            msg += "JSON can hold"
            raise ParameterError(msg) from None
        return found


class ExtraReader(CellReader):
    """Reads a field of text: a finite number if it parses as one, otherwise the text."""

    def one(self, cell: Any) -> Any:  # noqa: ANN401
        """Return the number or the text."""
        found = number(cell)
        return found if math.isfinite(found) else cell


def _uniform(cells: Column, kind: type | None) -> tuple[Column, type | None]:
    """Return a column, and the type of its objects if they have one; of numbers an array."""
    if kind is not None or cells.dtype != object:
        return cells, kind
    given = cells.tolist()
    kind = kind_of(given)
    found = numbers(given, kind)
    return (cells if found is None else found), kind


def are_scalars(fields: dict[Any, Any]) -> bool:
    """Return whether all values of an object are plain texts, numbers or moments."""
    return {*map(type, fields.values())} <= SCALARS


def number(cell: Any) -> float:  # noqa: ANN401
    """Read a number, NaN for other cells; an integer of up to 64 bits stays one."""
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
    """Return the numbers that all texts of a column are; None if a cell does not hold a number."""
    read = int if kind is np.int64 else float
    try:
        # Python allows underscores between digits; records do not.
        return None if "_" in "".join(texts) else np.fromiter(map(read, texts), kind, len(texts))
    except (TypeError, ValueError, OverflowError):
        return None


def shown(value: object) -> str:
    """Return a value for a message, shortened: a record may be large and nested."""
    if isinstance(value, date | time | timedelta | np.datetime64):
        value = str(value)
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


_BOOLEANS = {"true": "1", "false": "0"}
# A configuration has a section for these, which declares more of them.
_POSITIVE = Ref(Option("input.pos_label", flag="--positive", name="positive"))
_TASK = Ref(Option("task.kind", flag="--task", name="task"), "regression")
_CLASSES = Ref(Option("task.classes", flag="--score", name="classes"))
_NAME_ONES = (", or name the values that mean 1 in ", _POSITIVE)
_IF_NUMBERS = ("; for labels that are numbers, ", SET, _TASK)
_UNKNOWN = frozenset(["na", "n/a", "#n/a", "<na>", "nan", "null"])  # what programs write for none


def is_no_label(cell: object) -> bool:
    """Return whether a cell has a word by which programs say that there is no label.

    Examples
    --------
    >>> is_no_label("NA"), is_no_label("no"), is_no_label(0)
    (True, False, False)
    """
    return isinstance(cell, str) and cell.strip().lower() in _UNKNOWN


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
        if is_no_label(form):
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

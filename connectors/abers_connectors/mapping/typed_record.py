"""The typed record that plain JSON is decoded into, and its conversion to columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from abers.stream.columns import column, objects
from abers.stream.readers import ClassScoresReader, FoldScoresReader
from abers.stream.schema_columns import DEFAULT_MODEL
from abers_connectors.mapping.columns import FieldColumn
from abers_connectors.mapping.fields import constant, is_of_record, is_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers.stream.schema_columns import Readers
    from abers_connectors.mapping.columns import FieldColumns
    from abers_connectors.mapping.fields import Fields, Record

__all__ = ["TypedRecord", "typed_record"]

_Value = bool | int | float | str


class TypedRecord:
    """The type `record` that plain records are decoded into, and its conversion to columns.

    `names` are field names by the attributes of the type; `numbers` says whether scores are
    numbers, with NaN for a missing one: JSON has no NaN.
    """

    def __init__(
        self, record: type[msgspec.Struct], names: Mapping[str, str], *, numbers: bool
    ) -> None:
        self.record = record
        self._names, self._numbers = names, numbers

    def convert(self, records: Sequence[Record]) -> list[Any] | None:
        """Return records of the type; None if one does not fit, as one whose score is NaN."""
        path = self._names.get("score")
        if path is not None and any((one := record.get(path)) != one for record in records):
            return None
        try:
            return msgspec.convert(records, list[self.record])  # type: ignore[name-defined]
        except (msgspec.ValidationError, OverflowError):
            return None

    def columns(self, records: Sequence[Any]) -> FieldColumns:
        """Return the columns of records of the type `record`."""
        found = {name: read(records) for name, read in _READ.items() if name in self._names}
        if "score" in self._names:
            found["score"] = self._scores([r.score for r in records])
        return {self._names[attribute]: one for attribute, one in found.items()}

    def _scores(self, found: list[Any]) -> FieldColumn:
        if not self._numbers and {*map(type, found)} & {dict, list}:
            return FieldColumn.of(found)
        scores = np.array(found, float)  # NaN for None too
        valid = ~np.isnan(scores)
        return FieldColumn(scores, None if valid.all() else valid)


# A literal attribute access is twice as fast as getattr.
_READ: Mapping[str, Callable[[Sequence[Any]], FieldColumn]] = {
    "id": lambda records: FieldColumn(objects([r.id for r in records])),
    "time": lambda records: FieldColumn(column([r.time for r in records])),
    "model": lambda records: FieldColumn(objects([r.model for r in records])),
    "label": lambda records: FieldColumn.of([r.label for r in records]),
    "segment": lambda records: FieldColumn(objects([r.segment for r in records])),
    "label_time": lambda records: FieldColumn.of([r.label_time for r in records]),
}


def typed_record(fields: Fields, readers: Readers) -> TypedRecord | None:
    """Return the type of the records of a mapping; None if the mapping is not plain.

    Constants and the metadata of a record are not fields of it.
    """
    if not isinstance(fields.score, str) or fields.x or fields.passthrough:
        return None
    kind = _score_type(readers)
    numbers = kind is float
    types: dict[str, tuple[Any, ...]] = {
        "id": (str,),
        "time": (int,),
        "label_time": (int | None, None),
        "model": (str, DEFAULT_MODEL),
        "score": (kind | None, math.nan if numbers else None),
        "label": (_Value | None, None),
        "segment": (str, ""),
    }
    names = {name: path for name in types if (path := getattr(fields, name)) is not None}
    for name in ("model", "segment"):
        if constant(names.get(name, "")) is not None:
            del names[name]
    if not all(map(is_plain, names.values())):
        return None
    names = {name: path for name, path in names.items() if not is_of_record(path)}
    if len({*names.values()}) < len(names):
        return None
    try:
        members = [(name, *types[name]) for name in names]
        record = msgspec.defstruct("Record", members, rename=names, gc=False)
        return TypedRecord(record, names, numbers=numbers)
    except ValueError:  # a name that needs escapes
        return None


def _score_type(readers: Readers) -> Any:  # noqa: ANN401 - a type of JSON
    if isinstance(readers.score, ClassScoresReader):
        return dict[str, float]
    return float | list[float] if isinstance(readers.score, FoldScoresReader) else float

"""From lines of JSON to columns, a batch at a time.

Governing rule: the decoder itself checks what type each field has; a batch in
which any record is not plainly right is not taken here but read one by one.
"""

from __future__ import annotations

import math
from itertools import repeat
from operator import is_not
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from abers.stream.columns import column, objects
from abers_connectors import values
from abers_connectors._columns import Columns, Given
from abers_connectors._paths import constant, is_of_record, is_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers_connectors.fields import Fields
    from abers_connectors.reads import Reads

__all__ = ["Typed", "given", "typed"]

_Value = bool | int | float | str


class Typed:
    """How plain records are read.

    Parameters
    ----------
    record
        What a record is decoded into.
    names
        Of the fields in the records, by the attributes of `record`.
    numbers
        Whether every score is a number, NaN if there is none: JSON has no NaN.
    """

    def __init__(
        self, record: type[msgspec.Struct], names: Mapping[str, str], *, numbers: bool
    ) -> None:
        self.record = record
        self._names, self._numbers = names, numbers

    def columns(self, records: Sequence[Any]) -> Columns:
        """Give the columns of some records, which are of the type `record`."""
        found = {name: read(records) for name, read in _READ.items() if name in self._names}
        if "score" in self._names:
            found["score"] = self._scores([r.score for r in records])
        return {self._names[attribute]: one for attribute, one in found.items()}

    def _scores(self, found: list[Any]) -> Given:
        if not self._numbers and {*map(type, found)} & {dict, list}:
            return given(found)
        scores = np.array(found, float)  # NaN in place of None too
        there = ~np.isnan(scores)
        return Given(scores, None if there.all() else there)


def given(found: list[Any]) -> Given:
    """Make a column of values, None where there is none."""
    if None not in found:
        return Given(column(found))
    there = np.fromiter(map(is_not, found, repeat(None)), bool, len(found))
    return Given(objects(found), there)


# An attribute that is written out is found twice as fast as one that is asked for by name.
_READ: Mapping[str, Callable[[Sequence[Any]], Given]] = {
    "id": lambda records: Given(objects([r.id for r in records])),
    "time": lambda records: Given(column([r.time for r in records])),
    "model": lambda records: Given(objects([r.model for r in records])),
    "label": lambda records: given([r.label for r in records]),
    "segment": lambda records: Given(objects([r.segment for r in records])),
}


def typed(fields: Fields, reads: Reads) -> Typed | None:
    """Make the type of a record; None if the mapping is not plain.

    What is told beside the text of a record is no field of it, nor is a constant.
    """
    if not isinstance(fields.score, str):
        return None
    names = {"id": fields.id, "time": fields.time, "model": fields.model}
    names |= {"score": fields.score, "label": fields.label}
    numbers = reads.type is float
    types: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        ("id", str),
        ("time", int),
        ("model", str, values.DEFAULT_MODEL),
        ("score", reads.type | None, math.nan if numbers else None),
        ("label", _Value | None, None),
    ]
    if fields.segment is not None:
        names["segment"] = fields.segment
        types.append(("segment", str, ""))
    for name in ("model", "segment"):
        if constant(names.get(name, "")) is not None:
            del names[name]
    if fields.x or fields.extra or not all(map(is_plain, names.values())):
        return None
    names = {name: path for name, path in names.items() if not is_of_record(path)}
    types = [one for one in types if one[0] in names]
    if len({*names.values()}) < len(names):
        return None
    try:
        return Typed(
            msgspec.defstruct("Record", types, rename=names, gc=False), names, numbers=numbers
        )
    except ValueError:  # a name that would have to be escaped
        return None

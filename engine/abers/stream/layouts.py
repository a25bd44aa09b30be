"""Layouts of saved parts: how each is split by model, and joined again, as bytes.

A cut gives each of several parts its rows of a whole: its models, its keys, and its entries of the
pending store. A layout says which rows a payload has, and where. So calibrators, monitors and
histories are moved, and never decoded. The order in a part is that of the whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, auto
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from abers.arrays import raw
from abers.serialization import require
from abers.stream.msgpack_encoder import ARRAY, header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.arrays import Integers

__all__ = [
    "ArrayLayout",
    "Axis",
    "ColumnLayout",
    "Cut",
    "Layout",
    "ListLayout",
    "NumberLayout",
    "TextLayout",
    "spans",
]

_decode, _encode = msgspec.msgpack.decode, msgspec.msgpack.Encoder().encode


class Axis(Enum):
    """What the rows of a payload are."""

    MODELS = auto()
    KEYS = auto()  # pairs of model and segment
    OBSERVATIONS = auto()  # those that wait
    EARLY_LABELS = auto()
    FINISHED_IDS = auto()


class Cut(NamedTuple):
    """What each part has of a whole.

    Attributes
    ----------
    models
        Names of its models.
    rows
        Rows of each axis, ascending.
    undecided
        Number of observations that wait, and for which no label was assumed, to split counters.
    """

    models: list[list[str]]
    rows: Mapping[Axis, Sequence[Integers]]
    undecided: Sequence[int] = ()

    def size(self, axis: Axis) -> int:
        """Return the number of rows of the whole."""
        return sum(map(len, self.rows[axis]))


class Layout(ABC):
    """How a payload is split and joined; a ValueError is raised if it cannot be one."""

    @abstractmethod
    def split(self, payload: msgspec.Raw, cut: Cut) -> Iterator[bytes]:
        """Yield the payload of each part."""

    @abstractmethod
    def join(self, payloads: Sequence[msgspec.Raw], cut: Cut) -> bytes:
        """Return the payload of the whole, which has the rows of one part behind the other."""


class ListLayout(Layout):
    """A list with an item for each row, of any kind."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis

    def split(self, payload: msgspec.Raw, cut: Cut) -> Iterator[bytes]:
        """Yield the items of each part."""
        items = self._items(payload, cut.size(self._axis))
        for rows in cut.rows[self._axis]:
            yield _encode([items[row] for row in rows.tolist()])

    def join(self, payloads: Sequence[msgspec.Raw], cut: Cut) -> bytes:
        """Return all items."""
        of_parts = zip(payloads, cut.rows[self._axis], strict=True)
        return _encode([*chain(*(self._items(one, len(rows)) for one, rows in of_parts))])

    def _items(self, payload: msgspec.Raw, count: int) -> list[msgspec.Raw]:
        items = _decode(payload, type=list[msgspec.Raw])
        require(len(items) == count, _named(self._axis))
        return items


class ColumnLayout(Layout):
    """Bytes, as many for each row."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis

    def split(self, payload: msgspec.Raw, cut: Cut) -> Iterator[bytes]:
        """Yield the bytes of each part."""
        table = self._table(payload, cut.size(self._axis))
        return (_encode(raw(table[rows])) for rows in cut.rows[self._axis])

    def join(self, payloads: Sequence[msgspec.Raw], cut: Cut) -> bytes:
        """Return all bytes."""
        of_parts = zip(payloads, cut.rows[self._axis], strict=True)
        tables = [self._table(one, len(rows)) for one, rows in of_parts]
        filled = [one for one in tables if len(one)]  # the others have no width
        return _encode(raw(np.concatenate(filled or tables)))

    def _table(self, payload: msgspec.Raw, count: int) -> NDArray[np.uint8]:
        values = np.frombuffer(_decode(payload, type=memoryview), np.uint8)
        width = len(values) // max(count, 1)
        require(len(values) == width * count, _named(self._axis))
        return values.reshape(count, width)


class NumberLayout(Layout):
    """Numbers of models or keys, as little-endian u4: a part has numbers of its own."""

    def __init__(self, axis: Axis, of: Axis) -> None:
        self._axis, self._of = axis, of

    def split(self, payload: msgspec.Raw, cut: Cut) -> Iterator[bytes]:
        """Yield the numbers of each part."""
        numbers = self._numbers(payload, cut.size(self._axis))
        for rows, named in zip(cut.rows[self._axis], cut.rows[self._of], strict=True):
            own = np.full(cut.size(self._of), -1)
            own[named] = np.arange(len(named))
            found = own[numbers[rows]]
            require((found >= 0).all(), _named(self._of))
            yield _encode(raw(found.astype("<u4")))

    def join(self, payloads: Sequence[msgspec.Raw], cut: Cut) -> bytes:
        """Return the numbers in the whole."""
        of_parts = zip(payloads, cut.rows[self._axis], cut.rows[self._of], strict=True)
        numbers = [named[self._numbers(one, len(rows))] for one, rows, named in of_parts]
        return _encode(raw(np.concatenate(numbers).astype("<u4")))

    def _numbers(self, payload: msgspec.Raw, count: int) -> NDArray[np.uint32]:
        numbers = np.frombuffer(_decode(payload, type=memoryview), "<u4")
        require(len(numbers) == count, _named(self._axis))
        return numbers


class TextLayout(Layout):
    """Strings, one behind the other, and the number of characters of each as little-endian u4."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis

    def split(self, payload: msgspec.Raw, cut: Cut) -> Iterator[bytes]:
        """Yield the strings of each part."""
        text, lengths = self._read(payload, cut.size(self._axis))
        ends = [*accumulate(lengths.tolist(), initial=0)]
        for rows in cut.rows[self._axis]:
            own = "".join([text[ends[row] : ends[row + 1]] for row in rows.tolist()])
            yield _encode([own, raw(lengths[rows])])

    def join(self, payloads: Sequence[msgspec.Raw], cut: Cut) -> bytes:
        """Return all strings."""
        of_parts = zip(payloads, cut.rows[self._axis], strict=True)
        several = [self._read(one, len(rows)) for one, rows in of_parts]
        lengths = np.concatenate([one for _, one in several])
        return _encode(["".join(one for one, _ in several), raw(lengths)])

    def _read(self, payload: msgspec.Raw, count: int) -> tuple[str, NDArray[np.uint32]]:
        text, given = _decode(payload, type=tuple[str, memoryview])
        lengths = np.frombuffer(given, "<u4")
        require(len(lengths) == count, _named(self._axis))
        require(int(lengths.sum(dtype=np.uint64)) == len(text), "ids")
        return text, lengths


class ArrayLayout(Layout):
    """Several payloads in an array."""

    def __init__(self, *fields: Layout) -> None:
        self._fields = fields

    def split(self, payload: msgspec.Raw, cut: Cut) -> Iterator[bytes]:
        """Yield the fields of each part."""
        several = zip(self._fields, self._read(payload), strict=True)
        for fields in zip(*(one.split(field, cut) for one, field in several), strict=True):
            yield self._array(fields)

    def join(self, payloads: Sequence[msgspec.Raw], cut: Cut) -> bytes:
        """Return the fields of the whole."""
        several = zip(*map(self._read, payloads), strict=True)
        joined = zip(self._fields, several, strict=True)
        return self._array(one.join(fields, cut) for one, fields in joined)

    def _read(self, payload: msgspec.Raw) -> list[msgspec.Raw]:
        fields = _decode(payload, type=list[msgspec.Raw])
        require(len(fields) == len(self._fields), "fields")
        return fields

    def _array(self, fields: Iterable[bytes]) -> bytes:
        return b"".join((header(ARRAY, len(self._fields)), *fields))


def spans(lengths: NDArray[Any], rows: Integers) -> Integers:
    """Return the places of the items of some rows, if each row has so many behind the last.

    Examples
    --------
    >>> spans(np.array([2, 0, 3]), np.array([2, 0])).tolist()
    [2, 3, 4, 0, 1]
    """
    own = lengths[rows].astype(np.int64)
    begins = np.cumsum(lengths, dtype=np.int64)[rows] - own
    return np.repeat(begins - np.cumsum(own) + own, own) + np.arange(own.sum())


def _named(axis: Axis) -> str:
    return axis.name.lower().replace("_", " ")

"""The parts of a saved state: by name, split by model and joined again, and encoded in pieces.

MessagePack in pieces, so that an encoded value is never in memory as a whole. The pieces, joined,
are the bytes that msgspec encodes the whole value to.

A cut gives each of several parts its rows of a whole: its models, its keys, and its entries of the
pending store. A layout says which rows a payload has, and where. So calibrators, monitors and
histories are moved, and never decoded. The order in a part is that of the whole.

A snapshot has each part under its name, with the version of its form. So a release can add a part,
and read the states that were saved without it.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from enum import Enum, auto
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from abers.arrays import raw
from abers.exceptions import StateError
from abers.serialization import require
from abers.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.arrays import Integers
    from abers.serialization import Piece

__all__ = [
    "ARRAY",
    "BINARY",
    "MAP",
    "TEXT",
    "ArrayLayout",
    "Axis",
    "ColumnLayout",
    "Component",
    "Cut",
    "Layout",
    "ListLayout",
    "NumberLayout",
    "SavedComponent",
    "TextLayout",
    "encode",
    "encode_array",
    "encode_components",
    "encode_saved",
    "encode_struct",
    "header",
    "load_components",
    "require_readable",
    "spans",
]


class _Kind(NamedTuple):
    """How MessagePack begins a value of a kind: with its size, in the fewest bytes."""

    short: int  # with a size below `below` in the same byte
    below: int
    codes: tuple[int | None, int, int]  # before a size of 1, 2 and 4 bytes


BINARY = _Kind(0, 0, (0xC4, 0xC5, 0xC6))
TEXT = _Kind(0xA0, 32, (0xD9, 0xDA, 0xDB))
ARRAY = _Kind(0x90, 16, (None, 0xDC, 0xDD))
MAP = _Kind(0x80, 16, (None, 0xDE, 0xDF))

_SCALARS = frozenset({bool, int, float, str, type(None)})

_encode_to_bytes = msgspec.msgpack.Encoder().encode


def header(kind: _Kind, size: int) -> bytes:
    """Return the first bytes of a value of so many bytes or items."""
    if size < kind.below:
        return bytes([kind.short | size])
    for code, letter, bits in zip(kind.codes, "BHI", (8, 16, 32), strict=True):
        if code is not None and size < 1 << bits:
            return struct.pack(f">B{letter}", code, size)
    msg = f"a part of the state has {size:,} bytes or items, more than a snapshot can hold"
    raise StateError(msg)


def encode(value: Any) -> Iterator[Piece]:  # noqa: ANN401 - anything msgspec encodes
    """Encode a value; bytes in lists are pieces of their own."""
    if isinstance(value, bytes | memoryview):
        yield header(BINARY, len(value))
        yield value
    elif type(value) in {list, tuple} and not _SCALARS.issuperset(map(type, value)):
        yield from encode_array(len(value), value)
    else:
        yield _encode_to_bytes(value)


def encode_array(count: int, values: Iterable[Any]) -> Iterator[Piece]:
    """Encode so many values as an array, each only when it is its turn."""
    yield header(ARRAY, count)
    for value in values:
        yield from encode(value)


def encode_struct(fields: Mapping[str, Iterable[Piece]]) -> Iterator[Piece]:
    """Encode a structure, its fields in pieces."""
    yield header(MAP, len(fields))
    for name, value in fields.items():
        yield _encode_to_bytes(name)
        yield from value


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


_Missing: TypeAlias = Literal["refuse", "empty"]


class SavedComponent(msgspec.Struct, array_like=True):
    """A part as a snapshot has it."""

    version: int
    missing: _Missing  # "empty": a reader that does not know it drops it
    payload: msgspec.Raw


class Component(ABC):
    """One part of a state, which saves and loads itself.

    Attributes
    ----------
    name
        Its name in a snapshot.
    formats
        Type of the saved form of each version that it reads: the latest, which it writes, and the
        version before.
    missing
        What a snapshot without it means: it begins empty, or the snapshot is refused. A reader that
        does not know it drops it, or refuses the snapshot.
    derived
        Whether it depends on more than the events, and is no part of `Processor.state_bytes`.
    layout
        How the latest form is split by model, and joined.
    """

    name: str
    formats: ClassVar[Mapping[int, Any]]
    missing: _Missing = "refuse"
    derived: ClassVar[bool] = False
    layout: Layout

    @property
    def version(self) -> int:
        """The version that it writes."""
        return max(self.formats)

    @abstractmethod
    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the part in pieces, in canonical form; observations wait in these slots."""

    def load(self, version: int, payload: msgspec.Raw) -> None:
        """Load what was saved in a version, into an empty state; the parts before it are loaded.

        Raises
        ------
        ValueError, msgspec.MsgspecError
            If it cannot be this part.
        """
        self._load(msgspec.msgpack.decode(payload, type=self.formats[version]))

    @abstractmethod
    def _load(self, saved: Any) -> None:  # noqa: ANN401 - of a type of `formats`
        """Load the saved form."""


def encode_components(components: Iterable[Component], slots: Integers) -> Iterator[Piece]:
    """Encode components by name, as `SavedComponent`, each when it is its turn."""
    return encode_struct({one.name: _encoded(one, slots) for one in components})


def encode_saved(components: Mapping[str, SavedComponent]) -> Iterator[Piece]:
    """Encode components as they were saved."""
    return encode_struct({name: _saved(one) for name, one in components.items()})


def _encoded(component: Component, slots: Integers) -> Iterator[Piece]:
    yield from _head(component.version, component.missing)
    yield from component.save(slots)


def _saved(component: SavedComponent) -> Iterator[Piece]:
    yield from _head(component.version, component.missing)
    yield memoryview(component.payload)


def _head(version: int, missing: _Missing) -> Iterator[Piece]:
    yield header(ARRAY, len(SavedComponent.__struct_fields__))
    yield from encode(version)
    yield from encode(missing)


def require_readable(
    components: Sequence[Component], saved: Mapping[str, SavedComponent], writer: str
) -> None:
    """Raise a StateError if components cannot be loaded from what a version of abers wrote.

    One is missing that must be there, or one that is there is not known or of an unknown version.
    """
    remedy = f"load it with abers {writer}, which wrote it"
    known = {one.name: one for one in components}
    for name, one in saved.items():
        if name not in known and one.missing == "refuse":
            msg = f"the snapshot has {name!r}, which abers {__version__} does not know; {remedy}"
            raise StateError(msg)
        if name in known and one.version not in known[name].formats:
            msg = (
                f"the snapshot has {name!r} in version {one.version}, and abers {__version__} "
                f"reads version {' and '.join(map(str, sorted(known[name].formats)))}; {remedy}"
            )
            raise StateError(msg)
    for name, component in known.items():
        if name not in saved and component.missing == "refuse":
            msg = f"the snapshot lacks {name!r}, which abers {__version__} needs; {remedy}"
            raise StateError(msg)


def load_components(components: Iterable[Component], saved: Mapping[str, SavedComponent]) -> None:
    """Load components in their order; those that are missing begin empty."""
    for component in components:
        if (found := saved.get(component.name)) is not None:
            component.load(found.version, found.payload)

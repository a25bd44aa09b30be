"""What was read of a file, as a hash: by it a later run knows the file again.

Governing rule: the same records give the same hash, however they are divided, packed or ended; so
a file that grew, or was compressed anew, is the same file, and one with other records is not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import numpy as np

from abers.exceptions import StateError
from abers_connectors.extras import extra
from abers_connectors.files.lines import HEAD, Oversized

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Sized

    import pyarrow as pa

    from abers_connectors.files.lines import Line
    from abers_connectors.records import Position

__all__ = ["ColumnDigest", "TextDigest"]

Rows = TypeVar("Rows", bound="Sized")

_hash = partial(blake2b, digest_size=16)


class _Digest(ABC, Generic[Rows]):
    """The hash of what was read, which is compared on the way with what it was before.

    Parameters
    ----------
    name
        Of the input.
    position
        Where the reading goes on, and up to where more was read before (`records.beyond`).
    """

    def __init__(self, name: str = "", position: Position | None = None) -> None:
        self._name = name
        start = position or {}
        given = (start, start.get("ahead") or {})
        self._due = [one for one in given if one.get("records")]
        self.skip: int = start.get("records", 0)
        self.records = 0

    @property
    def known(self) -> int:
        """How many records there are at least, as so many were read before."""
        return max([one["records"] for one in self._due], default=0)

    def add(self, rows: Rows) -> None:
        """Take some records.

        Raises
        ------
        StateError
            If those up to a place that was read before are others.
        """
        while self._due and (left := self._due[0]["records"] - self.records) <= len(rows):
            first, rows = self._divided(rows, left)
            self._take(first)
            self.records += left
            self._require_same(self._due.pop(0))
        self._take(rows)
        self.records += len(rows)

    def position(self) -> Position:
        """Say how many records were read, and which."""
        return {"records": self.records, "digest": self.value()}

    def _require_same(self, before: Position) -> None:
        if not _agree(before["digest"], self.value()):
            msg = (
                f"input {self._name} is not what was read before: its first {before['records']} "
                "records differ; put the old file back, or remove state and outputs to start anew"
            )
            raise StateError(msg)

    @abstractmethod
    def value(self) -> Any:  # noqa: ANN401 - what JSON can hold
        """Give the hash of all records so far."""

    @abstractmethod
    def _take(self, rows: Rows) -> None: ...

    @abstractmethod
    def _divided(self, rows: Rows, first: int) -> tuple[Rows, Rows]: ...


def _agree(before: object, now: object) -> bool:
    if not isinstance(before, dict) or not isinstance(now, dict):
        return before == now
    # Another mapping looks at other columns; what both look at has to agree.
    common = before.keys() & now.keys()
    return bool(common) and all(before[name] == now[name] for name in common)


class TextDigest(_Digest["Sequence[Line]"]):
    r"""The hash of raw records, none of them blank.

    Examples
    --------
    >>> one, other = TextDigest(), TextDigest()
    >>> one.add([b"a", b"b"])
    >>> other.add([b"a\r"])
    >>> other.add([b"b"])
    >>> one.position() == other.position()
    True
    """

    def __init__(self, name: str = "", position: Position | None = None) -> None:
        super().__init__(name, position)
        self._hash = _hash()

    def begin(self, columns: Iterable[str]) -> None:
        """Take the header."""
        self._take([column.encode() for column in columns])

    def value(self) -> str:
        """Give the hash of all of them."""
        return self._hash.hexdigest()

    def _take(self, rows: Sequence[Line]) -> None:
        self._hash.update(b"".join([_essence(raw) + b"\n" for raw in rows]))

    def _divided(self, rows: Sequence[Line], first: int) -> tuple[Sequence[Line], Sequence[Line]]:
        return rows[:first], rows[first:]


def _essence(raw: Line) -> bytes:
    """Give of a record what neither its end nor the allowed length has a part in."""
    if isinstance(raw, Oversized):
        return b"%b %d" % (raw.head, raw.size)
    text = raw.strip()
    return text if len(text) <= HEAD else b"%b %d" % (text[:HEAD], len(text))


class ColumnDigest(_Digest["pa.RecordBatch"]):
    """The hashes of columns of Arrow, one for each name."""

    def __init__(self, name: str = "", position: Position | None = None) -> None:
        super().__init__(name, position)
        self._hashes: defaultdict[str, defaultdict[str, Any]] = defaultdict(
            lambda: defaultdict(_hash)
        )

    def value(self) -> dict[str, str]:
        """Give the hash of each column."""
        return {
            name: _hash(b"".join(parts[part].digest() for part in sorted(parts))).hexdigest()
            for name, parts in self._hashes.items()
        }

    def _take(self, rows: pa.RecordBatch) -> None:
        if not len(rows):
            return
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            for part, data in _parts(column):
                self._hashes[name][part].update(data)

    def _divided(self, rows: pa.RecordBatch, first: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        return rows.slice(0, first), rows.slice(first)


def _parts(column: pa.Array) -> Iterator[tuple[str, Any]]:
    """Give a column as bytes that do not depend on where it was divided."""
    arrow = extra("pyarrow", "Parquet")
    types, kind = arrow.types, column.type
    yield "there", column.is_valid().to_numpy(zero_copy_only=False)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        filled = column.fill_null(False if types.is_boolean(kind) else 0)
        yield "values", np.ascontiguousarray(filled.to_numpy(zero_copy_only=False))
    elif types.is_string(kind) or types.is_large_string(kind):
        texts = column.cast(arrow.large_binary())
        ends = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1]
        yield "lengths", np.diff(ends)
        yield "values", memoryview(texts.buffers()[2] or b"")[ends[0] : ends[-1]]
    elif not types.is_null(kind):
        rows = (_as_json(column.slice(row, 1)) for row in range(len(column)))
        yield "values", b"\n".join([*rows, b""])


def _as_json(value: pa.Array) -> bytes:
    try:
        return msgspec.json.encode(value.to_pylist(), enc_hook=str)
    except ValueError:  # such as wrong UTF-8 within
        return b""

"""Digests of the records that were read, by which a later run recognizes a file.

Equal records have equal digests, however they are divided, compressed or ended. So a file that grew
or was compressed again is the same file, and one with other records is not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from abers.exceptions import StateError
from abers.stream.arrow_buffers import numbers, text_ends, valid_rows
from abers.stream.arrow_columns import is_moment
from abers_connectors.extras import extra
from abers_connectors.sources.lines import HEAD, OversizedLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from abers_connectors.sources.base import Position
    from abers_connectors.sources.lines import RawLine

__all__ = ["ColumnDigest", "TextDigest"]

_hash = partial(blake2b, digest_size=16)


class _Digest(ABC):
    """A digest that is compared, on the way, with those of earlier positions.

    The position says where to continue, and how far the input was read before (`resume_point`).
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
        """Least number of records of the input, as so many were read before."""
        return max([one["records"] for one in self._due], default=0)

    def add(self, rows: Sequence[Any]) -> None:
        """Add records; raise a StateError if they differ from those of an earlier position."""
        while self._due and (left := self._due[0]["records"] - self.records) <= len(rows):
            self._take(rows[:left])
            rows = rows[left:]
            self.records += left
            self._require_equal(self._due.pop(0))
        self._take(rows)
        self.records += len(rows)

    def position(self) -> Position:
        """Return the number of records read, with their digest."""
        return {"records": self.records, "digest": self.value()}

    def _require_equal(self, before: Position) -> None:
        if not _are_equal(before["digest"], self.value()):
            msg = (
                f"input {self._name} is not what was read before: its first {before['records']} "
                "records differ; put the old file back, or remove state and outputs to start anew"
            )
            raise StateError(msg)

    @abstractmethod
    def value(self) -> Any:  # noqa: ANN401 - what JSON can hold
        """Return the digest of all records so far."""

    @abstractmethod
    def _take(self, rows: Sequence[Any]) -> None: ...


def _are_equal(before: object, now: object) -> bool:
    if not isinstance(before, dict) or not isinstance(now, dict):
        return before == now
    # Another mapping reads other columns; those that both read must agree.
    common = before.keys() & now.keys()
    return bool(common) and all(before[name] == now[name] for name in common)


class TextDigest(_Digest):
    r"""The digest of raw records, none of them blank.

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

    def add_header(self, columns: Iterable[str]) -> None:
        """Add the names of columns, which are not a record."""
        self._take([column.encode() for column in columns])

    def value(self) -> str:
        """Return the digest."""
        return self._hash.hexdigest()

    def _take(self, rows: Sequence[RawLine]) -> None:
        try:
            texts = [*map(bytes.strip, rows)]  # type: ignore[arg-type]
        except TypeError:  # an oversized line
            texts = []
        if not texts or max(map(len, texts)) > HEAD:
            texts = [*map(_canonical, rows)]
        self._hash.update(b"\n".join([*texts, b""]))


def _canonical(raw: RawLine) -> bytes:
    """Return a record without its end, and independent of the size limit."""
    if isinstance(raw, OversizedLine):
        return b"%b %d" % (raw.head, raw.size)
    text = raw.strip()
    return text if len(text) <= HEAD else b"%b %d" % (text[:HEAD], len(text))


class ColumnDigest(_Digest):
    """The digests of Arrow columns, one for each name."""

    def __init__(self, name: str = "", position: Position | None = None) -> None:
        super().__init__(name, position)
        self._hashes: defaultdict[str, defaultdict[str, Any]] = defaultdict(
            lambda: defaultdict(_hash)
        )

    def value(self) -> dict[str, str]:
        """Return the digest of each column."""
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


def _parts(column: pa.Array) -> Iterator[tuple[str, Any]]:
    """Yield a column as bytes that do not depend on how it is divided."""
    arrow = extra("pyarrow", "Parquet")
    types, kind = arrow.types, column.type
    valid = valid_rows(column)
    yield "valid", np.ones(len(column), bool) if valid is None else valid
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        yield "values", np.ascontiguousarray(numbers(column))
    elif is_moment(kind):
        yield "values", np.ascontiguousarray(numbers(column, np.int64))
    elif types.is_string(kind) or types.is_large_string(kind):
        ends = text_ends(column)
        yield "lengths", np.diff(ends).astype(np.int64)
        yield "values", memoryview(column.buffers()[2] or b"")[ends[0] : ends[-1]]
    elif not types.is_null(kind):
        rows = (_as_json(column.slice(row, 1)) for row in range(len(column)))
        yield "values", b"\n".join([*rows, b""])


def _as_json(value: pa.Array) -> bytes:
    try:
        return msgspec.json.encode(value.to_pylist(), enc_hook=str)
    except (ValueError, OverflowError):  # such as invalid UTF-8, or a year after 9999
        return b""

"""What was read of a file, as a hash: by it a later run knows the file again.

Governing rule: the same records give the same hash, however they are divided, packed or ended; so
a file that grew, or was compressed anew, is the same file, and one with other records is not.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from abers.exceptions import StateError
from abers_connectors.extras import extra
from abers_connectors.files.lines import HEAD, Oversized

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from abers_connectors.files.lines import Line
    from abers_connectors.records import Position

__all__ = ["ColumnDigest", "TextDigest", "require_same"]

_hash = partial(blake2b, digest_size=16)


def require_same(name: str, position: Position, digest: object) -> None:
    """Refuse, with a StateError, an input whose records are not those that were read before.

    Parameters
    ----------
    name
        Of the input.
    position
        Up to which it was read before.
    digest
        Of the records that it has up to there now.
    """
    if not _agree(position["digest"], digest):
        msg = (
            f"input {name} is not what was read before: its first {position['records']} records "
            "differ; put the old file back, or remove state and outputs to start anew"
        )
        raise StateError(msg)


def _agree(before: object, now: object) -> bool:
    if not isinstance(before, dict) or not isinstance(now, dict):
        return before == now
    # Another mapping looks at other columns; what both look at has to agree.
    common = before.keys() & now.keys()
    return bool(common) and all(before[name] == now[name] for name in common)


class TextDigest:
    r"""The hash of raw records.

    Examples
    --------
    >>> one, other = TextDigest(), TextDigest()
    >>> one.add([b"a", b"b"])
    >>> other.add([b"a\r"])
    >>> other.add([b"b"])
    >>> one.value() == other.value()
    True
    """

    def __init__(self) -> None:
        self._hash = _hash()

    def add(self, raws: Iterable[Line]) -> None:
        """Take some records, none of them blank."""
        self._hash.update(b"".join([_essence(raw) + b"\n" for raw in raws]))

    def value(self) -> str:
        """Give the hash of all of them."""
        return self._hash.hexdigest()


def _essence(raw: Line) -> bytes:
    """Give of a record what neither its end nor the allowed length has a part in."""
    if isinstance(raw, Oversized):
        return b"%b %d" % (raw.head, raw.size)
    text = raw.strip()
    return text if len(text) <= HEAD else b"%b %d" % (text[:HEAD], len(text))


class ColumnDigest:
    """The hashes of columns of Arrow, one for each name."""

    def __init__(self) -> None:
        self._hashes: defaultdict[str, defaultdict[str, Any]] = defaultdict(
            lambda: defaultdict(_hash)
        )

    def add(self, table: pa.RecordBatch) -> None:
        """Take some rows."""
        for name, column in zip(table.schema.names, table.columns, strict=True):
            for part, data in _parts(column):
                self._hashes[name][part].update(data)

    def value(self) -> dict[str, str]:
        """Give the hash of each column."""
        return {
            name: _hash(b"".join(parts[part].digest() for part in sorted(parts))).hexdigest()
            for name, parts in self._hashes.items()
        }


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

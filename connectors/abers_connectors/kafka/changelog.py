"""The changelog of a shard: what each transaction did to it, as records of a topic.

Governing rule: a reader gets back exactly what was written, or a StateError. Each record is
under a seal of its own, which names the format; a batch too large for one record is in
several of the same transaction, each of which says which part it is; numbers of batches have
no gap.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import msgspec
import numpy as np

from abers._sealed import REMEDY, seal, unseal
from abers.exceptions import ParameterError, StateError
from abers.stream import Entry  # noqa: TC001 - msgspec reads the annotations

__all__ = ["LIMIT", "MAGIC", "NONE", "Applied", "Assembler", "encode"]

NONE = -1
"""The offset of an input that there is not."""

MAGIC = b"abersCL\x02"  # the last byte is the version of the format
LIMIT = 512 * 1024  # bytes of a record; brokers and clients take twice as many by default

_WHAT = "a record of a changelog"
_MOST = (1 << 63) - 1  # of an offset, and of the number of a batch
_PART = struct.Struct("<QII")  # number of the batch, part k of m
_AROUND = len(seal(MAGIC, b"")) + _PART.size  # bytes of a record beside its piece


class Applied(msgspec.Struct, array_like=True, frozen=True):
    """What one transaction did to one shard.

    Attributes
    ----------
    engine
        Version of abers that wrote it.
    number
        Of the batch, from 0, without gaps.
    following
        Offsets of observations and of labels that are to be applied next; -1 for labels where
        there is one input.
    inputs
        u1 for each consumed record, in the order in which they were applied: 0 from the topic
        of observations, 1 from that of labels.
    offsets
        i8, little-endian: the offset of each.
    dead
        Row and reason of each record that became no event, ascending; "tombstone" is one.
    entry
        What was decided of the events, which are the other records in their order; None if
        there are none.

    Examples
    --------
    >>> applied = Applied("1.0", 0, (1, -1), bytes(1), bytes(8), [(0, "tombstone")], None)
    >>> (record,) = encode(applied)
    >>> Assembler().add(record) == applied
    True
    """

    engine: str
    number: int
    following: tuple[int, int]
    inputs: bytes
    offsets: bytes
    dead: list[tuple[int, str]]
    entry: Entry | None


class _Part(NamedTuple):
    number: int
    k: int
    m: int
    piece: memoryview


def encode(applied: Applied, limit: int = LIMIT) -> list[bytes]:
    """Write down what a transaction did.

    Parameters
    ----------
    applied
        It.
    limit
        Bytes that a record may have at most.

    Returns
    -------
    list of bytes
        The values of one or more records, to be sent in this order in one transaction.

    Raises
    ------
    ParameterError
        If the limit leaves no room.
    """
    size = limit - _AROUND
    if size < 1:
        msg = f"limit={limit} leaves no room for anything; give more than {_AROUND} bytes"
        raise ParameterError(msg)
    payload = msgspec.msgpack.encode(applied)
    pieces = [payload[start : start + size] for start in range(0, len(payload), size)]
    return [
        seal(MAGIC, _PART.pack(applied.number, k, len(pieces)) + piece)
        for k, piece in enumerate(pieces)
    ]


class Assembler:
    """Read the records of a changelog in their order.

    Parameters
    ----------
    number
        Of the batch that comes first; None takes the changelog up wherever it begins.

    Notes
    -----
    After a StateError there is no going on: what comes next has nothing to follow.
    """

    def __init__(self, number: int | None = None) -> None:
        self._number = number
        self._pieces: list[memoryview] = []
        self._parts = 0

    def add(self, value: bytes) -> Applied | None:
        """Read one record.

        Parameters
        ----------
        value
            Of the record.

        Returns
        -------
        Applied or None
            What the transaction did whose last part this is; None if parts are to follow.

        Raises
        ------
        StateError
            If the record is damaged or of an unknown format, or does not come next.
        """
        part = _part(value)
        self._require_next(part)
        self._number = part.number
        self._pieces.append(part.piece)
        if len(self._pieces) < part.m:
            self._parts = part.m
            return None
        payload = b"".join(self._pieces)
        self._pieces, self._number = [], part.number + 1
        return _read(payload, part.number)

    def _require_next(self, part: _Part) -> None:
        number, k = self._number, len(self._pieces)
        same = not k or part.m == self._parts
        if (number is None or part.number == number) and part.k == k and same:
            return
        expected = f"part {k + 1} of batch {'any' if number is None else number}"
        msg = (
            f"the changelog has a gap: part {part.k + 1} of {part.m} of batch {part.number} came "
            f"where {expected} was due; restore the topic, or start from a later snapshot"
        )
        raise StateError(msg)


def _part(value: bytes) -> _Part:
    payload = unseal(MAGIC, bytes(value), _WHAT)
    if len(payload) < _PART.size:
        msg = f"{_WHAT} is too short; {REMEDY}"
        raise StateError(msg)
    number, k, m = _PART.unpack_from(payload)
    part = _Part(number, k, m, payload[_PART.size :])
    if not part.k < part.m:
        msg = f"{_WHAT} is part {part.k + 1} of {part.m}; {REMEDY}"
        raise StateError(msg)
    return part


def _read(payload: bytes, number: int) -> Applied:
    try:
        applied = msgspec.msgpack.decode(payload, type=Applied)
        _require_whole(applied, number)
    except (msgspec.MsgspecError, ValueError) as error:
        msg = f"batch {number} of the changelog is garbled ({error}); {REMEDY}"
        raise StateError(msg) from None
    return applied


def _require_whole(applied: Applied, number: int) -> None:
    """See that the columns belong together; what an entry says is looked at when it is redone."""
    inputs, rows = np.frombuffer(applied.inputs, np.uint8), [row for row, _ in applied.dead]
    events = 0 if applied.entry is None else len(applied.entry.labels)
    wholes = {
        "number": applied.number == number <= _MOST,
        "following": all(NONE <= one <= _MOST for one in applied.following),
        "inputs": bool((inputs <= 1).all()),
        "offsets": len(applied.offsets) == 8 * len(inputs),
        "dead": all(a < b for a, b in zip([-1, *rows], [*rows, len(inputs)], strict=True)),
        "events": events == len(inputs) - len(rows),
    }
    for what, whole in wholes.items():
        if not whole:
            raise ValueError(what)

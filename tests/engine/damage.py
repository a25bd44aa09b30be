"""Damage that a checksum does not show: wrong content under a right seal.

What is damaged is what it means, not its bytes: a number is one out of range, a
column is of another length or order, a piece is left out or there twice. The same seed does the
same damage.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.arrays import packed, parsed
from abers.serialization import pack, seal, unpack

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

__all__ = ["Path", "changed", "damaged", "damaged_blob"]

Path = tuple[Any, ...]

_MAGIC, _DIGEST = 8, 16
# Bytes before the columns.
_HEADERS = {b"abersVA": 41, b"abersIR": 57, b"abersIU": 40, b"abersMC": 32}
_CROSS = b"abersCV"
_INTEGERS = (
    *(0, 1, -1, 2, -2, 255, 256, 4_096, 4_097, 10**9),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**53 - 1, 2**53, -(2**53), 2**58, 2**62),
    *(2**63 - 1, -(2**63), 2**63, 2**64 - 1),
)
_FLOATS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 1 / 3, math.nan, math.inf, -math.inf, 1e-300, 1e300),
    *(-1e300, 5e-324, 1.7976931348623157e308, 2.0**62, 2.0**53),
)
_OTHERS: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, math.nan, "", "x", b"", b"x", bytes(8)),
    *([], [0], [None], {}, {"x": 0}, [[]], "\u00e9", "\0", 2**64 - 1, -(2**63)),
)


def damaged(value: Any, rng: random.Random, but: frozenset[str] = frozenset()) -> Any:  # noqa: ANN401
    """Return a structure with one thing wrong; keys in `but` are left alone."""
    paths = [*_paths(value, (), but)]
    path = rng.choice(paths)
    return changed(value, path, lambda one: _wrong(one, rng))


def _paths(value: Any, path: Path, but: frozenset[str]) -> list[Path]:  # noqa: ANN401
    found = [path] if path else []
    items: Any = ()
    if isinstance(value, dict):
        items = [(key, one) for key, one in value.items() if key not in but]
    elif isinstance(value, list):
        items = enumerate(value)
    for key, one in items:
        found += _paths(one, (*path, key), but)
    return found


def changed(value: Any, path: Path, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    """Return a structure in which what is at a path is another."""
    if not path:
        return change(value)
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], change)
    return copy


def _wrong(value: Any, rng: random.Random) -> Any:  # noqa: ANN401, PLR0911 - a type each
    """Return something else in the place of a value, mostly of its type."""
    if rng.random() < 0.08:
        return rng.choice(_OTHERS)
    if isinstance(value, bytes):
        if value.startswith(b"abers"):
            return damaged_blob(value, rng)
        return _bytes(value, rng)
    if isinstance(value, bool) or value is None:
        return rng.choice(_OTHERS)
    if isinstance(value, int):
        return rng.choice((*_INTEGERS, value + 1, value - 1, -value, 2 * value))
    if isinstance(value, float):
        return _float(value, rng)
    if isinstance(value, str):
        return rng.choice(("", "x", value + "x", value[:-1], value[::-1], value * 2))
    if isinstance(value, dict):
        return _mapping(value, rng)
    return _list(value, rng)


def _float(value: float, rng: random.Random) -> float:
    return rng.choice((*_FLOATS, value + 1.0, value - 1.0, -value, 2.0 * value, value * 1e9))


def _mapping(value: dict[Any, Any], rng: random.Random) -> dict[Any, Any]:
    copy = dict(value)
    if copy and rng.random() < 0.5:
        del copy[rng.choice([*copy])]
    else:
        copy["x"] = rng.choice(_OTHERS)
    return copy


def _list(value: list[Any], rng: random.Random) -> list[Any]:
    copy, at = [*value], rng.randrange(len(value) + 1)
    there = rng.randrange(len(value)) if value else 0
    match rng.randrange(6):
        case 0:
            return []
        case 1:
            return copy[:at]
        case 2:
            del copy[there : there + 1]
        case 3:
            copy.insert(at, rng.choice(value) if value else rng.choice(_OTHERS))
        case 4:
            rng.shuffle(copy)
        case _:
            copy.insert(at, rng.choice(_OTHERS))
    return copy


def _bytes(value: bytes, rng: random.Random) -> bytes:
    """Damage a column, whatever its type is."""
    width = rng.choice([one for one in (1, 4, 8, 8) if len(value) % one == 0])
    units = [value[at : at + width] for at in range(0, len(value), width)]
    match rng.randrange(8):
        case 0:
            return value[: rng.randrange(len(value) + 1)]
        case 1:
            return b"".join(units[: rng.randrange(len(units) + 1)])
        case 2:
            return value + rng.choice((bytes(width), b"x", value, b"\xff" * width))
        case 3:
            rng.shuffle(units)
        case _ if units:
            units[rng.randrange(len(units))] = _unit(width, rng)
    return b"".join(units)


def _unit(width: int, rng: random.Random) -> bytes:
    if width == 8 and rng.random() < 0.5:
        return struct.pack("<d", rng.choice(_FLOATS))
    number = rng.choice(_INTEGERS) % (1 << 8 * width)
    return number.to_bytes(width, "little")


# Calibrators


def damaged_blob(blob: bytes, rng: random.Random) -> bytes:
    """Return a saved calibrator with one thing wrong, under a right checksum."""
    magic, payload = blob[:_MAGIC], blob[_MAGIC:-_DIGEST]
    kind = magic[:-1]
    if kind in _HEADERS:
        made = _columns(payload, _HEADERS[kind], rng)
    elif kind == _CROSS:
        head = payload[:16]
        if rng.random() < 0.2:
            made = _bytes(head, rng) + payload[16:]
        else:
            made = head + _pieces(payload[16:], rng)
    else:
        # More steps of a fit are right, and take for ever.
        made = _pieces(payload, rng, int(kind == b"abersGB"))
    return seal(magic, made)


def _pieces(payload: bytes, rng: random.Random, first: int = 0) -> bytes:
    pieces = unpack(memoryview(payload))
    if rng.random() < 0.1:
        return pack([one for one in _list(pieces, rng) if isinstance(one, bytes)])
    at = rng.randrange(first, len(pieces))
    pieces[at] = (
        _wrong(pieces[at], rng) if pieces[at].startswith(b"abers") else _piece(pieces[at], rng)
    )
    return pack([one if isinstance(one, bytes) else b"" for one in pieces])


def _piece(piece: bytes, rng: random.Random) -> bytes:
    """Damage a piece: a text, a header, or a column with its letter and length."""
    if piece.startswith(b"["):
        return rng.choice((piece[:-1], b"[]", b"{}", piece.replace(b"true", b"false"), b"[1e999]"))
    if len(piece) % 8 == 1 and piece[:1] == b"d":  # of `packed`
        return piece[:9] + _bytes(piece[9:], rng)
    return _bytes(piece, rng)


def _columns(payload: bytes, header: int, rng: random.Random) -> bytes:
    """Damage a header, or one of the columns behind it."""
    head = payload[:header]
    if rng.random() < 0.3:
        head = _bytes(head[: header // 8 * 8], rng) + head[header // 8 * 8 :]
        return head + payload[header:]
    columns = [column for _, column in parsed(payload, header)]
    at = rng.randrange(len(columns))
    columns[at] = _column(columns[at], rng)
    return head + b"".join(part for one in columns for part in packed(one))


def _column(column: np.ndarray[Any, Any], rng: random.Random) -> np.ndarray[Any, Any]:
    kind = column.dtype
    values: list[Any] = _list(column.tolist(), rng) if rng.random() < 0.3 else column.tolist()
    values = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
    if values and rng.random() < 0.8:
        at = rng.randrange(len(values))
        values[at] = _float(values[at], rng) if kind.kind == "f" else rng.choice(_INTEGERS)
    if kind.kind == "f":
        return np.array(values, np.float64)
    clipped = [min(max(int(one), 0), 2**64 - 1) for one in values if math.isfinite(one)]
    return np.array(clipped, np.min_scalar_type(max(clipped, default=0)))

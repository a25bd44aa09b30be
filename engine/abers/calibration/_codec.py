"""The saved form of a calibrator: magic, version, columns, checksum.

Governing rule: the bytes are a function of what is remembered alone, never of
how it is stored, so two calibrators that answer alike have equal bytes, on
either backend; and bytes that no calibrator could have written are refused.

Layout, little-endian, inside a seal (see `abers._sealed`): a fixed header and the columns, each a
letter for its type, a count, and the raw values. Without forgetting the columns
are the groups (score, weight of label 0, weight of label 1) in score order;
with forgetting the observations (score, label, weight, time), by arrival for a
window, else in the order of time, score, label, weight. Weights are whole
numbers of 2**-30, or of 1 where all of them are (`unit`), in the narrowest type.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from abers._arrays import is_whole, narrow, packed, parsed, total, widened
from abers._backend import core
from abers._saved import MOST
from abers._sealed import REMEDY
from abers.calibration import _checks
from abers.exceptions import StateError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers._arrays import Integers
    from abers._core import CalibrationSet

MAGIC = b"abersVA\x01"
_HEADER = struct.Struct("<QddQQB")


class _Header(NamedTuple):
    window: int
    max_age: float
    half_life: float
    size: int
    late: int
    unit: int


def dump(held: CalibrationSet, max_age: float) -> bytes:
    """Write out all that a calibration set remembers."""
    if held.window or held.lifetime:
        scores, labels, weights, times = _observations(held)
        unit = is_whole(weights)
        columns = [scores, labels, narrow(weights, unit=unit), *([times] if held.lifetime else [])]
    else:
        scores, negatives, positives = _groups(held)
        unit = is_whole(negatives) and is_whole(positives)
        columns = [scores, narrow(negatives, unit=unit), narrow(positives, unit=unit)]
    header = _Header(held.window, max_age, held.half_life, held.size, held.late, unit)
    return b"".join([_HEADER.pack(*header), *(part for c in columns for part in packed(c))])


def load(payload: bytes | memoryview) -> tuple[CalibrationSet, _Header]:
    """Make the calibration set that `dump` wrote, or raise a StateError."""
    try:
        header, columns = _parse(payload)
    except (struct.error, ValueError, KeyError, OverflowError) as error:
        msg = f"saved calibrator is cut short or garbled ({error}); {REMEDY}"
        raise StateError(msg) from None
    forgets = _check_header(header)
    ages = (header.max_age + 0.0, header.half_life + 0.0)  # no calibrator writes -0.0
    held: CalibrationSet = core.CalibrationSet(header.window, *ages)
    shape = "duu" + "d" * (forgets and not header.window)
    kinds = "".join("d" if letter == "d" else "u" for letter, _ in columns)
    _require(kinds == shape and len({len(column) for _, column in columns}) == 1, "columns")
    arrays = [column for _, column in columns]
    (_fill_observations if forgets else _fill_groups)(held, header, arrays)
    _require(dump(held, ages[0]) == bytes(payload), "form")  # a memoryview compares slowly
    return held, header


def _check_header(header: _Header) -> bool:
    forgets = sum(map(bool, header[:3]))
    ages = (header.max_age, header.half_life)
    sound = (
        forgets <= 1
        and all(math.isfinite(age) and age >= 0 for age in ages)
        and header.window < 1 << 63
        and max(header.size, header.late) <= MOST
        and header.unit in {0, 1}
        and ((any(ages) and header.size > 0) or not header.late)
    )
    _require(sound, "header")
    return bool(forgets)


def _fill_groups(held: CalibrationSet, header: _Header, columns: list[NDArray[Any]]) -> None:
    scores = columns[0] + 0.0
    negatives, positives = (_units(column, header, held.limit) for column in columns[1:])
    # What ascends strictly holds no NaN, and is finite if its ends are.
    _require(
        bool(
            (scores[:-1] < scores[1:]).all() and np.isfinite(scores[[0, -1][: len(scores)]]).all()
        ),
        "scores",
    )
    _require(bool((negatives | positives).all()), "weights")
    weight = total(negatives) + total(positives)
    _require(header.size <= weight <= held.limit and bool(header.size) == bool(weight), "weights")
    held.load_groups(scores, negatives, positives, header.size)


def _fill_observations(held: CalibrationSet, header: _Header, columns: list[NDArray[Any]]) -> None:
    scores, labels = columns[:2]
    weights = _units(columns[2], header, held.limit)
    times = columns[3] if held.lifetime else np.full(len(scores), np.nan)
    _require(bool(np.isfinite(scores).all() and (labels <= 1).all()), "scores or labels")
    _require(bool((weights > 0).all()) and total(weights) <= held.limit, "weights")
    if held.lifetime:
        _require(bool(np.isfinite(times).all()), "times")
        _require(not len(times) or times[0] >= times[-1] - held.lifetime, "times")
        furthest = float(np.abs(times).max(initial=0.0))
        _require(not held.half_life or _checks.resolvable(furthest, held.half_life), "times")
    else:
        _require(len(scores) <= held.window, "window")
    held.load_observations(scores + 0.0, labels.astype(np.uint8), weights, times + 0.0, header.late)


def _require(condition: bool, what: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not condition:
        msg = f"saved calibrator is inconsistent ({what}); {REMEDY}"
        raise StateError(msg)


def _parse(payload: bytes | memoryview) -> tuple[_Header, list[tuple[str, NDArray[Any]]]]:
    return _Header(*_HEADER.unpack_from(payload)), parsed(payload, _HEADER.size)


def _groups(held: CalibrationSet) -> tuple[NDArray[np.float64], Integers, Integers]:
    count = held.group_count()
    columns = (np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64))
    held.groups(*columns)
    return columns


def _observations(held: CalibrationSet) -> tuple[NDArray[Any], ...]:
    count = held.observation_count()
    columns = (
        np.empty(count),
        np.empty(count, np.uint8),
        np.empty(count, np.int64),
        np.empty(count),
    )
    held.observations(*columns)
    return columns


def _units(column: NDArray[Any], header: _Header, limit: int) -> Integers:
    units = widened(column, limit, unit=bool(header.unit))
    _require(units is not None, "weights")
    return cast("Integers", units)

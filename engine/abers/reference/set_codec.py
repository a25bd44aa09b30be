"""The saved form of a calibration set.

The saved form depends only on the observations, never on how they are stored, so two sets that
predict alike have equal bytes, on either backend. Bytes that no calibrator could have written are
refused.

Layout, little-endian: a fixed header and the columns, each a letter for its type, a count, and the
raw values. Without forgetting the columns are the groups (score, weight of label 0, weight of label
1) in score order; with forgetting the observations (score, label, weight, time), by arrival for a
window, else in the order of time, score, label, weight. Weights are whole numbers of 2**-30, or of
1 where all of them are (`unit`), in the narrowest type. The last byte of the header has the bits 1
for `unit`, and 2 for rates of labels other than 1, which follow it.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from abers.arrays import is_whole, narrow, packed, parsed, total, widened
from abers.serialization import MAX_COUNT, require
from abers.validation import resolvable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.arrays import Integers

    CalibrationSet = Any  # of `calibration_set`, which imports this module

__all__ = ["load", "save"]

_HEADER_STRUCT = struct.Struct("<QddQQB")
_RATES = struct.Struct("<dd")
_UNIT, _HAS_RATES = 1, 2
_ALL = (1.0, 1.0)  # the rates where every label comes
LEAST_RATE = 1e-6


class _Header(NamedTuple):
    window: int
    max_age: float
    half_life: float
    size: int
    late: int
    flags: int

    @property
    def unit(self) -> bool:
        return bool(self.flags & _UNIT)


def save(held: CalibrationSet) -> bytes:
    """Return the observations and the rule of a calibration set as bytes."""
    if held.window or held.lifetime:
        scores, labels, weights, times = _observations(held)
        unit = is_whole(weights)
        columns = [scores, labels, narrow(weights, unit=unit), *([times] if held.lifetime else [])]
    else:
        scores, negatives, positives = _groups(held)
        unit = is_whole(negatives) and is_whole(positives)
        columns = [scores, narrow(negatives, unit=unit), narrow(positives, unit=unit)]
    max_age = 0.0 if held.half_life else held.lifetime
    has_rates = held.label_rates != _ALL
    flags = unit * _UNIT + has_rates * _HAS_RATES
    header = _Header(held.window, max_age, held.half_life, held.size, held.late, flags)
    head = _HEADER_STRUCT.pack(*header) + (_RATES.pack(*held.label_rates) if has_rates else b"")
    return b"".join([head, *(part for c in columns for part in packed(c))])


def load(kind: type[CalibrationSet], payload: bytes) -> CalibrationSet:
    """Return the set that `save` wrote; bytes that it cannot have written are an error."""
    header = _Header(*_HEADER_STRUCT.unpack_from(payload))
    forgets = _check_header(header)
    at, rates = _HEADER_STRUCT.size, _ALL
    if header.flags & _HAS_RATES:
        rates = _RATES.unpack_from(payload, at)
        at += _RATES.size
        require(all(LEAST_RATE <= rate <= 1.0 for rate in rates), "label_rates")
    columns = parsed(payload, at)
    ages = (header.max_age + 0.0, header.half_life + 0.0)  # no calibrator writes -0.0
    held = kind(header.window, *ages, rates)
    shape = "duu" + "d" * (forgets and not header.window)
    kinds = "".join("d" if letter == "d" else "u" for letter, _ in columns)
    require(kinds == shape and len({len(column) for _, column in columns}) == 1, "columns")
    arrays = [column for _, column in columns]
    (_fill_observations if forgets else _fill_groups)(held, header, arrays)
    # Only the canonical form is taken: otherwise equal sets would have different bytes.
    require(save(held) == payload, "form")
    return held


def _check_header(header: _Header) -> bool:
    """Check a saved header, and return whether the set forgets."""
    forgets = sum(map(bool, header[:3]))
    ages = (header.max_age, header.half_life)
    sound = (
        forgets <= 1
        and all(math.isfinite(age) and age >= 0 for age in ages)
        and header.window < 1 << 63
        and max(header.size, header.late) <= MAX_COUNT
        and header.flags <= _UNIT | _HAS_RATES
        and ((any(ages) and header.size > 0) or not header.late)
    )
    require(sound, "header")
    return bool(forgets)


def _fill_groups(held: CalibrationSet, header: _Header, columns: list[NDArray[Any]]) -> None:
    scores = columns[0] + 0.0
    negatives, positives = (_units(column, header, held.limit) for column in columns[1:])
    # What ascends strictly holds no NaN, and is finite if its ends are.
    ascending = bool((scores[:-1] < scores[1:]).all())
    require(ascending and np.isfinite(scores[[0, -1][: len(scores)]]).all(), "scores")
    require(bool((negatives | positives).all()), "weights")
    weight = total(negatives) + total(positives)
    require(header.size <= weight <= held.limit and bool(header.size) == bool(weight), "weights")
    held.load_groups(scores, negatives, positives, header.size)


def _fill_observations(held: CalibrationSet, header: _Header, columns: list[NDArray[Any]]) -> None:
    """Check saved observations, and load them into an empty set."""
    scores, labels = columns[:2]
    weights = _units(columns[2], header, held.limit)
    times = columns[3] if held.lifetime else np.full(len(scores), np.nan)
    require(bool(np.isfinite(scores).all() and (labels <= 1).all()), "scores or labels")
    require(bool((weights > 0).all()) and total(weights) <= held.limit, "weights")
    if held.lifetime:
        require(bool(np.isfinite(times).all()), "times")
        require(not len(times) or times[0] >= times[-1] - held.lifetime, "times")
        furthest = float(np.abs(times).max(initial=0.0))
        require(not held.half_life or resolvable(furthest, held.half_life), "times")
    else:
        require(len(scores) <= held.window, "window")
    held.load_observations(scores + 0.0, labels.astype(np.uint8), weights, times + 0.0, header.late)


def _groups(held: CalibrationSet) -> tuple[NDArray[np.float64], Integers, Integers]:
    """Return scores, and weights of both labels in units, a row each score."""
    count = held.group_count()
    columns = (np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64))
    held.groups(*columns)
    return columns


def _observations(held: CalibrationSet) -> tuple[NDArray[Any], ...]:
    """Return scores, labels, weights in units and times of a set that forgets."""
    count = held.observation_count()
    kinds = (np.float64, np.uint8, np.int64, np.float64)
    columns: tuple[NDArray[Any], ...] = tuple(np.empty(count, kind) for kind in kinds)
    held.observations(*columns)
    return columns


def _units(column: NDArray[Any], header: _Header, limit: int) -> Integers:
    units = widened(column, limit, unit=header.unit)
    require(units is not None, "weights")
    return cast("Integers", units)

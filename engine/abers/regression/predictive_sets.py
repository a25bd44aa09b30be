"""Predictive sets of the core in their saved form: header, grid, and what is remembered.

The bytes are a function of what is remembered alone, and bytes that no calibrator could have
written are refused.

After a fixed header come columns (see `abers.arrays`): the grid, empty without
one, then score, label, weight and, with an age, time of what is remembered: without forgetting the
distinct pairs of score and label in order, with a window the observations by arrival, with an age
those in the order of time, score, label, weight.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from abers import validation
from abers.arrays import is_whole, narrow, packed, parsed, total, widened
from abers.backends import core
from abers.serialization import MAX_COUNT, require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers._core import PredictiveSet
    from abers.arrays import Floats, Integers

    Rows: TypeAlias = tuple[Floats, Floats, Integers, Floats]

__all__ = ["Header", "dump", "load", "rows"]

_HEADER_STRUCT = struct.Struct("<QddddQQB")


class Header(NamedTuple):
    """The values saved before the columns."""

    window: int
    max_age: float
    half_life: float
    lo: float  # ends of the support; infinite without one
    hi: float
    size: int
    late: int
    unit: int


def rows(held: PredictiveSet) -> Rows:
    """Return what is remembered: scores, labels, weights and times."""
    forgets = held.window or held.lifetime
    n = held.observation_count() if forgets else held.pooled_count()
    columns = (np.empty(n), np.empty(n), np.empty(n, np.int64), np.full(n, np.nan))
    if forgets:
        held.observations(*columns)
    else:
        held.pooled(*columns[:3])
    return columns


def dump(held: PredictiveSet, support: tuple[float, float], grid: Floats) -> bytes:
    """Return the saved form of what a calibrator remembers."""
    scores, labels, weights, times = rows(held)
    unit = is_whole(weights)
    columns = [grid, scores, labels, narrow(weights, unit=unit)]
    columns += [times] if held.lifetime else []
    max_age = 0.0 if held.half_life else held.lifetime
    header = Header(held.window, max_age, held.half_life, *support, held.size, held.late, unit)
    return b"".join([_HEADER_STRUCT.pack(*header), *(part for c in columns for part in packed(c))])


def load(payload: bytes | memoryview) -> tuple[PredictiveSet, Header, Floats]:
    """Return the set that `dump` saved, its header and its grid; refuse other bytes."""
    header = Header(*_HEADER_STRUCT.unpack_from(payload))
    columns = parsed(payload, _HEADER_STRUCT.size)
    _check_header(header)
    ages = (header.max_age + 0.0, header.half_life + 0.0)  # no calibrator writes -0.0
    shape = "dddu" + "d" * any(ages)
    kinds = "".join("d" if letter == "d" else "u" for letter, _ in columns)
    require(kinds == shape and len({len(column) for _, column in columns[1:]}) == 1, "columns")
    held: PredictiveSet = core.PredictiveSet(header.window, *ages)
    arrays = [column for _, column in columns]
    grid = arrays[0] + 0.0
    require(bool(np.isfinite(grid).all() and (grid[:-1] < grid[1:]).all()), "grid")
    require(((header.lo <= grid) & (grid <= header.hi)).all(), "support")
    _fill(held, header, arrays[1:])
    return held, header, grid


def _check_header(header: Header) -> None:
    ages = (header.max_age, header.half_life)
    sound = (
        sum(map(bool, header[:3])) <= 1
        and all(math.isfinite(age) and age >= 0 for age in ages)
        and header.window < 1 << 63
        and max(header.size, header.late) <= MAX_COUNT
        and header.unit in {0, 1}
        and header.lo <= header.hi
        and ((any(ages) and header.size > 0) or not header.late)
    )
    require(sound, "header")


def _fill(held: PredictiveSet, header: Header, columns: list[NDArray[Any]]) -> None:
    """Check saved columns, and load them into an empty set."""
    scores, labels = columns[0] + 0.0, columns[1] + 0.0
    units = widened(columns[2], held.limit, unit=bool(header.unit))
    times = columns[3] + 0.0 if held.lifetime else np.full(len(scores), np.nan)
    require(bool(np.isfinite(scores).all() and np.isfinite(labels).all()), "scores or labels")
    require(bool(((header.lo <= labels) & (labels <= header.hi)).all()), "support")
    sound = units is not None and bool((units > 0).all()) and total(units) <= held.limit
    require(sound, "weights")
    units = cast("Integers", units)
    if not (held.window or held.lifetime):
        weight = total(units)
        require(header.size <= weight and bool(header.size) == bool(weight), "weights")
        ascends = (scores[:-1] < scores[1:]) | (
            (scores[:-1] == scores[1:]) & (labels[:-1] < labels[1:])
        )
        require(bool(ascends.all()), "order")
        held.load_pooled(scores, labels, units, header.size)
        return
    if held.lifetime:
        require(bool(np.isfinite(times).all()), "times")
        require(not len(times) or times[0] >= times[-1] - held.lifetime, "times")
        furthest = float(np.abs(times).max(initial=0.0))
        require(not held.half_life or validation.resolvable(furthest, held.half_life), "times")
    else:
        require(len(scores) <= held.window, "window")
    held.load_observations(scores, labels, units, times, header.late)

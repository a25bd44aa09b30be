"""The saved form of a regression calibrator: header, grid, and what is remembered.

Governing rule: as in `abers.calibration._codec`: the bytes are a function of what is remembered
alone, and bytes that no calibrator could have written are refused.

After a fixed header come columns (see `abers._arrays`): the thresholds of a grid, empty without
one, then score, label, weight and, with an age, time of what is remembered: without forgetting the
distinct pairs of score and label in order, with a window the observations by arrival, with an age
those in the order of time, score, label, weight.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from abers._arrays import is_whole, narrow, packed, parsed, total, widened
from abers._backend import core
from abers._saved import MOST
from abers._sealed import REMEDY
from abers.calibration import _checks
from abers.exceptions import StateError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers._arrays import Floats, Integers
    from abers._core import PredictiveSet

    Rows: TypeAlias = tuple[Floats, Floats, Integers, Floats]

__all__ = ["MAGIC", "Header", "dump", "load", "rows"]

MAGIC = b"abersIR\x01"
_HEADER = struct.Struct("<QddddQQB")


class Header(NamedTuple):
    """What is saved beside the columns."""

    window: int
    max_age: float
    half_life: float
    lo: float  # ends of the support; infinite without one
    hi: float
    size: int
    late: int
    unit: int


def rows(held: PredictiveSet) -> Rows:
    """Write out what is remembered: scores, labels, weights and times."""
    forgets = held.window or held.lifetime
    n = held.observation_count() if forgets else held.pooled_count()
    columns = (np.empty(n), np.empty(n), np.empty(n, np.int64), np.full(n, np.nan))
    if forgets:
        held.observations(*columns)
    else:
        held.pooled(*columns[:3])
    return columns


def dump(
    held: PredictiveSet, max_age: float, support: tuple[float, float], thresholds: Floats
) -> bytes:
    """Write out all that a calibrator remembers."""
    scores, labels, weights, times = rows(held)
    unit = is_whole(weights)
    columns = [thresholds, scores, labels, narrow(weights, unit=unit)]
    columns += [times] if held.lifetime else []
    header = Header(held.window, max_age, held.half_life, *support, held.size, held.late, unit)
    return b"".join([_HEADER.pack(*header), *(part for c in columns for part in packed(c))])


def load(payload: bytes | memoryview) -> tuple[PredictiveSet, Header, Floats]:
    """Make the set that `dump` wrote, its header and its thresholds, or raise a StateError."""
    try:
        header = Header(*_HEADER.unpack_from(payload))
        columns = parsed(payload, _HEADER.size)
    except (struct.error, ValueError, KeyError, OverflowError) as error:
        msg = f"saved calibrator is cut short or garbled ({error}); {REMEDY}"
        raise StateError(msg) from None
    _check_header(header)
    ages = (header.max_age + 0.0, header.half_life + 0.0)  # no calibrator writes -0.0
    shape = "dddu" + "d" * any(ages)
    kinds = "".join("d" if letter == "d" else "u" for letter, _ in columns)
    _require(kinds == shape and len({len(column) for _, column in columns[1:]}) == 1, "columns")
    held: PredictiveSet = core.PredictiveSet(header.window, *ages)
    arrays = [column for _, column in columns]
    thresholds = arrays[0] + 0.0
    _require(_ascends(thresholds), "thresholds")
    spanned = ((header.lo <= thresholds) & (thresholds <= header.hi)).all()
    _require(bool(spanned), "support")
    _fill(held, header, arrays[1:])
    written = dump(held, ages[0], (header.lo, header.hi), thresholds)
    _require(written == bytes(payload), "form")
    return held, header, thresholds


def _check_header(header: Header) -> None:
    ages = (header.max_age, header.half_life)
    sound = (
        sum(map(bool, header[:3])) <= 1
        and all(math.isfinite(age) and age >= 0 for age in ages)
        and header.window < 1 << 63
        and max(header.size, header.late) <= MOST
        and header.unit in {0, 1}
        and header.lo <= header.hi
        and ((any(ages) and header.size > 0) or not header.late)
    )
    _require(sound, "header")


def _fill(held: PredictiveSet, header: Header, columns: list[NDArray[Any]]) -> None:
    scores, labels = columns[0] + 0.0, columns[1] + 0.0
    units = widened(columns[2], held.limit, unit=bool(header.unit))
    times = columns[3] + 0.0 if held.lifetime else np.full(len(scores), np.nan)
    _require(bool(np.isfinite(scores).all() and np.isfinite(labels).all()), "scores or labels")
    inside = bool(((header.lo <= labels) & (labels <= header.hi)).all())
    _require(inside, "support")
    sound = units is not None and bool((units > 0).all()) and total(units) <= held.limit
    _require(sound, "weights")
    units = cast("Integers", units)
    if not (held.window or held.lifetime):
        weight = total(units)
        _require(header.size <= weight and bool(header.size) == bool(weight), "weights")
        ascends = (scores[:-1] < scores[1:]) | (
            (scores[:-1] == scores[1:]) & (labels[:-1] < labels[1:])
        )
        _require(bool(ascends.all()), "order")
        held.load_pooled(scores, labels, units, header.size)
        return
    if held.lifetime:
        _require(bool(np.isfinite(times).all()), "times")
        _require(not len(times) or times[0] >= times[-1] - held.lifetime, "times")
        furthest = float(np.abs(times).max(initial=0.0))
        _require(not held.half_life or _checks.resolvable(furthest, held.half_life), "times")
    else:
        _require(len(scores) <= held.window, "window")
    held.load_observations(scores, labels, units, times, header.late)


def _ascends(values: Floats) -> bool:
    return bool(np.isfinite(values).all() and (values[:-1] < values[1:]).all())


def _require(condition: bool, what: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not condition:
        msg = f"saved calibrator is inconsistent ({what}); {REMEDY}"
        raise StateError(msg)

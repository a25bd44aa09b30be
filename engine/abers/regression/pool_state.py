"""Saved form of a pool of distributions: a byte string for each column."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.serialization import require
from abers.steps import NO_NUMBER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers._core import DistributionPool
    from abers.arrays import Floats, Integers

__all__ = ["dump", "load"]

_KINDS = ("<i8", "<i8", "<f8", "<f8", "<f8")
_ROUNDED = 1e-9


class _PoolColumns(NamedTuple):
    """A row a lane, but for the totals of the scores."""

    numbers: Integers
    moments: Integers
    weights: Floats
    forecasts: Floats
    scores: Floats

    @classmethod
    def empty(cls, pool: DistributionPool, lanes: int) -> _PoolColumns:
        """Make columns for a number of lanes."""
        wide = lanes * pool.experts
        return cls(
            np.empty(lanes, np.int64),
            np.empty(lanes, np.int64),
            np.empty(wide),
            np.empty(wide * pool.members),
            np.empty(pool.experts + 1),
        )


def dump(pool: DistributionPool) -> list[bytes]:
    """Return the columns of a pool as little-endian bytes."""
    columns = _PoolColumns.empty(pool, pool.lane_rows)
    pool.save(*columns)
    return [one.astype(kind).tobytes() for one, kind in zip(columns, _KINDS, strict=True)]


def load(
    pool: DistributionPool,
    pieces: Sequence[bytes],
    counts: tuple[int, int, int],
    support: tuple[float, float],
) -> None:
    """Load what `dump` returned into a pool; raise a ValueError for other columns.

    The counts are observations that ever had a lane, labels of them, and lanes that ever were.
    """
    moment, labels, most = counts
    read = [np.frombuffer(piece, kind) for piece, kind in zip(pieces, _KINDS, strict=True)]
    found = _PoolColumns(*(one.astype(one.dtype.newbyteorder("=")) for one in read))
    lanes = len(found.numbers)
    sizes = [*map(len, _PoolColumns.empty(pool, lanes))]
    require([*map(len, found)] == sizes and lanes <= most <= moment, "columns")
    require(0 <= labels <= moment, "labels")
    busy = found.numbers >= 0
    require(bool((found.numbers >= NO_NUMBER).all()), "numbers")
    require(len(np.unique(found.numbers[busy])) == np.count_nonzero(busy), "numbers")
    require(bool(((found.moments >= 0) & (found.moments < max(moment, 1))).all()), "moments")
    require(bool(((found.weights > 0.0) & (found.weights <= 1.0)).all()), "weights")
    _require_forecasts(found.forecasts.reshape(-1, pool.experts, pool.members)[busy], support)
    largest = labels * (support[1] - support[0]) * (1.0 + _ROUNDED)
    require(bool(((found.scores >= 0.0) & (found.scores <= largest)).all()), "scores")
    pool.load(moment, labels, most, *found)


def _require_forecasts(forecasts: Floats, support: tuple[float, float]) -> None:
    inside = (support[0] <= forecasts) & (forecasts <= support[1])
    ascend = forecasts[..., :-1] <= forecasts[..., 1:]
    require(bool(inside.all() and ascend.all()), "forecasts")

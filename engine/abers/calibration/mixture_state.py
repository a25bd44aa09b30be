"""Saved form of a protected mixture: a byte string for each column."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.serialization import require
from abers.steps import NO_NUMBER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers._core import Aggregation, ClassAggregation
    from abers.arrays import Floats, Integers

__all__ = ["PIECES", "dump", "load", "widen"]

_CLIP = 1e-6
_STEEPEST = 1e100  # far more than any fitted slope or level
_ROUNDED = 1e-9
_MOST_LOSS = 1 << 60  # in powers of two
_KINDS = ("<f8", "<i8", "<i8", "<i8", "<f8", "<f8")


class _Columns(NamedTuple):
    """Parameters of a mixture, and a row a lane."""

    own: Floats
    exponents: Integers
    numbers: Integers
    moments: Integers
    weights: Floats
    forecasts: Floats

    @classmethod
    def empty(cls, mixture: Aggregation | ClassAggregation, classes: int) -> _Columns:
        """Make columns for the lanes of a mixture."""
        lanes = mixture.lane_rows
        wide = lanes * mixture.experts
        return cls(
            np.empty(mixture.parameter_count),
            np.empty(mixture.experts + 1, np.int64),
            np.empty(lanes, np.int64),
            np.empty(lanes, np.int64),
            np.empty(wide),
            np.empty(wide * classes),
        )


PIECES = len(_Columns._fields)
"""Number of byte strings of a mixture."""


def dump(mixture: Aggregation | ClassAggregation, classes: int = 1) -> list[bytes]:
    """Return the columns of a mixture as little-endian bytes."""
    columns = _Columns.empty(mixture, classes)
    mixture.save(*columns)
    return [one.astype(kind).tobytes() for one, kind in zip(columns, _KINDS, strict=True)]


def load(
    mixture: Aggregation | ClassAggregation,
    pieces: Sequence[bytes],
    lanes: int,
    counts: tuple[int, int, int],
    classes: int = 1,
) -> None:
    """Load what `dump` returned into a mixture; raise a ValueError for other columns.

    The lanes are all that ever were. The counts are predictions, labels of observations that held a
    lane, and all labels. A mixture of several classes keeps a vector of each expert.
    """
    moment, labels, taught = counts
    found = [np.frombuffer(piece, kind) for piece, kind in zip(pieces, _KINDS, strict=False)]
    rows = len(found[2])
    wide = rows * mixture.experts
    sizes = (mixture.parameter_count, mixture.experts + 1, rows, rows, wide, wide * classes)
    require(tuple(map(len, found)) == sizes and rows <= lanes, "columns")
    columns = _Columns(*(one.astype(one.dtype.newbyteorder("=")) for one in found))
    busy = columns.numbers >= 0
    require(bool((columns.numbers >= NO_NUMBER).all()), "numbers")
    require(len(np.unique(columns.numbers[busy])) == np.count_nonzero(busy), "numbers")
    require(bool(((columns.moments >= 0) & (columns.moments < max(moment, 1))).all()), "moments")
    sound = (columns.exponents <= 0) & (columns.exponents >= -_MOST_LOSS)
    require(bool(sound.all()), "losses")
    require(_are_weights(columns.weights), "weights")
    forecasts = columns.forecasts.reshape(rows, mixture.experts, classes)
    if classes == 1:
        _require_parameters(columns.own)
        sound = (forecasts[busy] >= _CLIP) & (forecasts[busy] <= 1.0 - _CLIP)
    else:
        require(_are_weights(columns.own), "weights of experts")
        of_one = np.abs(forecasts[busy].sum(axis=2, keepdims=True) - 1.0) < _ROUNDED
        sound = (forecasts[busy] >= _CLIP / 2.0) & of_one  # what is clipped is divided by its sum
    require(bool(sound.all() and (forecasts[~busy] == 0.0).all()), "forecasts")
    require(not columns.moments[~busy].any(), "moments")
    mixture.load(moment, labels, taught, lanes, *columns)


def widen(mixture: ClassAggregation, wider: ClassAggregation) -> None:
    """Load a mixture into a new one of more classes, in which no observation awaits its label."""
    columns = _Columns.empty(mixture, mixture.classes)
    mixture.save(*columns)
    rows = mixture.lane_rows
    idle = columns._replace(
        numbers=np.full(rows, NO_NUMBER),
        moments=np.zeros(rows, np.int64),
        forecasts=np.zeros(rows * wider.experts * wider.classes),
    )
    wider.load(mixture.moment, mixture.labels, mixture.taught, mixture.lane_count, *idle)


def _are_weights(values: Floats) -> bool:
    return bool(((values > 0.0) & (values <= 1.0)).all())


def _require_parameters(own: Floats) -> None:
    """Check the experts: those of online Platt scaling first, then weights and products."""
    slope, level, p00, p01, p11 = own[:5].tolist()
    require(abs(slope) < _STEEPEST and abs(level) < _STEEPEST, "curve")
    covers = p01 * p01 <= p00 * p11 * (1.0 + _ROUNDED) + _ROUNDED
    require(0.0 < p00 <= 1.0 and 0.0 < p11 <= 1.0 and covers, "curvature")
    require(_are_weights(own[5:]), "weights of experts")

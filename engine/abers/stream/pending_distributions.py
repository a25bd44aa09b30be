"""The predictive distributions that wait for their labels, and their scores.

The merged CDF waits as it was predicted, by the slot of the prediction. It is scored once, by its
label, and then dropped. There are never more of them than observations that wait.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np

from abers.arrays import raw
from abers.regression import PredictiveDistribution
from abers.serialization import require
from abers.stream.layouts import Axis, Layout, spans
from abers.stream.msgpack_encoder import ARRAY, BINARY, encode, header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers
    from abers.serialization import Piece
    from abers.stream.column_types import Column
    from abers.stream.layouts import Cut

__all__ = [
    "DistributionLayout",
    "PendingDistributions",
    "SavedDistributions",
    "distribution_scores",
]

_BLOCK_DISTRIBUTIONS = 10_000  # distributions that are encoded at once


class SavedDistributions(msgspec.Struct, array_like=True):
    """CDFs behind each other, as little-endian bytes."""

    counts: memoryview  # number of thresholds of each
    supports: memoryview  # the two ends of each
    thresholds: memoryview  # where each CDF jumps
    values: memoryview  # its value before the first threshold, and those at each


class DistributionLayout(Layout):
    """`SavedDistributions`, a CDF for each observation that waits."""

    def split(self, payload: msgspec.Raw, cut: Cut) -> Iterator[bytes]:
        """Yield the CDFs of each part."""
        columns = _columns(payload, cut.size(Axis.OBSERVATIONS))
        return (_taken(columns, rows) for rows in cut.rows[Axis.OBSERVATIONS])

    def join(self, payloads: Sequence[msgspec.Raw], cut: Cut) -> bytes:
        """Return all CDFs."""
        of_parts = zip(payloads, cut.rows[Axis.OBSERVATIONS], strict=True)
        several = (_columns(one, len(rows)) for one, rows in of_parts)
        columns = [np.concatenate(each) for each in zip(*several, strict=True)]
        return _encoded(columns)


def _columns(payload: msgspec.Raw, count: int) -> list[NDArray[Any]]:
    """Return counts, supports, thresholds and values of so many saved CDFs."""
    saved = msgspec.msgpack.decode(payload, type=SavedDistributions)
    counts = np.frombuffer(saved.counts, "<u4")
    supports, thresholds, values = (
        np.frombuffer(one, "<f8") for one in (saved.supports, saved.thresholds, saved.values)
    )
    total = int(counts.sum(dtype=np.int64))
    sizes = tuple(map(len, (counts, supports, thresholds, values)))
    require(sizes == (count, 2 * count, total, total + count), "distributions")
    return [counts, supports, thresholds, values]


def _taken(columns: Sequence[NDArray[Any]], rows: Integers) -> bytes:
    """Encode some of the CDFs."""
    counts, supports, thresholds, values = columns
    taken = (
        counts[rows],
        supports.reshape(-1, 2)[rows],
        thresholds[spans(counts, rows)],
        values[spans(counts.astype(np.int64) + 1, rows)],
    )
    return _encoded(taken)


def _encoded(columns: Sequence[NDArray[Any]]) -> bytes:
    """Encode counts, supports, thresholds and values."""
    return msgspec.msgpack.encode(SavedDistributions(*map(raw, columns)))


class PendingDistributions:
    """Merged CDFs by slot.

    Examples
    --------
    >>> pending = PendingDistributions()
    >>> pending.reserve(2)
    >>> pending.store([1], np.array([PredictiveDistribution([3.0], [0.0, 1.0])]))
    >>> distribution_scores(pending.settle([1]), np.array([5.0])).tolist()
    [[2.0, 1.0, 1.0]]
    """

    def __init__(self) -> None:
        self._by_slot: list[PredictiveDistribution | None] = [None]

    def reserve(self, slots: int) -> None:
        """Reserve so many slots."""
        self._by_slot += [None] * (slots - len(self._by_slot))

    def store(self, slots: Sequence[int], bands: Column) -> None:
        """Store the merged CDFs of bands."""
        for slot, band in zip(slots, bands, strict=True):
            self._by_slot[slot] = band.merged()

    def settle(self, slots: Sequence[int]) -> list[PredictiveDistribution]:
        """Return and drop the CDFs in some slots."""
        settled = self._at(slots)
        self.drop(slots)
        return settled

    def drop(self, slots: Sequence[int]) -> None:
        """Drop the CDFs in some slots."""
        for slot in slots:
            self._by_slot[slot] = None

    def keep(self, slots: Sequence[int]) -> None:
        """Keep only the CDFs in these slots, as those of slots 1, 2, ..."""
        self._by_slot = [None, *self._at(slots)]

    def encode(self, slots: Sequence[int]) -> Iterator[Piece]:
        """Encode the CDFs in some slots, in canonical form, as `SavedDistributions`."""
        counts = np.array([len(one.thresholds) for one in self._at(slots)], "<u4")
        total, n = int(counts.sum(dtype=np.int64)), len(slots)
        yield header(ARRAY, 4)
        yield from encode(raw(counts))
        for size, of in (
            (2 * n, attrgetter("support")),
            (total, attrgetter("thresholds")),
            (total + n, attrgetter("values")),
        ):
            yield header(BINARY, 8 * size)
            for first in range(0, n, _BLOCK_DISTRIBUTIONS):
                some = map(of, self._at(slots[first : first + _BLOCK_DISTRIBUTIONS]))
                yield raw(np.concatenate([*some]).astype("<f8", copy=False))

    def load(self, saved: SavedDistributions) -> int:
        """Load the CDFs into the slots from the second on; return their number."""
        counts = np.frombuffer(saved.counts, "<u4").astype(np.int64)
        supports, thresholds, values = (
            np.frombuffer(one, "<f8").astype(np.float64)
            for one in (saved.supports, saved.thresholds, saved.values)
        )
        ends = np.cumsum(counts)
        parts = zip(
            np.split(thresholds, ends[:-1]),
            np.split(values, np.cumsum(counts + 1)[:-1]),
            supports.reshape(len(counts), 2).tolist(),
            strict=True,
        )
        if len(counts):
            self._by_slot[1:] = [
                PredictiveDistribution(where, cdf, support=(lo, hi))
                for where, cdf, (lo, hi) in parts
            ]
        return len(counts)

    def _at(self, slots: Sequence[int]) -> list[PredictiveDistribution]:
        # Every observation that waits has a distribution.
        return [cast("PredictiveDistribution", self._by_slot[slot]) for slot in slots]


def distribution_scores(distributions: Sequence[PredictiveDistribution], labels: Floats) -> Floats:
    """Score n distributions by their labels.

    Return an array of shape (n, 3): the CRPS, and the CDF just below the label and at it.
    """
    found = np.empty((len(distributions), 3))
    with np.errstate(over="ignore"):  # a distance beyond the largest double is infinite
        for row, (one, label) in enumerate(zip(distributions, labels.tolist(), strict=True)):
            found[row] = one.crps(label), *one.pit_ends(label)
    return found

"""The predictive distributions that wait for their labels, and how a label judges them.

Governing rule: what waits is the merged CDF as it was predicted, by the slot of
the prediction; it is judged once, and gone with its label. There are never more
of them than observations may wait at once.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, cast

import msgspec
import numpy as np

from abers._arrays import raw
from abers.regression import PredictiveDistribution
from abers.stream.pieces import ARRAY, BINARY, header, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from abers._sealed import Piece
    from abers.stream.columns import Column

    Floats = NDArray[np.float64]

__all__ = ["Packed", "Waiting", "judged"]

_TOGETHER = 10_000  # distributions that are written out at once


class Packed(msgspec.Struct, array_like=True):
    """CDFs behind each other, as little-endian bytes.

    Attributes
    ----------
    counts
        How many thresholds each has.
    supports
        The two ends of each.
    thresholds, values
        Where each jumps; its values there, after the one before the first threshold.
    """

    counts: memoryview
    supports: memoryview
    thresholds: memoryview
    values: memoryview


class Waiting:
    """Merged CDFs by slot.

    Examples
    --------
    >>> waiting = Waiting()
    >>> waiting.make_room(2)
    >>> waiting.keep([1], np.array([PredictiveDistribution([3.0], [0.0, 1.0])]))
    >>> judged(waiting.settle([1]), np.array([5.0])).tolist()
    [[2.0, 1.0, 1.0]]
    """

    def __init__(self) -> None:
        self._by_slot: list[PredictiveDistribution | None] = [None]

    def make_room(self, slots: int) -> None:
        """Have a place for every slot."""
        self._by_slot += [None] * (slots - len(self._by_slot))

    def keep(self, slots: Sequence[int], bands: Column) -> None:
        """Keep the merged CDFs of some bands."""
        for slot, band in zip(slots, bands, strict=True):
            self._by_slot[slot] = band.merged()

    def settle(self, slots: Sequence[int]) -> list[PredictiveDistribution]:
        """Give what waits in some slots, and keep it no longer."""
        settled = self._at(slots)
        self.drop(slots)
        return settled

    def drop(self, slots: Sequence[int]) -> None:
        """Keep what waits in some slots no longer."""
        for slot in slots:
            self._by_slot[slot] = None

    def retain(self, slots: Sequence[int]) -> None:
        """Keep what waits in these slots alone, as that of slots 1, 2, ..."""
        self._by_slot = [None, *self._at(slots)]

    def pack(self, slots: Sequence[int]) -> Iterator[Piece]:
        """Encode what waits in some slots, in canonical form, as a `Packed`."""
        counts = np.array([len(one.thresholds) for one in self._at(slots)], "<u4")
        total, n = int(counts.sum(dtype=np.int64)), len(slots)
        yield header(ARRAY, 4)
        yield from pieces(raw(counts))
        for size, of in (
            (2 * n, attrgetter("support")),
            (total, attrgetter("thresholds")),
            (total + n, attrgetter("values")),
        ):
            yield header(BINARY, 8 * size)
            for first in range(0, n, _TOGETHER):
                some = map(of, self._at(slots[first : first + _TOGETHER]))
                yield raw(np.concatenate([*some]).astype("<f8", copy=False))

    def load(self, packed: Packed) -> int:
        """Fill the slots from the second on with what `pack` gave; how many."""
        counts = np.frombuffer(packed.counts, "<u4").astype(np.int64)
        supports, thresholds, values = (
            np.frombuffer(one, "<f8").astype(np.float64)
            for one in (packed.supports, packed.thresholds, packed.values)
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
        # Whatever waits has its distribution.
        return [cast("PredictiveDistribution", self._by_slot[slot]) for slot in slots]


def judged(waited: Sequence[PredictiveDistribution], labels: Floats) -> Floats:
    """Judge distributions by their labels.

    Parameters
    ----------
    waited
        n distributions.
    labels
        Array of shape (n,).

    Returns
    -------
    numpy.ndarray
        Array of shape (n, 3): the CRPS, and the CDF just below the label and at it.
    """
    found = np.empty((len(waited), 3))
    with np.errstate(over="ignore"):  # a distance that no double holds is infinite
        for row, (one, label) in enumerate(zip(waited, labels.tolist(), strict=True)):
            found[row] = one.crps(label), *one.pit_ends(label)
    return found

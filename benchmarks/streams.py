"""The streams that are measured: an ordinary one, and orders that are hostile to a hull.

A stream is a function of its size and a fixed seed, so that every contender and
every run meets the same observations.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Labels = NDArray[np.uint8]

SEED = 20_180_423


class Stream(NamedTuple):
    """Observations in order of arrival; without weights every weight is 1."""

    scores: Floats
    labels: Labels
    weights: Floats | None = None

    def part(self, first: int, last: int) -> Stream:
        """Take the rows from first to last."""
        return self.rows(np.arange(first, last))

    def rows(self, chosen: NDArray[np.int64]) -> Stream:
        """Take some rows in the order given."""
        weights = None if self.weights is None else self.weights[chosen]
        return Stream(self.scores[chosen], self.labels[chosen], weights)


class Hostile(NamedTuple):
    """A stream, and observations to be tried on what it leaves.

    Those in the set are removed, predicted and learned again; others are learned, predicted
    and removed.
    """

    stream: Stream
    probes: Stream
    held: bool = True


def ordinary(n: int, seed: int = SEED) -> Stream:
    """Make scores that are uniform and right: label 1 has the probability of the score."""
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return Stream(scores, (rng.random(n) < scores).astype(np.uint8))


def _shuffled(scores: Floats, labels: Labels, weights: Floats | None = None) -> Stream:
    order = np.random.default_rng(SEED + 1).permutation(len(scores))
    return Stream(scores, labels, weights).rows(order)


def _some(stream: Stream, m: int) -> Hostile:
    chosen = np.random.default_rng(SEED + 2).choice(len(stream.scores), m, replace=False)
    return Hostile(stream, stream.rows(chosen))


def _sorted(n: int, step: int) -> Stream:
    stream = ordinary(n)
    return stream.rows(np.argsort(stream.scores)[::step])


def _maximal(n: int) -> Stream:
    """Make every reduced fraction the slope of one edge: no hull of n unit weights has more.

    Label 1 comes first within an edge, so that no point of it lies on the hull but its ends.
    """
    edges, total, q = [], 0, 0
    while total < n:
        q += 1
        edges += [(p / q, p, q) for p in range(q + 1) if gcd(p, q) == 1]
        total = sum(edge[2] for edge in edges)
    while total > n:
        total -= edges.pop()[2]
    labels = [[0] * (n - total)]  # the rest lengthens the edge of slope 0
    labels += [[1] * p + [0] * (q - p) for _, p, q in sorted(edges)]
    return _shuffled(np.arange(n) / n, np.concatenate(labels).astype(np.uint8))


def _convex(n: int) -> Stream:
    """Make pairs (label 1, then 0) of ever larger share: as many vertices as n labels can have."""
    pairs = n // 2
    share = (np.arange(pairs) + 0.5) / pairs
    weights = np.column_stack([share, 1 - share]).ravel()
    return _shuffled(np.arange(2 * pairs) / n, np.tile(np.array([1, 0], np.uint8), pairs), weights)


def _at_the_ends(stream: Stream, m: int, weight: float | None) -> Hostile:
    """Try a label 1 below all scores or a label 0 above: each flattens the hull from its end."""
    rng = np.random.default_rng(SEED + 3)
    labels = rng.integers(0, 2, m).astype(np.uint8)
    weights = None if weight is None else np.full(m, weight)
    probes = Stream(np.where(labels, -1.0, 2.0) + rng.random(m) / 2, labels, weights)
    return Hostile(stream, probes, held=False)


def hostile(name: str, n: int, m: int) -> Hostile:
    """Make the hostile stream of a name, of n observations, and m observations to try on it."""
    rng = np.random.default_rng(SEED + 4)
    scores, labels, _ = ordinary(n)
    if name.startswith("largest hull"):
        stream = _maximal(n)
        return _at_the_ends(stream, m, None) if "ends" in name else _some(stream, m)
    if name.startswith("n/2 vertices"):
        stream = _convex(n)
        return _at_the_ends(stream, m, 1e9) if "ends" in name else _some(stream, m)
    ranks = scores.argsort().argsort()
    streams = {
        "random": lambda: Stream(scores, labels),
        "ascending": lambda: _sorted(n, 1),
        "descending": lambda: _sorted(n, -1),
        "all equal": lambda: Stream(np.full(n, 0.5), labels),
        "100 distinct scores": lambda: Stream(np.floor(scores * 100) / 100, labels),
        "alternating labels": lambda: Stream(scores, (ranks % 2).astype(np.uint8)),
        "independent labels": lambda: Stream(scores, rng.integers(0, 2, n).astype(np.uint8)),
        "opposed labels": lambda: Stream(scores, 1 - labels),
        "random weights": lambda: Stream(scores, labels, rng.exponential(1.0, n) + 1e-3),
    }
    return _some(streams[name](), m)


UNIT = (
    "random",
    "ascending",
    "descending",
    "all equal",
    "100 distinct scores",
    "alternating labels",
    "independent labels",
    "opposed labels",
    "largest hull",
    "largest hull, hit at its ends",
)
WEIGHTED = ("random weights", "n/2 vertices", "n/2 vertices, hit at its ends")

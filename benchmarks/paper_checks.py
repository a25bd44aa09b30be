"""The claims of docs/paper.md, checked: tangents, rounds, and losses under delay.

    python -m benchmarks.paper_checks

It prints what the paper quotes. The tangents are found here as the paper proves them, from the
hull that is stored, and compared with the definition in fractions and with `VennAbers`.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers import ProtectedVennAbers, VennAbers
from benchmarks.page import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Diagram", "Found", "contradicted", "defined", "forced", "shared", "tangents"]

_NEAR = 1e-9  # slopes that rounding could confuse


class Diagram(NamedTuple):
    """A cumulative sum diagram: the scores of its groups, and the points after them from 0 on."""

    scores: Floats
    x: Integers
    y: Integers
    hull: list[int]  # the points that are its vertices

    @classmethod
    def of(cls, scores: Floats, labels: Integers) -> Diagram:
        """Draw it."""
        known, groups = np.unique(scores, return_inverse=True)
        sizes, ones = np.bincount(groups), np.bincount(groups, labels).astype(np.int64)
        x, y = (np.concatenate(([0], part.cumsum())).astype(np.int64) for part in (sizes, ones))
        return cls(known, x, y, _hull(x, y))


class Found(NamedTuple):
    """A probability as a slope, the points that it joins, and the lines drawn to find it."""

    rise: int
    run: int
    ends: tuple[int, int]
    rounds: int


def _hull(x: Integers, y: Integers) -> list[int]:
    kept: list[int] = []
    for i, (at, up) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (at - x[b]) < (up - y[b]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return kept


def tangents(drawn: Diagram, score: float) -> tuple[Found, Found]:
    """Find both probabilities by the rounds of the paper, with ends where its lemma has them."""
    x, y, hull = drawn.x, drawn.y, drawn.hull
    i = int(np.searchsorted(drawn.scores, score))
    first = i + int(i < len(drawn.scores) and drawn.scores[i] == score)  # point of B
    cut = int(np.searchsorted(hull, i, "right"))
    before, after = np.array(hull[:cut]), np.array(hull[cut:], np.int64)
    inside = np.arange(before[-1], i + 1)
    beyond = np.arange(first, (after[0] if len(after) else len(x) - 1) + 1)
    return _least(x, y, before, beyond), _greatest(x, y, inside, after)


def _greatest(x: Integers, y: Integers, inside: Integers, after: Integers) -> Found:
    if not len(after):
        return Found(1, 1, (int(inside[-1]), len(x) - 1), 0)
    a, rounds = int(inside[0]), 0
    while True:
        rounds += 1
        run, rise = x[after] + 1 - x[a], y[after] + 1 - y[a]
        best = _flattest(run, rise)
        along = int(run[best]), int(rise[best])
        height = y[inside] * along[0] - along[1] * x[inside]
        lower = int(np.argmin(height))
        if height[lower] == y[a] * along[0] - along[1] * x[a]:
            return Found(along[1], along[0], (a, int(after[best])), rounds)
        a = int(inside[lower])


def _least(x: Integers, y: Integers, before: Integers, beyond: Integers) -> Found:
    c, rounds = int(beyond[-1]), 0
    while True:
        rounds += 1
        run, rise = x[c] + 1 - x[before], y[c] - y[before]
        best = _flattest(run, -rise)
        along = int(run[best]), int(rise[best])
        height = y[beyond] * along[0] - along[1] * x[beyond]
        lower = int(np.argmin(height))
        if height[lower] == y[c] * along[0] - along[1] * x[c]:
            return Found(along[1], along[0], (int(before[best]), c), rounds)
        c = int(beyond[lower])


def _flattest(run: Integers, rise: Integers) -> int:
    """Return the line with the least slope: exact, since near ones are compared as products."""
    slopes = rise / run
    near: list[int] = np.flatnonzero(slopes <= np.min(slopes) + _NEAR).tolist()
    return min(near, key=lambda k: Fraction(int(rise[k]), int(run[k])))


def defined(drawn: Diagram, score: float, label: int) -> Fraction:
    """Return the probability by its definition, a greatest of least slopes."""
    i = int(np.searchsorted(drawn.scores, score))
    first = i + int(i < len(drawn.scores) and drawn.scores[i] == score)
    x, y = drawn.x.tolist(), drawn.y.tolist()
    return max(
        min(Fraction(y[c] - y[a] + label, x[c] - x[a] + 1) for c in range(first, len(x)))
        for a in range(i + 1)
    )


def compared(draws: int) -> tuple[int, int]:
    """Count the probabilities that were compared, and those that differ in any way.

    Labels are learned one by one, and some removed again, in random order.
    """
    rng, count, wrong = np.random.default_rng(0), 0, 0
    for _ in range(draws):
        n, more, distinct = rng.integers(1, 40, 3).tolist()
        scores = rng.integers(0, distinct, n + more) / 2.0
        labels = (rng.random(n + more) < rng.random()).astype(np.int64)
        calibrator = VennAbers()
        for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
            calibrator.learn_one(score, label)
        for row in rng.permutation(np.arange(n, n + more)).tolist():
            calibrator.remove_one(float(scores[row]), int(labels[row]))
        drawn = Diagram.of(scores[:n], labels[:n])
        for score in (rng.integers(-1, 2 * distinct, 5) / 4.0).tolist():
            found, native = tangents(drawn, score), calibrator.predict_one(score)
            for label, (its, end) in enumerate(zip(found, native[:2], strict=True)):
                truth = defined(drawn, score, label)
                count += 1
                wrong += Fraction(its.rise, its.run) != truth or float(truth) != end
    return count, wrong


def streams(n: int) -> Iterator[tuple[str, Floats, Integers]]:
    """Yield bags of n observations: their names, scores and labels."""
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    yield "probability = score", scores, (rng.random(n) < scores).astype(np.int64)
    yield "fair coins", scores, rng.integers(0, 2, n)
    most = round((n * math.pi**2 / 2.0) ** (1.0 / 3.0))  # denominators; 2 most^3 / pi^2 labels
    values = sorted({Fraction(p, q) for q in range(1, most + 1) for p in range(q + 1)})
    labels = [k >= f.denominator - f.numerator for f in values for k in range(f.denominator)]
    largest = [y for f in values for y in [1] * f.numerator + [0] * (f.denominator - f.numerator)]
    yield "largest hull", np.arange(len(largest), dtype=np.float64), np.array(largest, np.int64)
    yield (
        "largest hull, zeros first",
        np.arange(len(labels), dtype=np.float64),
        np.array(labels, np.int64),
    )


def rounds(n: int, queries: int) -> Iterator[list[object]]:
    """Yield for each bag the vertices of its hull, and the lines drawn for a tangent.

    The last column counts answers of `VennAbers` that differ, in a tree that other labels were
    added to and removed from.
    """
    for name, scores, labels in streams(n):
        drawn, calibrator = Diagram.of(scores, labels), _disturbed(scores, labels)
        rng = np.random.default_rng(1)
        low, high = float(drawn.scores[0]), float(drawn.scores[-1])
        counts, wrong = [], 0
        for score in rng.uniform(low, high, queries).tolist():
            native = calibrator.predict_one(score)
            for its, end in zip(tangents(drawn, score), native[:2], strict=True):
                counts.append(its.rounds)
                wrong += float(Fraction(its.rise, its.run)) != end
        bound = 4.0 * math.log2(len(labels)) + 2.0
        lines = [f"{np.mean(counts):.2f}", max(counts), f"{bound:.0f}"]
        yield [name, f"{len(labels):,}", len(drawn.hull), *lines, wrong]


def _disturbed(scores: Floats, labels: Integers) -> VennAbers:
    """Return a calibrator of a bag that had a tenth of other labels in between."""
    rng = np.random.default_rng(2)
    others = rng.uniform(np.min(scores), np.max(scores), len(scores) // 10).tolist()
    calibrator = VennAbers()
    calibrator.learn_many(scores, labels)
    for score in others:
        calibrator.learn_one(score, 1)
    for score in reversed(others):
        calibrator.remove_one(score, 1)
    return calibrator


# Delay


def loss(p: float, label: int) -> float:
    """Return the log loss, in nats."""
    return -math.log(p if label else 1.0 - p)


def shared(waiting: int, blocks: int) -> list[float]:
    """Return the loss above raw, after each block, of one weight vector for all labels.

    Two methods always forecast .9, which is raw with a first weight of 1/4, and .1. The labels of
    a block come after it, and contradict the forecast.
    """
    weights, total, found = [0.25, 0.75], 0.0, []
    for _ in range(blocks):
        p = (0.9 * weights[0] + 0.1 * weights[1]) / sum(weights)
        label = 1 - round(p)
        total += waiting * (loss(p, label) - loss(0.9, label))
        found.append(total)
        odds = [-waiting * loss(q, label) for q in (0.9, 0.1)]
        logs = [math.log(w) + one for w, one in zip(weights, odds, strict=True)]
        weights = [max(math.exp(one - max(logs)), 1e-300) for one in logs]
    return found


def contradicted(waiting: int, blocks: int) -> list[float]:
    """Return the same of `ProtectedVennAbers`, whose mean forecast of a block is contradicted."""
    calibrator, total, found = ProtectedVennAbers(raw_weight=0.25), 0.0, []
    for block in range(blocks):
        numbers = range(block * waiting, (block + 1) * waiting)
        forecasts = [calibrator.predict_one(0.9, number=one).probability for one in numbers]
        label = 1 - round(sum(forecasts) / waiting)
        total += sum(loss(p, label) - loss(0.9, label) for p in forecasts)
        for one in numbers:
            calibrator.learn_one(0.9, label, number=one)
        found.append(total)
    return found


def forced(bits: int, waiting: int, sure: float = 1.0 - 1e-6) -> float:
    """Return what lanes of equal weights lose to the right method, in the lower-bound example.

    There are 2^bits methods, each sure of a word of its own; each letter is the label of a block.
    """
    words = np.array([[k >> j & 1 for j in range(bits)] for k in range(2**bits)])
    lanes = np.full((waiting, len(words)), 1.0 / len(words))
    total = 0.0
    for j in range(bits):
        forecasts = np.where(words[:, j] == words[0, j], sure, 1.0 - sure)  # of the label that came
        total -= float(np.log(lanes @ forecasts).sum() - waiting * math.log(sure))
        lanes *= forecasts
        lanes /= lanes.sum(axis=1, keepdims=True)
    return total


def _delays() -> Iterator[list[object]]:
    for waiting in (1, 10, 100):
        bound = waiting * math.log(4.0)
        one, lanes = shared(waiting, 600), contradicted(waiting, 60)
        yield [waiting, f"{one[59]:,.0f}", f"{one[-1]:,.0f}", f"{max(lanes):.0f}", f"{bound:.0f}"]


def _examples() -> Iterator[list[object]]:
    for bits, waiting in ((1, 1), (3, 1), (3, 10), (6, 100)):
        upper = waiting * bits * math.log(2.0)
        yield [2**bits, waiting, f"{forced(bits, waiting):.4f}", f"{upper:.4f}"]


def main(arguments: Sequence[str] = ()) -> int:
    """Print all checks; with a number, that many bags are compared."""
    count, wrong = compared(int(arguments[0]) if arguments else 4_000)
    say = sys.stdout.write
    say(f"{count:,} probabilities from the stored hull, by definition, and of VennAbers: ")
    say(f"{wrong} differ\n\n")
    heads = ["bag", "labels", "vertices", "lines a tangent, mean", "most", "bound", "differ"]
    say(table(heads, rounds(100_000, 1_000)))
    say("Log loss above raw, in nats; each forecaster meets labels that contradict it:\n\n")
    heads = ["waiting", "one vector, 60 blocks", "600", "abers, most in 60", "C ln 4"]
    say(table(heads, _delays()))
    say(table(["methods", "waiting", "lanes lose", "C ln K"], _examples()))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The methods that a protected vector of probabilities mixes: specification of the native core.

The page is docs/protection.md. Vectors of the methods stand one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.oracles.elementary import logarithm
from tests.oracles.experts import FixedShare
from tests.oracles.softmax_stack import SoftmaxStack, softmax, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ClassKept", "ClassMethods"]

_RATES = (0.1, 0.01)
_SHARED = 6  # methods that the shares weigh


class ClassKept(NamedTuple):
    """What an observation keeps until its label is taught."""

    vectors: list[list[float]]  # by method
    features: list[list[float]]  # by class

    def numbers(self) -> list[float]:
        """Return all as numbers, as they are saved."""
        return [one for row in (*self.vectors, *self.features) for one in row]


def _centred(p: Sequence[float]) -> list[float]:
    logs, total = [*map(logarithm, p)], 0.0
    for one in logs:
        total += one
    mean = total / len(logs)
    return [one - mean for one in logs]


def _stack(raw: float, scores: float, labels: float, kept: float) -> SoftmaxStack:
    """Return a stack of all features; those of 2 to 4 come from labels."""
    variance = [labels if 2 <= k < 5 else scores for k in range(7)]
    return SoftmaxStack([raw, 1.0 - raw] + [0.0] * 5, variance, kept)


class ClassMethods:
    """Raw, one-vs-rest, four stacks, shares 1 and 1/16, and the product."""

    count, shares_count, features_count = 9, 3, 7

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.shares = [FixedShare(_SHARED), FixedShare(_SHARED, 4)]
        self.scores = SoftmaxStack([0.5, 0.5], [0.01, 0.01])
        self.stacks = [
            _stack(0.5, 0.01, 0.1, 1.0),
            _stack(0.5, 0.03, 1.0, 1.0 - 1.0 / 1000.0),
            _stack(1.0, 0.01, 0.1, 1.0 - 1.0 / 100.0),
        ]
        self.errors, self.labels, self.seen = ([[0.0] * classes, [0.0] * classes] for _ in range(3))

    @property
    def kept(self) -> int:
        """How many numbers an observation keeps."""
        return (self.count + self.features_count) * self.classes

    def of(self, numbers: list[float]) -> ClassKept:
        """Return what an observation keeps from its numbers."""
        k, width = self.classes, self.features_count
        at = self.count * k
        vectors = [numbers[first : first + k] for first in range(0, at, k)]
        features = [numbers[first : first + width] for first in range(at, len(numbers), width)]
        return ClassKept(vectors, features)

    def forecast(self, raw: list[float], calibrated: list[float]) -> ClassKept:
        """Return what an observation keeps that would be predicted now."""
        columns = [_centred(raw), _centred(calibrated), *self.errors]
        columns.append([a - b for a, b in zip(*self.labels, strict=True)])
        features = [[*row] for row in zip(*columns, *self.seen, strict=True)]
        weights = [_pooled(one) for one in self.shares]
        power = weights[0]
        product = [power[0] * row[0] + power[1] * row[1] for row in features]
        vectors = [raw, calibrated]
        for stack in (self.scores, *self.stacks):
            few = [row[:2] for row in features] if stack is self.scores else features
            z, weight = stack.forecast(few), power[len(vectors)]
            product = [one + weight * more for one, more in zip(product, z, strict=True)]
            vectors.append(vector(softmax(z)))
        shares = [_blend(one, vectors) for one in weights]
        return ClassKept([*vectors, *shares, vector(softmax(product))], features)

    def issue(self, kept: ClassKept) -> None:
        """Move on, since the observation was predicted."""
        _move(self.seen, [row[0] for row in kept.features])

    def arrive(self, kept: ClassKept, label: int) -> None:
        """Learn what is learned when a label comes."""
        came = [1.0 if c == label else 0.0 for c in range(self.classes)]
        _move(self.labels, came)
        _move(self.errors, [one - p for one, p in zip(came, kept.vectors[0], strict=True)])

    def distrust(self) -> None:
        """Do nothing: no method learns from labels before these are taught."""

    def learn(self, kept: ClassKept, label: int) -> None:
        """Learn what is learned when a label is taught."""
        self.scores.learn([row[:2] for row in kept.features], label)
        for one in self.stacks:
            one.learn(kept.features, label)
        chances = [one[label] for one in kept.vectors[:_SHARED]]
        for share in self.shares:
            share.learn(chances, 1)

    def of_label(self, kept: ClassKept, label: int) -> list[float]:
        """Return the probabilities that the methods gave to a label."""
        return [one[label] for one in kept.vectors]

    def served(self, weights: list[float], kept: ClassKept, label: int) -> float:
        """Return what the mean by weight gives to a label."""
        return self.serve(weights, kept)[label]

    def serve(self, weights: list[float], kept: ClassKept) -> list[float]:
        """Return the mean by weight."""
        total = 0.0
        for weight in weights:
            total += weight
        return [one / total for one in _blend(weights, kept.vectors)]

    def parameters(self) -> list[float]:
        """Return the state, as it is saved."""
        averages = (*self.errors, *self.labels, *self.seen)
        return [
            *(weight for one in self.shares for weight in one.weights),
            *(number for one in (self.scores, *self.stacks) for number in one.parameters()),
            *(number for one in averages for number in one),
        ]


def _pooled(share: FixedShare) -> list[float]:
    """Return the weight of each expert over all rates."""
    found = []
    total = 0.0
    for k in range(_SHARED):
        weight = 0.0
        for one in share.weights[k::_SHARED]:
            weight += one
        total += weight
        found.append(weight)
    return [one / total for one in found]


def _blend(weights: list[float], vectors: list[list[float]]) -> list[float]:
    found = []
    for column in zip(*vectors, strict=True):
        total = 0.0
        for weight, one in zip(weights, column, strict=True):
            total += weight * one
        found.append(total)
    return found


def _move(averages: list[list[float]], values: list[float]) -> None:
    for average, rate in zip(averages, _RATES, strict=True):
        average[:] = [
            one + rate * (value - one) for one, value in zip(average, values, strict=True)
        ]

"""The methods that a protected probability mixes: the specification of the native core.

The page is docs/protection.md. What a method forecasts of an observation is fixed when that is
predicted. A label changes some of the state when it comes, and the rest when it is taught.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.oracles.elementary import logit
from tests.oracles.experts import FixedShare, Jumper, clipped, mixed
from tests.oracles.newton_stack import NewtonStack

__all__ = ["Kept", "Methods", "drawn"]

_SHRINK = 30.0  # observations that the raw probability counts as
_NARROWEST = 1e-9
_FAR = 8.0  # log odds in features
_RATES = (0.5, 0.1, 0.01)
_THIRD = 1.0 / 3.0
_SHARED = 8  # methods that the three shares weigh
_FEW = (0, 1, 2, 3, 11, 12, 13)  # features without what labels say


class Kept(NamedTuple):
    """What an observation keeps until its label is taught."""

    forecasts: list[float]
    features: list[float]
    logit: float  # of raw

    def numbers(self) -> list[float]:
        """Return all as numbers, as they are saved."""
        return [*self.forecasts, *self.features, self.logit]


def drawn(merged: float, width: float, raw: float) -> float:
    """Return the merge of an interval, drawn to the raw probability where the interval is wide."""
    evidence = 1.0 / max(width, _NARROWEST) - 1.0
    return (evidence * merged + _SHRINK * raw) / (evidence + _SHRINK)


def _near(log_odds: float) -> float:
    return min(max(log_odds, -_FAR), _FAR)


def _moved(averages: list[float], rates: tuple[float, ...], value: float) -> list[float]:
    return [one + rate * (value - one) for one, rate in zip(averages, rates, strict=True)]


def _stack(scores: float, labels: float, kept: float) -> NewtonStack:
    """Return a stack of all features; those of 4 to 10 come from labels."""
    variance = [labels if 4 <= k < 11 else scores for k in range(14)]
    return NewtonStack([_THIRD] * 3 + [0.0] * 11, variance, kept)


class Methods:
    """Raw, Venn-Abers, jumper, recent line, four stacks; and shares 1, 1/16 and at arrival."""

    count, shares_count, kept = 11, 3, 26

    def __init__(self) -> None:
        self.jumper = Jumper()
        self.shares = [FixedShare(_SHARED), FixedShare(_SHARED, 4), FixedShare(_SHARED)]
        self.platt = NewtonStack([1.0, 0.0], [0.3, 0.3], 2.0 ** (-1 / 300), reverts=True)
        self.scores = NewtonStack([_THIRD] * 3 + [0.0] * 4, [0.01] * 7)
        self.stacks = [
            _stack(0.01, 0.1, 1.0),
            _stack(0.01, 0.1, 1.0 - 1.0 / 2000.0),
            _stack(0.03, 1.0, 1.0 - 1.0 / 1000.0),
        ]
        self.labels, self.errors, self.log_odds = [0.0] * 3, [0.0] * 3, [0.0] * 3
        self.came, self.said = [0.0] * 2, [0.0] * 2
        self.positives = 0.0  # labels 1 that came since the last prediction

    def of(self, numbers: list[float]) -> Kept:
        """Return what an observation keeps from its numbers."""
        return Kept(numbers[: self.count], numbers[self.count : -1], numbers[-1])

    def forecast(self, raw: float, venn_abers: float) -> Kept:
        """Return what an observation keeps that would be predicted now."""
        x = logit(raw)
        found = [raw, clipped(venn_abers), self.jumper.forecast(raw)]
        came = _moved(self.came, _RATES[1:], self.positives)
        features = [
            *map(_near, (x, logit(found[1]), logit(found[2]))),
            1.0,
            *self.errors,
            *(one - self.labels[0] for one in self.labels[1:]),
            *(one - said for one, said in zip(came, self.said, strict=True)),
            *self.log_odds[1:],
            self.log_odds[0],
        ]
        found.append(self.platt.forecast([x, 1.0]))
        found.append(self.scores.forecast([features[k] for k in _FEW]))
        found += [one.forecast(features) for one in self.stacks]
        return Kept([*found, *(one.forecast(found) for one in self.shares)], features, x)

    def issue(self, kept: Kept) -> None:
        """Move on, since the observation was predicted."""
        self.came = _moved(self.came, _RATES[1:], self.positives)
        self.said = _moved(self.said, _RATES[1:], kept.forecasts[0])
        self.log_odds = _moved(self.log_odds, _RATES, _near(kept.logit))
        self.positives = 0.0

    def arrive(self, kept: Kept, label: int) -> None:
        """Learn what is learned when a label comes."""
        self.labels = _moved(self.labels, _RATES, label)
        self.errors = _moved(self.errors, _RATES, label - kept.forecasts[0])
        self.positives += label
        self.shares[2].learn(kept.forecasts[:_SHARED], label)

    def distrust(self) -> None:
        """Let the weights that labels moved when they came be those of taught labels."""
        self.shares[2].weights = [*self.shares[0].weights]

    def learn(self, kept: Kept, label: int) -> None:
        """Learn what is learned when a label is taught."""
        self.jumper.learn(kept.forecasts[0], label)
        self.platt.learn([kept.logit, 1.0], label)
        self.scores.learn([kept.features[k] for k in _FEW], label)
        for one in self.stacks:
            one.learn(kept.features, label)
        for share in self.shares[:2]:
            share.learn(kept.forecasts[:_SHARED], label)

    def of_label(self, kept: Kept, label: int) -> list[float]:
        """Return the probabilities that the methods gave to a label."""
        return [p if label else 1.0 - p for p in kept.forecasts]

    def served(self, weights: list[float], kept: Kept, label: int) -> float:
        """Return what the mean by weight gives to a label."""
        return self.of_label(Kept([mixed(weights, kept.forecasts)], [], 0.0), label)[0]

    def serve(self, weights: list[float], kept: Kept) -> list[float]:
        """Return the probability of label 1 by the mean by weight."""
        return [mixed(weights, kept.forecasts)]

    def parameters(self) -> list[float]:
        """Return the state, as it is saved."""
        stacks = (self.platt, self.scores, *self.stacks)
        averages = (self.labels, self.errors, self.log_odds, self.came, self.said)
        return [
            *self.jumper.weights,
            *(weight for one in self.shares for weight in one.weights),
            *(number for one in stacks for number in one.parameters()),
            *(number for one in averages for number in one),
            self.positives,
        ]

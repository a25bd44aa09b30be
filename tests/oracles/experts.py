"""Experts that correct the raw probability: specifications of the native core.

An expert forecasts from the raw probability of an observation, and learns from it with its label.
Weights are products of forecasts, scaled by powers of two, so that no function of a C library
touches them.
"""

from __future__ import annotations

import math

__all__ = ["CLIP", "FixedShare", "Jumper", "clipped", "mean", "mixed", "scale"]

CLIP = 1e-6
_FLOOR = 2.0**-300
_E = math.e
_MAPS = 9
_JUMP_RATES = (1e-2, 1e-3, 1e-4)
_SHARE_RATES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)


def clipped(p: float) -> float:
    """Return a probability that is at least 1e-6 from 0 and from 1."""
    return min(max(p, CLIP), 1.0 - CLIP)


def scale(weights: list[float]) -> None:
    """Multiply weights by a power of two so that the largest is in [1/2, 1), and none vanishes."""
    _, exponent = math.frexp(max(weights))
    for k, weight in enumerate(weights):
        weights[k] = max(math.ldexp(weight, -exponent), _FLOOR)


def mean(weights: list[float], forecasts: list[float]) -> float:
    """Return the mean of forecasts by weight; there are one or several weights of each in turn."""
    total = ones = 0.0
    for i, weight in enumerate(weights):
        total += weight
        ones += weight * forecasts[i % len(forecasts)]
    return min(max(ones / total, min(forecasts)), max(forecasts))  # of equal ones, their value


def mixed(weights: list[float], forecasts: list[float]) -> float:
    """Return the clipped mean of forecasts of label 1."""
    return clipped(mean(weights, forecasts))


class Jumper:
    """The composite jumper martingale's probabilities: Cox maps among which nature jumps.

    Vovk, Petej & Gammerman (2021), Protected probabilistic classification, without a passive part.
    """

    def __init__(self) -> None:
        self.weights = [1.0 / _MAPS] * (_MAPS * len(_JUMP_RATES))

    def forecast(self, raw: float) -> float:
        """Return the probability of label 1."""
        return mixed(self.weights, _cox(raw)[1])

    def learn(self, raw: float, label: int) -> None:
        """Weigh the maps by their probability of the label, then let nature jump."""
        likelihood = _cox(raw)[label]
        for r, rate in enumerate(_JUMP_RATES):
            total = 0.0
            for i in range(r * _MAPS, (r + 1) * _MAPS):
                self.weights[i] *= likelihood[i % _MAPS]
                total += self.weights[i]
            arriving = rate / _MAPS * total
            for i in range(r * _MAPS, (r + 1) * _MAPS):
                self.weights[i] = (1.0 - rate) * self.weights[i] + arriving
        scale(self.weights)


def _cox(raw: float) -> tuple[list[float], list[float]]:
    """Probabilities of labels 0 and 1 by the maps, log odds to a + b times log odds."""
    odds = raw / (1.0 - raw)
    zeros, ones = [], []
    for power in (odds, math.sqrt(odds), odds * odds):
        for moved in (power, power / _E, power * _E):
            zero = 1.0 / (1.0 + moved)
            zeros.append(zero)
            ones.append(moved * zero)
    return zeros, ones


class FixedShare:
    """Fixed share over other experts, at several rates of change.

    Herbster & Warmuth (1998), Tracking the best expert.
    """

    def __init__(self, experts: int, roots: int = 0) -> None:
        self.prior = [0.5] + [0.5 / (experts - 1)] * (experts - 1)
        self.weights = self.prior * len(_SHARE_RATES)
        self._roots = roots  # likelihoods count to the power of 1 / 2**roots

    def forecast(self, forecasts: list[float]) -> float:
        """Return the probability of label 1 from those of the experts."""
        return mixed(self.weights, forecasts)

    def learn(self, forecasts: list[float], label: int) -> None:
        """Weigh the experts by their probability of the label, then share."""
        n = len(self.prior)
        likelihoods = [p if label else 1.0 - p for p in forecasts]
        for _ in range(self._roots):
            likelihoods = [*map(math.sqrt, likelihoods)]
        for r, rate in enumerate(_SHARE_RATES):
            total = 0.0
            for k in range(n):
                i = r * n + k
                self.weights[i] *= likelihoods[k]
                total += self.weights[i]
            for k in range(n):
                i = r * n + k
                self.weights[i] = (1.0 - rate) * self.weights[i] + rate * self.prior[k] * total
        scale(self.weights)

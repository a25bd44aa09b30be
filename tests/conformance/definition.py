"""Venn-Abers prediction in the words of its definition, in fractions.

Nothing but the definition (Vovk, Petej & Fedorova 2015, section 3): put the query
into the bag with label 0, then with label 1, pool equal scores, and read the isotonic regression
at the query. Neither abers nor the max-min formula of `tests.engine.oracle` is used: what three
ways agree on can be published.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import NamedTuple

Observation = tuple[float, int, float]
"""Score, label and weight; the weight is a multiple of 2**-30."""


class Block(NamedTuple):
    """Neighbouring scores that share a value: the last of them, and weights in 2**-30."""

    last: float
    weight: int
    positives: int


def isotonic(bag: list[Observation]) -> list[Block]:
    """Regress labels on scores isotonically by pooling adjacent violators."""
    groups: defaultdict[float, list[int]] = defaultdict(lambda: [0, 0])
    for score, label, weight in bag:
        units = Fraction(weight) * 2**30
        assert units.denominator == 1
        groups[score][label] += units.numerator
    blocks: list[Block] = []
    for score, (zeros, ones) in sorted(groups.items()):
        block = Block(score, zeros + ones, ones)
        while blocks and blocks[-1].positives * block.weight >= block.positives * blocks[-1].weight:
            before = blocks.pop()
            block = Block(score, before.weight + block.weight, before.positives + block.positives)
        blocks.append(block)
    return blocks


def probability(bag: list[Observation], query: float, label: int) -> Fraction:
    """Return p0 (of label 0) or p1 (of label 1) at a query of weight 1."""
    blocks = isotonic([*bag, (query, label, 1.0)])
    return next(Fraction(b.positives, b.weight) for b in blocks if query <= b.last)


def cdf(bag: list[tuple[float, float, float]], query: float, threshold: float) -> list[Fraction]:
    """Return the lower and the upper predictive CDF of (score, label, weight) at a threshold.

    The labels above the threshold are 1, the others 0 (Petej 2018): lower is 1 - p1, upper 1 - p0.
    """
    above = [(score, int(label > threshold), weight) for score, label, weight in bag]
    return [1 - probability(above, query, label) for label in (1, 0)]

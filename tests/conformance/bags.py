"""The bags of the conformance suite: everything is learned, then everything is asked.

Every random number is from a generator with the name of its case as seed, and every
weight a sum of few powers of two, so that no rounding of weights makes a difference.
"""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

from tests.conformance.definition import Observation, probability

if TYPE_CHECKING:
    from fractions import Fraction

Case = dict[str, Any]

LARGEST = 1.7e308
SMALLEST = 5e-324
WEIGHTS = (2**-30, 0.375, 0.5, 1, 1, 2, 3.25, 1024, 2**20)


def written(exact: Fraction) -> str:
    """Write a fraction in lowest terms, 0 as 0/1."""
    return f"{exact.numerator}/{exact.denominator}"


def around(scores: list[float]) -> list[float]:
    """List queries at the scores, between them and beyond them."""
    known = sorted({*scores})
    between = [a / 2 + b / 2 for a, b in pairwise(known)]
    return sorted({*known, *between, known[0] - 1, known[-1] + 1})


def bag(name: str, about: str, rows: list[Observation], queries: list[float]) -> Case:
    """Make a case of (score, label, weight) and the scores that are asked."""
    return {
        "name": name,
        "about": about,
        "scores": [score for score, _, _ in rows],
        "labels": [label for _, label, _ in rows],
        "weights": [weight for _, _, weight in rows],
        "queries": queries,
        "p0": [written(probability(rows, query, 0)) for query in queries],
        "p1": [written(probability(rows, query, 1)) for query in queries],
    }


def unit(scores: list[float], labels: list[int]) -> list[Observation]:
    """Return each observation the weight 1."""
    return [(score, label, 1) for score, label in zip(scores, labels, strict=True)]


def drawn(name: str, n: int, digits: int, weights: tuple[float, ...] = (1,)) -> list[Observation]:
    """Draw scores of so many digits, and labels that are mostly as probable as they say."""
    random = Random(name)  # noqa: S311 - nothing secret
    rows = []
    for _ in range(n):
        score = round(random.random(), digits)
        label = int(random.random() < 0.1 + 0.8 * score)
        rows.append((score, label, weights[int(random.random() * len(weights))]))
    return rows


def by_hand() -> list[Case]:
    """List the bags whose answers can be worked out on paper."""
    worked = unit([0.1, 0.4, 0.35, 0.8], [0, 1, 0, 1])
    after = math.nextafter(0.5, 1.0)
    tied = unit([0.5, 0.5, 0.5, 0.7], [0, 1, 1, 1])
    return [
        bag("worked", "Four observations: below, among and above them.", worked, [0.2, 0.5, 0.9]),
        bag("empty", "With nothing known the answer is 0 and 1.", [], [-1.0, 0.0, 0.5]),
        bag("one-zero", "A single observation of label 0.", unit([0.5], [0]), [0.4, 0.5, 0.6]),
        bag("one-one", "A single observation of label 1.", unit([0.5], [1]), [0.4, 0.5, 0.6]),
        bag("ties", "Labels of one score never split.", tied, [0.4, 0.5, 0.6, 0.7, 0.8]),
        bag("ties-turned", "The order of ties is nothing.", tied[::-1], [0.4, 0.5, 0.6, 0.7, 0.8]),
        bag("one-score", "Every score equal.", unit([0.5] * 5, [1, 0, 0, 1, 0]), [0.4, 0.5, 0.6]),
        bag("only-zeros", "No label 1.", unit([0.1, 0.2, 0.2, 0.6], [0] * 4), [0.0, 0.2, 0.3, 1.0]),
        bag("only-ones", "No label 0.", unit([0.1, 0.2, 0.2, 0.6], [1] * 4), [0.0, 0.2, 0.3, 1.0]),
        bag(
            "in-order",
            "Every 0 below every 1.",
            unit([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1]),
            around([1.0, 2.0, 3.0, 4.0]),
        ),
        bag(
            "upside-down",
            "Every 1 below every 0: one block.",
            unit([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0]),
            around([1.0, 2.0, 3.0, 4.0]),
        ),
        bag(
            "signed-zeros",
            "-0.0 and 0.0 are one score.",
            unit([-0.0, 0.0, 0.0, -1.0, 1.0], [1, 0, 0, 0, 1]),
            [-0.0, 0.0, -SMALLEST, SMALLEST],
        ),
        bag(
            "neighbours",
            "Scores that differ in their last bit are two.",
            unit([0.5, after, 0.5, after], [1, 0, 1, 1]),
            [0.5, after, math.nextafter(0.5, 0.0), math.nextafter(after, 1.0)],
        ),
        bag(
            "near-zero",
            "So are scores far below 1e-15.",
            unit([1e-16, 2e-16, 3e-16, 3e-300], [0, 1, 1, 0]),
            [1e-16, 1.5e-16, 2e-16, 3e-16, 3e-300],
        ),
        bag(
            "extremes",
            "The largest and the smallest doubles.",
            unit([-LARGEST, LARGEST, SMALLEST, -SMALLEST, 2.0**-1022], [0, 1, 1, 0, 0]),
            [-LARGEST, -1.0, -SMALLEST, 0.0, SMALLEST, 2.0**-1022, 1.0, LARGEST],
        ),
        bag(
            "duplicates",
            "The same observation three times over.",
            unit([0.2] * 3 + [0.3] * 3 + [0.4] * 3, [1] * 3 + [0] * 3 + [1] * 3),
            around([0.2, 0.3, 0.4]),
        ),
        bag(
            "duplicates-weighed",
            "One observation of weight 3 is the same as three.",
            [(0.2, 1, 3), (0.3, 0, 3), (0.4, 1, 3)],
            around([0.2, 0.3, 0.4]),
        ),
        bag(
            "light-and-heavy",
            "Weights from 2**-30 to 2**20.",
            [(0.1, 1, 2**-30), (0.2, 0, 2**20), (0.3, 1, 0.5), (0.3, 0, 0.25), (0.4, 1, 2**-30)],
            around([0.1, 0.2, 0.3, 0.4]),
        ),
    ]


def at_random() -> list[Case]:
    """List the bags that nobody works out on paper."""
    cases = []
    for i in range(24):
        name = f"small-{i + 1}"
        rows = drawn(name, 2 + i // 4, 1)
        cases.append(bag(name, "Few observations, ties.", rows, around([r[0] for r in rows])))
    wide = [(8 * (score - 0.5), label, weight) for score, label, weight in drawn("logits", 40, 4)]
    ties = drawn("many-ties", 200, 1)
    for name, about, rows, queries in (
        ("logits", "Scores that are no probabilities.", wide, around([r[0] for r in wide])),
        ("many-ties", "Eleven scores of 200 observations.", ties, around([r[0] for r in ties])),
    ):
        cases.append(bag(name, about, rows, queries))
    for n in (5, 60):
        name = f"weights-{n}"
        rows = drawn(name, n, 2, WEIGHTS)
        about = "Weights, with ties among the scores."
        cases.append(bag(name, about, rows, around([r[0] for r in rows])))
    for n, digits in ((50, 6), (500, 4), (2000, 3)):
        name = f"n-{n}"
        rows = drawn(name, n, digits)
        queries = sorted({r[0] for r in rows[:: n // 50]} | {-0.5, 1.5, 0.12345, 0.54321, 0.98765})
        cases.append(bag(name, f"{n} observations of {digits} digits.", rows, queries))
    return cases

"""Writes the conformance suite: `suite/binary.json` and `suite/regression.json`.

Governing rule: every answer comes from `definition`, every random number from a generator with
the name of its case as seed, so that the same two files are written everywhere. Weights are sums
of few powers of two: no rounding of weights makes a difference. Run it by

    python -m tests.conformance.publish
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.conformance.definition import Observation, cdf, probability

if TYPE_CHECKING:
    from fractions import Fraction

Case = dict[str, Any]

FOLDER = Path(__file__).with_name("suite")
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


# Bags: everything is learned, then everything is asked


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
    """Give each observation the weight 1."""
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


# Streams: learned, removed and asked step by step


class Stream:
    """A case that is told step by step."""

    def __init__(self, name: str, about: str, window: int | None = None) -> None:
        """Hold the last `window` observations, or all."""
        self.case: Case = {"name": name, "about": about, "window": window, "steps": []}
        self.held: list[Observation] = []

    def learn(self, score: float, label: int, weight: float = 1) -> None:
        """Learn, and forget what the window no longer holds."""
        self.held.append((score, label, weight))
        self.held = self.held[-(self.case["window"] or len(self.held)) :]
        self.case["steps"].append(["learn", score, label, weight])

    def remove(self, score: float, label: int, weight: float = 1) -> None:
        """Remove an observation that was learned so."""
        self.held.remove((score, label, weight))
        self.case["steps"].append(["remove", score, label, weight])

    def predict(self, score: float) -> None:
        """Ask."""
        answer = [written(probability(self.held, score, label)) for label in (0, 1)]
        self.case["steps"].append(["predict", score, *answer])


def round_trip() -> Case:
    """Learn two of the same and remove both, then learn again."""
    stream = Stream("there-and-back", "Removing what was learned restores every answer.")
    stream.learn(0.3, 0)
    stream.learn(0.6, 1)
    for _ in range(2):
        stream.learn(0.4, 1, 0.5)
        stream.predict(0.4)
    for _ in range(2):
        stream.remove(0.4, 1, 0.5)
        stream.predict(0.4)
    stream.remove(0.6, 1)
    stream.predict(0.6)
    stream.remove(0.3, 0)
    stream.predict(0.3)
    stream.learn(0.3, 1)
    stream.predict(0.3)
    return stream.case


def prequential(name: str, about: str, n: int, digits: int, window: int | None = None) -> Case:
    """Ask for each observation before it is learned; half-way the labels turn round."""
    stream = Stream(name, about, window)
    for i, (score, label, weight) in enumerate(drawn(name, n, digits)):
        stream.predict(score)
        stream.learn(score, label if i < n // 2 else 1 - label, weight)
    return stream.case


def removals(name: str, n: int) -> Case:
    """Learn and remove at random, until nothing is left."""
    stream = Stream(name, "Learned and removed in a random order, weights among them.")
    random = Random(name)  # noqa: S311 - nothing secret
    for row in drawn(f"{name} rows", n, 1, WEIGHTS):
        stream.learn(*row)
        if random.random() < 0.5:
            stream.remove(*stream.held[int(random.random() * len(stream.held))])
        stream.predict(row[0])
    while stream.held:
        stream.remove(*stream.held[int(random.random() * len(stream.held))])
        stream.predict(0.5)
    return stream.case


def binary() -> dict[str, Any]:
    """Make the suite of p0 and p1."""
    return {
        "format": 1,
        "title": "Venn-Abers conformance suite: two classes",
        "definition": "p0 and p1 at a query s are the values at s of the isotonic regression of "
        "label on score, weighted, equal scores pooled, of all observations held and one more of "
        "weight 1, (s, 0) for p0 and (s, 1) for p1.",
        "bags": [*by_hand(), *at_random()],
        "streams": [
            round_trip(),
            prequential("growing", "Asked, then learned.", 150, 2),
            prequential("window-1", "Only the last observation is held.", 12, 1, 1),
            prequential("window-7", "A window with ties.", 60, 1, 7),
            prequential("window-50", "A window, and labels that turn round.", 200, 3, 50),
            removals("removals", 80),
        ],
    }


# Regression


def distributions(name: str, about: str, rows: list[tuple[float, float, float]]) -> Case:
    """Make a case of both predictive CDFs."""
    labels = [label for _, label, _ in rows]
    thresholds = around(labels)
    queries = around([score for score, _, _ in rows])
    queries = queries[:: 1 + len(queries) // 12]
    found = [[cdf(rows, query, t) for t in thresholds] for query in queries]
    return {
        "name": name,
        "about": about,
        "scores": [score for score, _, _ in rows],
        "labels": labels,
        "weights": [weight for _, _, weight in rows],
        "thresholds": thresholds,
        "queries": queries,
        "lower": [[written(lower) for lower, _ in row] for row in found],
        "upper": [[written(upper) for _, upper in row] for row in found],
    }


def scattered(name: str, n: int, digits: int, weights: tuple[float, ...] = (1,)) -> Case:
    """Draw labels about the scores."""
    random = Random(f"{name} labels")  # noqa: S311 - nothing secret
    rows = [
        (score, round(score + random.random() - random.random(), digits), weight)
        for score, _, weight in drawn(name, n, digits, weights)
    ]
    return distributions(name, f"{n} observations of {digits} digits.", rows)


def regression() -> dict[str, Any]:
    """Make the suite of predictive CDFs."""
    return {
        "format": 1,
        "title": "Venn-Abers conformance suite: predictive distributions",
        "definition": "At a threshold t call a label above t 1 and any other 0. With p0 and p1 of "
        "these at a query s, the lower CDF at t is 1 - p1 and the upper one 1 - p0. Row i of lower "
        "and upper belongs to query i, column j to threshold j.",
        "bags": [
            distributions("one", "A single observation.", [(0.5, 2.0, 1)]),
            distributions(
                "in-order", "Labels that grow with the score.", [(i, i, 1) for i in range(1, 5)]
            ),
            distributions("upside-down", "Labels that fall.", [(i, 5 - i, 1) for i in range(1, 5)]),
            distributions(
                "ties",
                "Equal scores, and equal labels.",
                [(0.5, 1.0, 1), (0.5, 3.0, 1), (0.5, 1.0, 1), (0.7, 1.0, 1), (0.7, 2.0, 1)],
            ),
            scattered("few", 8, 1),
            scattered("many-ties", 40, 1),
            scattered("weights", 15, 1, WEIGHTS),
            scattered("distinct", 40, 3),
        ],
    }


def text(suite: dict[str, Any]) -> str:
    """Write a suite, a line for each column of a case."""

    def case(fields: Case) -> str:
        return ",\n".join(f"   {json.dumps(key)}: {json.dumps(fields[key])}" for key in fields)

    def value(found: Any) -> str:  # noqa: ANN401 - as JSON has it
        if not isinstance(found, list):
            return json.dumps(found)
        return "[\n  {\n" + "\n  },\n  {\n".join(case(fields) for fields in found) + "\n  }\n ]"

    return "{\n" + ",\n".join(f" {json.dumps(k)}: {value(v)}" for k, v in suite.items()) + "\n}\n"


SUITES = {"binary.json": binary, "regression.json": regression}

if __name__ == "__main__":
    for file, make in SUITES.items():
        (FOLDER / file).write_text(text(make()), encoding="utf-8")

"""Writes the conformance suite: `suite/binary.json` and `suite/regression.json`.

Every answer comes from `definition`, every random number from the name of its
case, so that the same two files are written everywhere. Run it by

    python -m tests.conformance.publish
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from tests.conformance.bags import (
    WEIGHTS,
    Case,
    around,
    at_random,
    by_hand,
    drawn,
    written,
)
from tests.conformance.definition import Observation, cdf, probability

FOLDER = Path(__file__).with_name("suite")
# Streams: learned, removed and asked step by step


class Stream:
    """A case as a sequence of steps."""

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

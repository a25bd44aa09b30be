"""Intervals for means: `UnboundedIVAR` next to `VennAbers`, on the same scores in turns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from abers import VennAbers
from abers.batch import UnboundedIVAR
from benchmarks.page import Key, Section, size, table
from benchmarks.streams import SEED
from benchmarks.timing import Spread, cpu_seconds, digits, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.plan import Plan

SIZES, EVENTS, ROUNDS = (1_000, 100_000), 4_000, 5
BINARY, NUMBERS = "VennAbers", "UnboundedIVAR"


class Turns:
    """One calibrator after n labels, and what is timed of it."""

    def __init__(self, make: Callable[..., Any], n: int, *, binary: bool) -> None:
        rng = np.random.default_rng(SEED)
        self.make, self.scores = make, rng.random(n + EVENTS)
        noise = rng.normal(size=n + EVENTS)
        self.labels = self.scores + noise > 0.5 if binary else self.scores + noise  # noqa: PLR2004
        self.taught, self.n = make(), n
        self.taught.learn_many(self.scores[:n], self.labels[:n])
        more = self.scores[n:], self.labels[n:]
        self.singles = [*zip(*(column.tolist() for column in more), strict=True)]

    def single(self) -> float:
        """Predict and learn one by one, and take the labels back."""

        def steps() -> None:
            for score, label in self.singles:
                self.taught.predict_one(score)
                self.taught.learn_one(score, label)

        taken = cpu_seconds(steps)
        for score, label in self.singles:
            self.taught.remove_one(score, label)
        return 1e6 * taken / EVENTS

    def prequential(self, **rule: int) -> float:
        """Predict and learn a stream in one call."""
        fresh = self.make(**rule)
        return (
            1e6
            * cpu_seconds(lambda: fresh.prequential(self.scores, self.labels))
            / (self.n + EVENTS)
        )

    def learn_many(self) -> float:
        """Learn all in one call."""
        fresh = self.make()
        return (
            1e6
            * cpu_seconds(lambda: fresh.learn_many(self.scores, self.labels))
            / (self.n + EVENTS)
        )

    def predict_many(self) -> float:
        """Predict all in one call, after a label."""
        self.taught.learn_one(self.scores[0], self.labels[0])
        taken = cpu_seconds(lambda: self.taught.predict_many(self.scores))
        self.taught.remove_one(self.scores[0], self.labels[0])
        return 1e6 * taken / (self.n + EVENTS)


CALLS: dict[str, Callable[[Turns], float]] = {
    "predict and learn, one by one": Turns.single,
    "`prequential`": Turns.prequential,
    "`prequential`, window of 1,000": lambda turns: turns.prequential(window=1_000),
    "`learn_many`": Turns.learn_many,
    "`predict_many`": Turns.predict_many,
}


def means(plan: Plan) -> Section:
    """Measure both calibrators in turns; microseconds of processor time an event."""
    rows: list[list[object]] = []
    values: dict[Key, Spread] = {}
    for n in (one for one in SIZES if one <= plan.large):
        binary, numbers = (
            Turns(make, n, binary=make is VennAbers) for make in (VennAbers, UnboundedIVAR)
        )
        for name, call in CALLS.items():
            turns = {BINARY: partial(call, binary), NUMBERS: partial(call, numbers)}
            found = in_turns(min(plan.rounds, ROUNDS), turns)
            ratio = digits(found[NUMBERS].median / found[BINARY].median)
            rows.append([f"{name}, {size(n)} labels", *found.values(), ratio])
            values |= {(f"means, {name}", of, n): one for of, one in found.items()}
    body = (
        "`UnboundedIVAR` and `VennAbers` take the same scores; µs of processor time an event.\n\n"
        + table(["", f"`{BINARY}`", f"`{NUMBERS}`", "times"], rows)
    )
    return Section("Intervals for means", body, values)

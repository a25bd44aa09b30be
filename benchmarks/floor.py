"""Distance to the least possible cost, and shares of queries and insertions in the time.

No exact calibrator can be cheaper than keeping its scores in order; so the same
stream goes through bare ordered containers of the same size, insertion and lower bound, in C++.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from abers.arrays import LEARN, PREDICT, REMOVE
from benchmarks import rivals
from benchmarks.contenders import NATIVE, Abers, Compiled
from benchmarks.page import Key, Section, size, table
from benchmarks.streams import Stream, ordinary
from benchmarks.timing import Spread, digits, in_turns, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.contenders import Contender
    from benchmarks.plan import Plan

_PAIR = "query + insert"
BARE_CONTAINERS = {"sorted buckets": rivals.BUCKETS, "std::multiset": rivals.MULTISET}


def _pair(contender: Contender, events: Stream) -> float:
    """Time predict + learn, and take it back; microseconds an event."""
    taken = seconds(partial(contender.prequential, events.scores, events.labels))
    contender.unlearn(events.scores, events.labels)
    return taken / len(events.scores) * 1e6


def _run(native: Abers, events: Stream, step: int) -> float:
    """Time one kind of step on all events."""
    steps = np.full(len(events.scores), step, np.uint8)
    call = partial(native.calibrator.run, steps, events.scores, events.labels)
    return seconds(call) / len(events.scores) * 1e6


def _core(native: Abers, events: Stream) -> float:
    """Time predict + learn without checks: the steps are laid out before."""
    n = 2 * len(events.scores)
    steps = np.tile(np.array([PREDICT, LEARN], np.uint8), n // 2)
    scores, labels = np.repeat(events.scores, 2), np.repeat(events.labels, 2)
    held, p0, p1 = native.calibrator._held, np.empty(n), np.empty(n)  # noqa: SLF001
    taken = seconds(partial(held.run, steps, scores, labels, None, None, p0, p1))
    native.unlearn(events.scores, events.labels)
    return taken / n * 2e6


def _filled(contender: Contender, bag: Stream) -> Contender:
    contender.fill(bag.scores, bag.labels)
    return contender


def floor(plan: Plan) -> Section:
    """Compare with bare containers, and take the pair of calls apart."""
    n, m = plan.large, min(plan.most, plan.large)
    stream = ordinary(n + m)
    bag, events = stream.part(0, n), stream.part(n, n + m)
    native = Abers(0)
    native.fill(bag.scores, bag.labels)
    measures: dict[str, Callable[[], float]] = {NATIVE: partial(_pair, native, events)}
    if rivals.library():
        for name, kind in BARE_CONTAINERS.items():
            measures[name] = partial(_pair, _filled(Compiled(kind), bag), events)
    parts: dict[str, Callable[[], float]] = {
        "query": partial(_run, native, events, PREDICT),
        "insert": partial(_run, native, events, LEARN),
        "delete": partial(_run, native, events, REMOVE),
        _PAIR: partial(_core, native, events),
    }
    found = in_turns(plan.rounds, measures | parts)
    values: dict[Key, Spread] = {("floor", name, n): spread for name, spread in found.items()}
    return Section("The floor", _body(n, found, list(measures)), values)


def _body(n: int, found: dict[str, Spread], whole: list[str]) -> str:
    native = found[NATIVE].median
    missing = "" if len(whole) > 1 else "Not compared: no C++ compiler was found.\n\n"
    rows = [[name, found[name], digits(native / found[name].median)] for name in whole]
    parts = [[name, spread] for name, spread in found.items() if name not in whole]
    return (
        f"Predict + learn at n = {size(n)}, and the same stream through bare ordered containers of"
        " doubles: one lower bound and one insertion an event. µs an event.\n\n"
        + missing
        + table(["", "µs", "abers native takes, times"], rows)
        + "Taken apart: each step alone through `VennAbers.run`, and the pair without the checks"
        " and the interleaving of `prequential`, which make the rest. The pair can be cheaper than"
        " its parts: the insertion finds in the cache what the query fetched.\n\n"
        + table(["", "µs"], parts)
    )

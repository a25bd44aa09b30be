"""Orders and weights that are hostile to a hull: mean cost, and the worst single operation.

An operation that is slow once is slow because of the machine; one that is slow at the same
observation in every new calibrator is slow because of the algorithm. So each calibrator is built
several times, and the worst operation has the slowest fastest pass.
"""

from __future__ import annotations

from functools import cache, partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers import VennAbers
from abers.arrays import LEARN, PREDICT, REMOVE
from benchmarks.page import Key, Section, size, table
from benchmarks.streams import UNIT, WEIGHTED, Hostile, hostile
from benchmarks.timing import NOISE, Spread, digits, seconds, undisturbed

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.plan import Plan
    from benchmarks.streams import Floats, Stream

_TAIL, _CHUNKS = 100_000, 5  # the last arrivals are timed, at most so many, in so many calls
_WARM_UP = 50  # probes that do not count
_KINDS = {PREDICT: "predict", LEARN: "learn", REMOVE: "remove"}


class _Pass(NamedTuple):
    """Measurements of one pass over one hostile stream, in microseconds."""

    arriving: list[float]  # predict + learn, a chunk a row
    cycle: list[float]  # the three steps on each probe, a repetition a row
    single: Floats  # a row a probe, a column a step
    vertices: int


def _steps(case: Hostile) -> tuple[int, int, int]:
    return (REMOVE, PREDICT, LEARN) if case.held else (LEARN, PREDICT, REMOVE)


def _arrive(calibrator: VennAbers, stream: Stream) -> list[float]:
    """Learn all; the last arrivals are predicted too, and timed."""
    n = len(stream.scores)
    chunk = min(n // 2, _TAIL) // _CHUNKS
    first = n - _CHUNKS * chunk
    calibrator.learn_many(*stream.part(0, first)[:2], weights=stream.part(0, first).weights)
    taken = []
    for at in range(first, n, chunk):
        scores, labels, weights = stream.part(at, at + chunk)
        call = partial(calibrator.prequential, scores, labels, weights=weights)
        taken.append(seconds(call) / chunk * 1e6)
    return taken


def _cycle(calibrator: VennAbers, case: Hostile) -> float:
    """Take all probes through the three steps in one call."""
    m = len(case.probes.scores)
    steps = np.tile(np.array(_steps(case), np.uint8), m)
    scores, labels = np.repeat(case.probes.scores, 3), np.repeat(case.probes.labels, 3)
    weights = None if case.probes.weights is None else np.repeat(case.probes.weights, 3)
    return seconds(partial(calibrator.run, steps, scores, labels, weights=weights)) / m * 1e6


@cache
def _empty_call() -> float:
    """Nanoseconds that a clock takes to be read."""
    readings = np.array([perf_counter_ns() for _ in range(10_001)])
    return float(np.median(np.diff(readings)))


def _single(calibrator: VennAbers, case: Hostile) -> Floats:
    """Take all probes through the three steps, each a call of its own on the clock."""
    scores, labels, weights = case.probes
    every = [1.0] * len(scores) if weights is None else weights.tolist()
    clock, taken = perf_counter_ns, []
    predict = calibrator.predict_one
    before: Callable[..., None] = calibrator.remove_one if case.held else calibrator.learn_one
    after: Callable[..., None] = calibrator.learn_one if case.held else calibrator.remove_one
    with undisturbed():
        for score, label, weight in zip(scores.tolist(), labels.tolist(), every, strict=True):
            started = clock()
            before(score, label, weight=weight)
            changed = clock()
            predict(score, weight=weight)
            predicted = clock()
            after(score, label, weight=weight)
            taken.append((started, changed, predicted, clock()))
    return (np.diff(np.array(taken[_WARM_UP:]), axis=1) - _empty_call()) / 1e3


def _pass(case: Hostile) -> _Pass:
    NOISE.listen()
    calibrator = VennAbers()
    arriving = _arrive(calibrator, case.stream)
    vertices = len(calibrator.hull().value)
    single = _single(calibrator, case)
    return _Pass(arriving, [_cycle(calibrator, case) for _ in range(3)], single, vertices)


class _Row(NamedTuple):
    """One hostile stream at one n, all passes together."""

    vertices: int
    arriving: Spread
    cycle: Spread
    percentile: Spread  # the 99.9th of single operations, over the passes
    worst: float  # an operation in its fastest pass
    worst_kind: str
    worst_seen: float

    @classmethod
    def of(cls, case: Hostile, passes: list[_Pass]) -> _Row:
        singles = np.array([one.single for one in passes])
        best = singles.min(axis=0)
        column = int(np.argmax(best.max(axis=0)))
        return cls(
            passes[0].vertices,
            Spread.of([taken for one in passes for taken in one.arriving]),
            Spread.of([taken for one in passes for taken in one.cycle]),
            Spread.of([float(np.percentile(one, 99.9)) for one in singles]),
            float(best.max()),
            _KINDS[_steps(case)[column]],
            float(singles.max()),
        )


def _measure(n: int, plan: Plan) -> dict[str, _Row]:
    """Measure all streams in turns, as often as there are passes."""
    names = [*UNIT, *WEIGHTED]
    cases = {name: hostile(name, n, min(plan.probes, n // 2)) for name in names}
    passes: dict[str, list[_Pass]] = {name: [] for name in names}
    for _ in range(plan.passes):
        for name, case in cases.items():
            passes[name].append(_pass(case))
    return {name: _Row.of(cases[name], passes[name]) for name in names}


def _table(rows: dict[str, _Row]) -> str:
    head = ["order or weights", "vertices", "arriving", "to random", "cycle", "to random"]
    head += ["p99.9", "worst", "of", "worst seen"]
    usual = rows["random"]
    return table(
        head,
        [
            [
                name,
                size(row.vertices),
                row.arriving,
                digits(row.arriving.median / usual.arriving.median),
                row.cycle,
                digits(row.cycle.median / usual.cycle.median),
                row.percentile,
                digits(row.worst),
                row.worst_kind,
                digits(row.worst_seen),
            ]
            for name, row in rows.items()
        ],
    )


def _values(rows: dict[str, _Row], n: int) -> dict[Key, Spread]:
    values: dict[Key, Spread] = {}
    for name, row in rows.items():
        values["arriving", name, n], values["cycle", name, n] = row.arriving, row.cycle
        values["p99.9", name, n] = row.percentile
        values["worst", name, n] = Spread(row.worst, row.worst, row.worst_seen)
    return values


def hostile_orders(plan: Plan) -> Section:
    """Measure every hostile stream at every size."""
    body = (
        "The native core alone, microseconds. *Arriving*: predict + learn in the order of the"
        " stream, over its last part. *Cycle*: query, insertion and deletion of one observation"
        " of the set (removed, predicted, learned again) or, *hit at its ends*, of one below or"
        " above all others that flattens the hull from there (weight 10⁹ against n/2 vertices)."
        " Both through one call on arrays; *to random* is the ratio to the random order.\n\n"
        "The last columns are single calls from Python, each on the clock, less the clock's own"
        " time: the 99.9th percentile of all of them; the worst, taken as the slowest call in its"
        f" fastest of {plan.passes} passes, each on a calibrator built anew; and the worst seen in"
        " any pass, in which every pause of the machine is counted.\n\n"
        "*Largest hull*: every reduced fraction is the slope of one edge. *n/2 vertices*: pairs of"
        " real weights with a share of label 1 that grows from pair to pair; n labels cannot have"
        " more blocks, since a block but the outermost needs both labels.\n\n"
    )
    values: dict[Key, Spread] = {}
    for n in plan.hostile:
        rows = _measure(n, plan)
        body += f"### n = {size(n)}\n\n{_table(rows)}"
        values |= _values(rows, n)
    return Section("Hostile orders and weights", body, values)

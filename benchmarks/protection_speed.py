"""Time of protected prediction compared with plain Venn-Abers prediction, on the same streams."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from abers import CrossVennAbers, OneVsRest, ProtectedCrossVennAbers, ProtectedMultiClass, VennAbers
from abers.calibration import ProtectedVennAbers
from abers.stream import Event, Events, Label, Observation, Processor, Settings
from benchmarks.events import LATE
from benchmarks.page import Key, Section, size, table
from benchmarks.timing import Spread, cpu_seconds, digits, in_turns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.plan import Plan

MERGED: Literal["merged"] = "merged"
PROTECTED: Literal["protected"] = "protected"
_ROUNDS = 5
_MICRO = 1e6
_SINGLE = 5_000
_SEVERAL = 5  # folds, and classes


def processed(probability: Literal["merged", "protected"], models: int, blocks: int) -> None:
    """Process a stream of several models."""
    settings = Settings(scores="probability", probability=probability)
    processor = Processor(settings, outcomes=False)
    rng = np.random.default_rng(1)
    late: list[Observation | Label] = []
    for block in range(blocks):
        scores = rng.random(LATE)
        labels = (rng.random(LATE) < scores).tolist()
        at = range(block * LATE, (block + 1) * LATE)
        names = [f"m{i % models}" for i in at]
        rows = [*zip(at, names, scores.tolist(), labels, strict=True)]
        events = [Observation(f"{i:016x}", i, model, score) for i, model, score, _ in rows]
        processor.process_many([*events, *late])
        late = [Label(f"{i:016x}", i, model, int(label)) for i, model, _, label in rows]


def processed_classes(n: int, *, at_once: bool) -> dict[str, Callable[[], object]]:
    """Return what processes a stream of five classes, in batches or by single events."""
    names = [f"class-{number}" for number in range(_SEVERAL)]
    rng = np.random.default_rng(1)
    shares, labels = rng.dirichlet(np.ones(_SEVERAL), n).tolist(), rng.integers(0, _SEVERAL, n)
    events: list[Event] = []
    for i, (score, label) in enumerate(zip(shares, labels.tolist(), strict=True)):
        events.append(Observation(f"{i:016x}", i, score=dict(zip(names, score, strict=True))))
        events.append(Label(f"{i:016x}", i, value=names[label]))
    batches = [Events.of(events[at : at + 2 * LATE]) for at in range(0, 2 * n, 2 * LATE)]

    def run(probability: Literal["merged", "protected"]) -> None:
        settings = Settings(
            task="multiclass",
            classes=(*names,),
            scores="probability",
            probability=probability,
        )
        processor = Processor(settings, outcomes=not at_once)
        if at_once:
            for batch in batches:
                processor.process_batch(batch)
        else:
            for event in events:
                processor.process(event)

    return {MERGED: partial(run, MERGED), PROTECTED: partial(run, PROTECTED)}


Run = Callable[[Any, "Family"], None]
CLASSES = partial(OneVsRest, range(_SEVERAL))


class Family(NamedTuple):
    """A plain and a protected calibrator, and a stream for both."""

    plain: Callable[[], Any]
    protected: Callable[[], Any]
    scores: NDArray[np.float64]
    labels: NDArray[np.int64]
    folds: NDArray[np.int64] | None = None

    @property
    def single(self) -> list[tuple[Any, int]]:
        """The first scores as single calls take them, and their labels."""
        scores: list[Any] = self.scores[:_SINGLE].tolist()
        if self.plain is CLASSES:
            scores = [dict(enumerate(one)) for one in scores]
        return [*zip(scores, self.labels[:_SINGLE].tolist(), strict=True)]


def families(n: int) -> dict[str, Family]:
    """Return the calibrators of two classes, of folds and of several classes."""
    rng = np.random.default_rng(1)
    score, label = rng.random(n), rng.random(n)
    binary = (label < score).astype(np.int64)
    near = np.clip(score[:, np.newaxis] + rng.normal(0.0, 0.05, (n, _SEVERAL)), 0.0, 1.0)
    shares = rng.dirichlet(np.ones(_SEVERAL), n)
    classes = (shares.cumsum(axis=1) < label[:, np.newaxis]).sum(axis=1)
    return {
        "two classes": Family(VennAbers, ProtectedVennAbers, score, binary),
        "five folds": Family(
            partial(CrossVennAbers, folds=_SEVERAL),
            partial(ProtectedCrossVennAbers, folds=_SEVERAL),
            *(near, binary, np.arange(n) % _SEVERAL),
        ),
        "five classes": Family(
            CLASSES, partial(ProtectedMultiClass, CLASSES.args[0]), shares, classes
        ),
    }


def together(calibrator: Any, of: Family) -> None:  # noqa: ANN401 - of any kind
    """Predict and learn in one call, with late labels."""
    folds = {} if of.folds is None else {"folds": of.folds}
    calibrator.prequential(of.scores, of.labels, delay=LATE, **folds)


def singly(calibrator: Any, of: Family) -> None:  # noqa: ANN401 - of any kind
    """Predict and learn one by one; only protected calibrators take numbers."""
    numbered = calibrator.capabilities.stateful
    for i, (score, label) in enumerate(of.single):
        number = {"number": i} if numbered else {}
        fold = {} if of.folds is None else {"fold": i % _SEVERAL}
        calibrator.predict_one(score, **number)
        calibrator.learn_one(score, label, **number, **fold)


def protection(plan: Plan) -> Section:
    """Measure both kinds of probabilities in turns; microseconds of processor time an observation.

    An observation counts with its label.
    """
    n = plan.replayed // 2
    few = min(n, _SINGLE)
    turns: dict[str, tuple[int, dict[str, Callable[[], object]]]] = {
        f"processor, {models} models": (
            n,
            {
                MERGED: partial(processed, MERGED, models, n // LATE),
                PROTECTED: partial(processed, PROTECTED, models, n // LATE),
            },
        )
        for models in (1, 16)
    }
    turns["processor, five classes"] = n, processed_classes(n, at_once=True)
    turns["processor, five classes, one by one"] = few, processed_classes(few, at_once=False)
    for name, of in families(n).items():
        turns[name] = n, _both(of, together)
        turns[f"{name}, one by one"] = few, _both(of, singly)
    values: dict[Key, Spread] = {}
    rows: list[list[object]] = []
    for name, (count, calls) in turns.items():
        timed = {kind: partial(_micros, call, count) for kind, call in calls.items()}
        found = in_turns(min(plan.rounds, _ROUNDS), timed)
        values |= {(f"protection, {name}", kind, n): one for kind, one in found.items()}
        rows.append([name, *found.values(), digits(found[PROTECTED].median / found[MERGED].median)])
    body = (
        f"{size(n)} observations, each with its label {size(LATE)} later: a processor with monitors"
        " in batches, or a calibrator in one call; one by one, the first"
        f" {size(few)}. µs of processor time an observation with its label.\n\n"
        + table(["", MERGED, PROTECTED, "times"], rows)
    )
    return Section("Protected probabilities", body, values)


def _both(of: Family, run: Run) -> dict[str, Callable[[], object]]:
    return {MERGED: lambda: run(of.plain(), of), PROTECTED: lambda: run(of.protected(), of)}


def _micros(call: Callable[[], object], count: int) -> float:
    return _MICRO * cpu_seconds(call) / count

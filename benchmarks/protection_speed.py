"""Time of protected prediction compared with plain Venn-Abers prediction, in one run.

Usage: python -m benchmarks.protection_speed [BLOCKS]

A block has 1,000 observations, and the labels of the block before. Times are of the processor in
microseconds an observation with its label, of this process alone; the median of some rounds, in
turns; also with five classes, in batches and one by one. Then the calibration set follows by
itself, and calibrators of two classes, of five folds and of five classes, in one call and in single
calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from abers import CrossVennAbers, OneVsRest, ProtectedCrossVennAbers, ProtectedMultiClass, VennAbers
from abers.backends import core
from abers.calibration import ProtectedVennAbers
from abers.steps import interleaved
from abers.stream import Event, Events, Label, Observation, Processor, Settings
from benchmarks.events import LATE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_ROUNDS = 5
_MICRO = 1e6
_SINGLE = 5_000
_SEVERAL = 5  # folds, and classes


def write(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def medians(calls: Mapping[str, Callable[[], object]], n: int) -> dict[str, float]:
    """Time calls in turns; return the median of each, in microseconds an observation."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            started = process_time()
            call()
            found[name].append((process_time() - started) / n * _MICRO)
    return {name: median(times) for name, times in found.items()}


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

    return {"merged": partial(run, "merged"), "protected": partial(run, "protected")}


def calibration_set(n: int) -> None:
    """Run the calibration set of two classes on a stream with late labels."""
    rng = np.random.default_rng(1)
    scores, (rows, kinds) = rng.random(n), interleaved(n, LATE)
    labels = (rng.random(n) < scores).astype(np.uint8)
    p0, p1 = np.empty((2, 2 * n))
    core.CalibrationSet().run(kinds, scores[rows], labels[rows], None, None, p0, p1)


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


def compared(name: str, of: Family) -> None:
    """Print the times of a family, and their ratios."""
    n = len(of.labels)
    for title, run, count in (("", together, n), (", one by one", singly, min(n, _SINGLE))):
        calls = {
            "plain": lambda run=run: run(of.plain(), of),
            "protected": lambda run=run: run(of.protected(), of),
        }
        plain, protected = medians(calls, count).values()
        ratio = f"{protected / plain:.2f} times"
        write(f"{name + title:25} plain {plain:6.2f}, protected {protected:6.2f}, {ratio}")


def main(blocks: str = "50") -> None:
    """Print the times and their ratios."""
    n = int(blocks) * LATE
    write("microseconds an observation with its label\n")
    for models in (1, 16):
        calls = {
            "merged": partial(processed, "merged", models, n // LATE),
            "protected": partial(processed, "protected", models, n // LATE),
        }
        merged, protected = medians(calls, n).values()
        ratio = f"{protected / merged:.2f} times"
        write(
            f"processor, models {models:2}: merged {merged:.2f}, protected {protected:.2f}, {ratio}"
        )
    for title, count, at_once in (("batches of 2,000", n, True), ("one by one", _SINGLE, False)):
        merged, protected = medians(processed_classes(count, at_once=at_once), count).values()
        ratio = f"{protected / merged:.2f} times"
        write(
            f"processor, five classes, {title}: merged {merged:.2f}, protected {protected:.2f},"
            f" {ratio}"
        )
    alone = medians({"calibration set": lambda: calibration_set(n)}, n)["calibration set"]
    write(f"calibration set, two classes {alone:.2f}")
    for name, of in families(n).items():
        compared(name, of)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Time of protected prediction compared with plain Venn-Abers prediction, in one run.

Usage: python -m benchmarks.protection_speed [BLOCKS]

A block has 1,000 observations, and the labels of the block before. Times are of the processor in
microseconds an observation with its label, of this process alone; the median of some rounds, in
turns. Then the calibration set follows by itself, and single calls.
"""

from __future__ import annotations

import sys
from functools import partial
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Literal

import numpy as np

from abers import VennAbers
from abers.backends import core
from abers.calibration import ProtectedVennAbers
from abers.steps import interleaved
from abers.stream import Label, Observation, Processor, Settings
from benchmarks.events import LATE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_ROUNDS = 5
_MICRO = 1e6
_SINGLE = 5_000


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


def parts(n: int) -> dict[str, Callable[[], object]]:
    """Return the parts of protected prediction, on a stream with late labels."""
    rng = np.random.default_rng(1)
    scores, (rows, kinds) = rng.random(n), interleaved(n, LATE)
    labels = (rng.random(n) < scores).astype(np.uint8)

    def calibration_set() -> None:
        p0, p1 = np.empty((2, 2 * n))
        core.CalibrationSet().run(kinds, scores[rows], labels[rows], None, None, p0, p1)

    return {
        "calibration set": calibration_set,
        "all of it": lambda: ProtectedVennAbers().prequential(scores, labels, delay=LATE),
    }


def singly(make: type[VennAbers | ProtectedVennAbers]) -> None:
    """Predict and learn one by one."""
    calibrator, numbered = make(), make is ProtectedVennAbers
    rng = np.random.default_rng(1)
    for i, score in enumerate(rng.random(_SINGLE).tolist()):
        number = i if numbered else None
        calibrator.predict_one(score, number=number)
        calibrator.learn_one(score, int(score > 0.5), number=number)  # noqa: PLR2004 - a label


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
    for name, time in medians(parts(n), n).items():
        write(f"{name:34}{time:6.2f}")
    both = {one.__name__: partial(singly, one) for one in (VennAbers, ProtectedVennAbers)}
    for name, time in medians(both, _SINGLE).items():
        write(f"{name + ', one by one':34}{time:6.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])

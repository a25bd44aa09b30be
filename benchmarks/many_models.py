"""Many models in one stream: their batches, and the time to save and to restore them.

Each figure is processor time. Run as `python -m benchmarks.many_models [PYTHON]`; with the
interpreter of another installation of abers both are measured in alternating pairs, and the
ratios are printed too.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.stream import Events, Processor, Settings
from benchmarks.page import Key, Section, size, table
from benchmarks.rivals import ROOT
from benchmarks.streams import SEED
from benchmarks.timing import Spread, cpu_seconds, in_turns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.plan import Plan

_MOST = 10**6
BATCH, SAVE, RESTORE = "process_batch", "snapshot", "restore"
KINDS = {
    "merged": Settings(monitors=False, max_models=_MOST),
    "protected": Settings(scores="probability", monitors=False, max_models=_MOST),
}
_ROWS, _LABELS, _LATE = 2_000, 20, 4  # events a batch, labels a model, batches a label comes late
_BATCHES, _PAIRS = 40, 9
_START = 1_700_000_000_000


def batches(models: int, count: int, rows: int = _ROWS) -> Iterator[Events]:
    """Yield batches, half of them observations in turn of the models, half of them late labels."""
    half = rows // 2
    for number in range(count):
        seen = np.arange(number * half, (number + 1) * half)
        late = seen - _LATE * half
        late = late[late >= 0]
        both = np.concatenate((seen, late))
        labels = np.arange(len(both)) >= half
        order = np.argsort(np.concatenate((2 * np.arange(half), 2 * np.arange(len(late)) + 1)))
        scores = np.random.default_rng([SEED, number]).random(half)
        values = np.random.default_rng([SEED, number, 1]).integers(0, 2, len(late))
        columns: tuple[Any, ...] = (
            np.array([f"{one:016x}" for one in both.tolist()], object),
            _START + 2 * both + (1 + 2 * _LATE * half) * labels,
            np.array([f"m{one % models}" for one in both.tolist()], object),
            np.full(len(both), "", object),
            np.concatenate((scores, np.zeros(len(late)))),
            np.concatenate((np.zeros(half, np.int64), values)),
        )
        yield Events(labels[order], *(column[order] for column in columns))


def batch_micros(settings: Settings, models: int, count: int = _BATCHES) -> float:
    """Return microseconds an event of `process_batch`, when each model has had events."""
    processor = Processor(settings, outcomes=False)
    warm = count // 2 + 2 * models // _ROWS
    each = [*batches(models, warm + count)]
    for one in each[:warm]:
        processor.process_batch(one)
    taken = cpu_seconds(lambda: [processor.process_batch(one) for one in each[warm:]])
    return 1e6 * taken / sum(map(len, each[warm:]))


def filled(settings: Settings, models: int) -> Processor:
    """Return a processor of so many models of 20 labels each."""
    processor = Processor(settings, outcomes=False)
    rows = max(_ROWS, models // 10)
    for one in batches(models, 2 * _LABELS * models // rows + _LATE, rows):
        processor.process_batch(one)
    return processor


def saved_seconds(settings: Settings, models: int) -> tuple[float, float]:
    """Return seconds to save, and to restore, models of 20 labels."""
    processor = filled(settings, models)
    blob = processor.snapshot()
    saving = cpu_seconds(processor.snapshot)
    return saving, cpu_seconds(partial(Processor.restore, blob, settings))


def models(plan: Plan) -> Section:
    """Measure batches of one and of many models, and saving them."""
    many, some = plan.models, max(100, plan.models // 10)
    values: dict[Key, Spread] = {}
    rows: list[list[object]] = []
    for name, settings in KINDS.items():
        runs = {count: partial(batch_micros, settings, count) for count in sorted({1, some, many})}
        found = in_turns(min(plan.rounds, 5), {str(count): run for count, run in runs.items()})
        values |= {(BATCH, name, int(count)): one for count, one in found.items()}
        saving, restoring = zip(*[saved_seconds(settings, many) for _ in range(3)], strict=True)
        values[SAVE, name, many], values[RESTORE, name, many] = map(Spread.of, (saving, restoring))
        rows.append([name, *found.values(), values[SAVE, name, many], values[RESTORE, name, many]])
    heads = [f"{size(count)} models" for count in sorted({1, some, many})]
    body = (
        f"Batches of {size(_ROWS)} events, half of them labels, without monitors and outcomes;"
        f" microseconds an event. Then {size(many)} models of {_LABELS} labels each are saved and"
        " restored; seconds. All of it is processor time.\n\n"
        + table(["", *heads, SAVE, RESTORE], rows)
    )
    return Section("Many models", body, values)


def _figures() -> dict[str, float]:
    """Return all figures once."""
    found = {
        f"{BATCH}, {name}, {count} models": batch_micros(settings, count)
        for name, settings in KINDS.items()
        for count in (1, 1_000)
    }
    for name, settings in KINDS.items():
        saving, restoring = saved_seconds(settings, 2_000)
        found |= {f"{SAVE}, {name}": saving, f"{RESTORE}, {name}": restoring}
    return found


def _compare(other: str) -> None:
    """Print the medians of pairs, and of their ratios."""
    pairs = []
    for _ in range(_PAIRS):
        both = [
            subprocess.check_output([python, "-m", "benchmarks.many_models", "once"], cwd=ROOT)  # noqa: S603 - of ours
            for python in (other, sys.executable)
        ]
        pairs.append([*map(json.loads, both)])
    for name in pairs[0][0]:
        before, now = (statistics.median(pair[at][name] for pair in pairs) for at in (0, 1))
        ratio = statistics.median(pair[0][name] / pair[1][name] for pair in pairs)
        sys.stdout.write(f"{name}: {before:.3g} -> {now:.3g}, {ratio:.2f} times\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["once"]:
        sys.stdout.write(json.dumps(_figures()))
    elif sys.argv[1:]:
        _compare(sys.argv[1])
    else:
        for name, figure in _figures().items():
            sys.stdout.write(f"{name}: {figure:.3g}\n")

"""Many models in one stream: their batches, and the time to save and to restore them.

Each figure is processor time. The rival is a dictionary of models by hand, which pickle saves.
"""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.stream import Events, Label, Observation, Processor, Settings
from benchmarks.by_hand import HAND, ByHand
from benchmarks.page import Key, Section, size, table
from benchmarks.streams import SEED
from benchmarks.timing import Spread, cpu_seconds, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from abers.stream import Event
    from benchmarks.plan import Plan

    Saved = Callable[[int], tuple[float, float]]

_MOST = 10**6
BATCH, SAVE, RESTORE = "process_batch", "snapshot", "restore"
KINDS = {
    "merged": Settings(monitors=False, max_models=_MOST),
    "protected": Settings(scores="probability", monitors=False, max_models=_MOST),
}
_ROWS, _LABELS, _LATE = 2_000, 20, 4  # events a batch, labels a model, batches a label comes late
_BATCHES = 40
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


def hand_micros(models: int) -> float:
    """Return microseconds an event of the same by hand, behind the labels of `filled`."""
    hand = by_hand(models)
    seen = 2 * _LABELS * models
    after = [Observation(f"x{at}", seen + at, f"m{at % models}", 0.37) for at in range(_ROWS)]
    late = [Label(one.id, seen + _ROWS, one.model, value=1) for one in after]
    events: list[Event] = [*after, *late]
    taken = cpu_seconds(lambda: [hand.process(event) for event in events])
    return 1e6 * taken / (2 * _ROWS)


def by_hand(models: int) -> ByHand:
    """Return the same by hand as `filled` does."""
    hand, rows = ByHand(), max(_ROWS, models // 10)
    for one in batches(models, 2 * _LABELS * models // rows + _LATE, rows):
        for event in one:
            hand.process(event)
    return hand


def hand_saved_seconds(models: int) -> tuple[float, float]:
    """Return seconds in which pickle saves, and restores, the same by hand."""
    hand = by_hand(models)
    blob = pickle.dumps(hand)
    return cpu_seconds(lambda: pickle.dumps(hand)), cpu_seconds(lambda: pickle.loads(blob))  # noqa: S301 - of ours


def models(plan: Plan) -> Section:
    """Measure batches of one and of many models, and saving them."""
    many = plan.models
    counts = sorted({1, max(100, many // 10), many})
    values: dict[Key, Spread] = {}
    for count in counts:
        turns = {name: partial(batch_micros, one, count) for name, one in KINDS.items()}
        if count == many:
            turns[HAND] = partial(hand_micros, many)
        found = in_turns(min(plan.rounds, 5), turns)
        values |= {(BATCH, name, count): one for name, one in found.items()}
    saves: dict[str, Saved] = {name: partial(saved_seconds, one) for name, one in KINDS.items()}
    saves[HAND] = hand_saved_seconds
    rows: list[list[object]] = []
    for name, saved in saves.items():
        saving, restoring = zip(*[saved(many) for _ in range(3)], strict=True)
        values[SAVE, name, many], values[RESTORE, name, many] = map(Spread.of, (saving, restoring))
        keys = [*((BATCH, name, count) for count in counts), (SAVE, name, many)]
        shown = [values.get(key, "—") for key in keys]
        rows.append([name, *shown, values[RESTORE, name, many]])
    heads = [f"{size(count)} models" for count in counts]
    body = (
        f"Batches of {size(_ROWS)} events, half of them labels, without monitors and outcomes;"
        f" microseconds an event. Then {size(many)} models of {_LABELS} labels each are saved and"
        " restored; seconds. All of it is processor time. *By hand* is a dictionary of models and"
        " one of waiting scores, with smart brute, event by event behind these labels; pickle saves"
        " it, and checks nothing.\n\n" + table(["", *heads, SAVE, RESTORE], rows)
    )
    return Section("Many models", body, values)

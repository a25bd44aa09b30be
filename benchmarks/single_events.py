"""Single events through `Processor.process`, compared with each as a batch by columns.

Both take the same events, in turns, after as many others. A figure is CPU time per event, of
observations and labels alike, with all that waits for the monitors.
"""

from __future__ import annotations

from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from abers.stream import Events, Processor, Settings
from benchmarks.monitors import BINARY, CLASSES, NAMES, NUMBERS, Watched, arriving
from benchmarks.page import Key, Section, size, table
from benchmarks.timing import NOISE, Spread, digits, undisturbed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers.stream import Event
    from benchmarks.plan import Plan

SINGLE = "single event"
DEFAULT = "the default settings"
BARE = "without monitors"
_STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    BARE: (BINARY, {"monitors": False, "tests": False}),
    "monitors without tests": (BINARY, {"tests": False}),
    DEFAULT: (BINARY, {}),
    "a window": (BINARY, {"window": 1_000}),
    "a half-life": (BINARY, {"half_life": 10_000_000}),
    "scores are probabilities: protected": (BINARY, {"scores": "probability"}),
    "five classes": (CLASSES, {"task": "multiclass", "classes": NAMES}),
    "regression": (NUMBERS, {"task": "regression"}),
}
_MICRO = 1e6


def single_events(plan: Plan) -> Section:
    """Measure single events, and batches of one."""
    n, rows, values = plan.replayed // 20, [], dict[Key, Spread]()
    for name, (task, options) in _STREAMS.items():
        made = [*arriving(Watched(task, 1, 1), 2 * n)]
        runs = [_beside(made, Settings(**options)) for _ in range(plan.rounds)]
        single, batch, longest = (Spread.of(column) for column in zip(*runs, strict=True))
        values[SINGLE, name, 1] = single
        ratio = digits(batch.median / single.median)
        rows.append([name, single, batch, ratio, longest])
    body = (
        f"{size(n)} observations and their labels, behind as many others; the settings are the"
        " defaults, except those named. µs of processor time an event, for `process` and for"
        " batches of one event by columns. *Longest*: the longest call of `process`, on the clock,"
        " in which monitors and tests take the events that waited for them.\n\n"
        + table(["", "`process`", "a batch of one", "times", "longest"], rows)
    )
    return Section("Single events", body, values)


def _beside(events: Sequence[Event], settings: Settings) -> tuple[float, float, float]:
    """Return µs an event of single events, of batches of one, and of the longest single one."""
    NOISE.listen()
    before, measured = events[: len(events) // 2], events[len(events) // 2 :]
    single, batch = Processor(settings), Processor(settings)
    for processor in (single, batch):
        processor.process_many(before)
    longest, third = 0.0, len(measured) // 3

    def by_columns(event: Event) -> object:
        return batch.process_batch(Events.of([event])).in_order()

    taken = _seconds(single.process, measured[: 2 * third]) / (2 * third)
    some = measured[: third // 10]  # they take much longer
    by_batch = _seconds(by_columns, some) / len(some)
    with undisturbed():
        for event in measured[2 * third :]:
            started = perf_counter()
            single.process(event)
            longest = max(longest, perf_counter() - started)
    return _MICRO * taken, _MICRO * by_batch, _MICRO * longest


def _seconds(call: Callable[[Event], object], events: Sequence[Event]) -> float:
    with undisturbed():
        started = process_time()
        for event in events:
            call(event)
        return process_time() - started

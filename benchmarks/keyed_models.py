"""A step of a model in the state of an engine, with a journal and with a snapshot each time."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from abers.engines import KeyedModel
from abers.stream import Events, Settings
from benchmarks.events import LATE, labels, observations
from benchmarks.page import Key, Section, size, table
from benchmarks.timing import Spread, cpu_seconds, in_turns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.plan import Plan

LABELS, STEP, STEPS, ROUNDS = 30_000, 100, 50, 7


class Counted(dict[str, bytes]):
    """A state that counts the bytes that are written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def put(self, name: str, value: bytes) -> None:
        """Write a value."""
        self.written += len(value)
        self[name] = value

    remove = dict.__delitem__


class Model:
    """A model with labels, which takes steps."""

    def __init__(self, settings: Settings, every: int, taught: int) -> None:
        self._models, self._state = KeyedModel(settings, every=every), Counted()
        blocks = taught // LATE
        for block in range(blocks):
            self._models.step("m", self._state, Events.of([*observations(block), *labels(block)]))
        self._steps = _steps(blocks)
        self._state.written, self._taken = 0, 0

    def take(self) -> float:
        """Take steps, and return the milliseconds of one."""
        steps = [next(self._steps) for _ in range(STEPS)]
        self._taken += STEPS
        run = partial(self._models.step, "m", self._state)
        return 1e3 * cpu_seconds(lambda: [run(one) for one in steps]) / STEPS

    @property
    def written(self) -> float:
        """Kilobytes that a step wrote on average."""
        return self._state.written / self._taken / 1e3


def _steps(block: int) -> Iterator[Events]:
    """Yield the events of each step: half of it new, half their labels."""
    half = STEP // 2
    for number in count(block):
        new, late = observations(number), labels(number)
        for start in range(0, LATE, half):
            yield Events.of([*new[start : start + half], *late[start : start + half]])


def keyed(plan: Plan) -> Section:
    """Measure steps with and without a journal, in turns."""
    labels = LABELS if plan.rounds >= ROUNDS else LABELS // 10
    rows: list[list[object]] = []
    values: dict[Key, Spread] = {}
    for name, settings in (
        ("merged", Settings(probability="merged")),
        ("protected", Settings(scores="probability")),
    ):
        models = {every: Model(settings, every, labels) for every in (50, 1)}
        found: dict[str, Spread] = in_turns(
            min(plan.rounds, ROUNDS), {str(every): one.take for every, one in models.items()}
        )
        for every, one in models.items():
            values["step", name, every] = found[str(every)]
            rows.append([f"{name}, each {every}", f"{one.written:.1f}", found[str(every)]])
    body = (
        f"A model with {size(labels)} labels takes steps of {STEP} events in the state of an"
        " engine. `KeyedModel` writes the entry of a step, and each 50th time a snapshot; for"
        " comparison it writes a snapshot each time.\n\n"
        + table(["snapshots", "kB a step", "ms of CPU a step"], rows)
    )
    return Section("A step in an engine", body, values)

"""Index of the models of some processors: labels, and the strongest evidence against predictions.

The evidence of a model takes some 30 microseconds, so that of ten thousand would take a third of
each second. An update makes only that of models with changes, and of a bounded number of them; the
next update goes on with the others.
"""

from __future__ import annotations

import math
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from abers.monitoring import ALARM_TEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abers.monitoring import TaskMonitor
    from abers.stream import Processor
    from abers.stream.history import ModelHistory

__all__ = ["Key", "ModelIndex", "ModelStatus", "model_status", "worst_first"]

Key: TypeAlias = tuple[str, str]
"""Model and segment."""

_RENEWED = 1_000  # models with evidence that an update makes: about 30 ms
_EXAMINED = 10_000  # models that an update examines for changes: about 10 ms


class ModelStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Model and segment as an entry of a list.

    The evidence is that of the test that is furthest above its threshold, or nearest to it. Without
    tests there is no evidence, and view and test are empty.
    """

    key: Key
    labels: int  # number of predictions scored
    active: bool = False  # whether its alarm is active
    alarms: int = 0  # number of incidents of the test that raises alarms
    view: str = ""
    test: str = ""
    log_wealth: float = -math.inf
    log_threshold: float = 0.0

    @property
    def margin(self) -> float:
        """How far the strongest evidence is above its threshold, as a logarithm.

        Evidence below 1 counts as no evidence, so models without any are equal.
        """
        return max(self.log_wealth, 0.0) - self.log_threshold if self.test else -math.inf

    def joined(self, other: ModelStatus) -> ModelStatus:
        """Return the status of the same model in two processors."""
        strongest = max(self, other, key=lambda one: one.margin)
        return msgspec.structs.replace(
            strongest,
            labels=self.labels + other.labels,
            active=self.active or other.active,
            alarms=self.alarms + other.alarms,
        )


def model_status(key: Key, monitor: TaskMonitor) -> ModelStatus:
    """Return the status of a model in one processor."""
    tests, labels = monitor.tests, monitor.count
    if not tests:
        return ModelStatus(key=key, labels=labels)
    raising = [one for one in tests if one.name == ALARM_TEST]
    most = max(tests, key=lambda one: one.log_wealth - one.log_threshold)
    return ModelStatus(
        key=key,
        labels=labels,
        active=any(one.active for one in raising),
        alarms=sum(one.incidents for one in raising),
        view=most.view,
        test=most.name,
        log_wealth=most.log_wealth,
        log_threshold=most.log_threshold,
    )


def worst_first(statuses: Iterable[ModelStatus]) -> list[ModelStatus]:
    """Return models with an active alarm first, then those with the strongest evidence.

    Examples
    --------
    >>> calm = ModelStatus(key=("calm", ""), labels=9, test="change", log_wealth=1.0)
    >>> odd = ModelStatus(key=("odd", ""), labels=2, test="change", log_wealth=4.0)
    >>> alarmed = ModelStatus(key=("alarmed", ""), labels=7, active=True)
    >>> [one.key[0] for one in worst_first([calm, odd, alarmed])]
    ['alarmed', 'odd', 'calm']
    """
    return sorted(statuses, key=lambda one: (not one.active, -one.margin, -one.labels, one.key))


_Models: TypeAlias = "Mapping[tuple[int, Key], tuple[TaskMonitor, ModelHistory]]"


class _IndexedModel(NamedTuple):
    """A model in one processor, as of its last update."""

    monitor: TaskMonitor
    marks: tuple[int, ...]  # one of them changes whenever the status does
    status: ModelStatus


class ModelIndex:
    """Models of processors; one thread updates it, and others may read it meanwhile.

    An update renews the status of at most `renewed` models. A model that is new is listed at once,
    and has its evidence when its turn comes.
    """

    def __init__(self, renewed: int = _RENEWED) -> None:
        self.statuses: Sequence[ModelStatus] = ()
        """Status of each model; never changed, only replaced."""
        self._renewed = renewed
        self._entries: dict[tuple[int, Key], _IndexedModel] = {}
        self._next = 0
        self._sorted: tuple[Sequence[ModelStatus], Sequence[ModelStatus]] = ((), ())

    def worst_first(self) -> Sequence[ModelStatus]:
        """Return the models as the function of this name does, sorted once after each change."""
        statuses, found = self._sorted
        if statuses is not self.statuses:
            statuses = self.statuses
            found = worst_first(statuses)
            self._sorted = statuses, found
        return found

    def update(self, processors: Mapping[int, Processor]) -> None:
        """Update the index by all processors there are, by partition; call it between batches."""
        models = {
            (number, key): (monitor, history)
            for number, one in processors.items()
            for key, monitor, history in zip(one.keys, one.monitors, one.histories, strict=False)
        }
        changed = self._list(models)
        changed |= self._renew(models)
        if changed:
            found: dict[Key, ModelStatus] = {}
            for _, _, one in self._entries.values():
                before = found.get(one.key)
                found[one.key] = one if before is None else before.joined(one)
            self.statuses = (*found.values(),)

    def _list(self, models: _Models) -> bool:
        """Add new models, and drop those that are gone; return whether there were any."""
        entries = self._entries
        gone, new = entries.keys() - models.keys(), models.keys() - entries.keys()
        for one in gone:
            del entries[one]
        for one, (monitor, _) in models.items() if new else ():
            if one in new:
                status = ModelStatus(key=one[1], labels=monitor.count)
                entries[one] = _IndexedModel(monitor, (), status)
        return bool(gone or new)

    def _renew(self, models: _Models) -> bool:
        """Renew models with changes, after those of the last update; return whether any had."""
        names, renewed = [*models], 0
        first = self._next if self._next < len(names) else 0
        turns = chain(range(first, len(names)), range(first))
        for at in islice(turns, _EXAMINED):
            self._next = at + 1
            one, (monitor, history) = names[at], models[names[at]]
            # One of these changes with each label, and with each observation that gets none.
            marks = (history.windowed.count, *[each.skipped for each in monitor.e_processes])
            entry = self._entries[one]
            if entry.monitor is monitor and entry.marks == marks:
                continue
            self._entries[one] = _IndexedModel(monitor, marks, model_status(one[1], monitor))
            renewed += 1
            if renewed == self._renewed:
                break
        return renewed > 0

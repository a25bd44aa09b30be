"""Models of a process: their index, the sums of their scores, and the memory that they take.

`LargestModels` finds the models with most of the predictions of a process, and their memory. One
process does all the work of a model, so a model with a large share is the first to be too much for
it. A share is of the predictions of the last minutes: a model that is hot now shows, however long
the others have run.

`ModelIndex` lists the models of some processors, with their labels and the strongest evidence
against their predictions. The evidence of a model takes some 30 microseconds, so that of ten
thousand would take a third of each second. An update makes it only for models with changes, and for
a bounded number of them; the next update goes on with the others.

`ModelTotals` sums the scores of settled predictions by model. Every table has a row per model. A
few array operations add a batch, however many models it has, so counting costs the loop next to
nothing.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec
import numpy as np

from abers.monitoring import ALARM_TEST
from abers.stream import make_task
from abers.stream.processor import ModelHoldings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.monitoring import TaskMonitor, TrackedRows
    from abers.stream import Forecasts, Processor, ScoredRows, Settings
    from abers.stream.alarms import ModelHistory

    Floats = NDArray[np.float64]
    Rows = NDArray[np.int64]

__all__ = [
    "BINS",
    "OTHERS",
    "PIT_BOUNDS",
    "WIDTH_BOUNDS",
    "Key",
    "LargeModel",
    "LargestModels",
    "ModelIndex",
    "ModelStatus",
    "ModelTotals",
    "NamedModels",
    "model_bytes",
    "model_status",
    "state_bytes",
    "worst_first",
]

_ID = 36  # bytes of an id, as a UUID has
_MODEL, _MONITOR = 3_000, 3_500  # its calibrator, and its monitor
_ANSWERS, _VIEW = 3_500, 7_000  # sums behind its answers, and the tests of a view
_HISTORY, _LONGEST_HISTORY = 20, 52_000  # a label, and at most
_LABEL = 30  # in a calibrator
_PROTECTED, _EXPERT = 7_500, 85  # a model, and a label in a method with a half-life
_FADING = (9_000, 90_000)  # labels of these methods at most, which only distributions have
_CLASS, _CLASS_LANE = 10_000, 190  # each of several classes: in a model, and in its lanes
_CLASSES_LANE = 200  # a lane of several classes, for all of them together
_PENDING, _LANE, _KNOWN = 208, 490, 110  # an observation, its lane, an early label or finished id


def state_bytes(processor: Processor) -> int:
    """Estimate the bytes of memory of a processor, as if all models had equally many labels.

    Examples
    --------
    >>> from abers.stream import Label, Observation, Processor, Settings
    >>> processor = Processor(Settings(tests=False))
    >>> _ = processor.process_many([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    >>> state_bytes(processor) == 3_000 + 3_500 + 20 + 30 + 110 + 36
    True
    """
    pending, early = processor.waiting
    labels, finished = processor.held
    whole = ModelHoldings(range(len(processor.keys)), labels, pending, early + finished)
    return _bytes(processor.settings, whole, processor.monitors)


def model_bytes(processor: Processor, held: ModelHoldings) -> int:
    """Estimate the bytes of memory that a model takes in a processor, as `state_bytes` does."""
    monitors = processor.monitors
    return _bytes(processor.settings, held, [monitors[key] for key in held.keys if monitors])


def _bytes(settings: Settings, held: ModelHoldings, monitors: Sequence[TaskMonitor]) -> int:
    models, classes = len(held.keys), len(settings.classes)
    model = _MODEL + _LABEL * held.labels / max(models, 1)
    each = sum(monitor.count for monitor in monitors) / max(models, 1)  # of all time
    for monitor in monitors[:1]:
        views = sum(len(process.views) for process in monitor.e_processes)
        model += (
            _MONITOR
            + min(_HISTORY * each, _LONGEST_HISTORY)
            + views * _VIEW
            + _ANSWERS * (views > 0)
        )
    task = make_task(settings)
    mixed = task.mixed
    if mixed:
        fading = () if task.native() else _FADING
        model += _PROTECTED + _EXPERT * sum(min(each, most) for most in fading)
        model += (_CLASS + _LABEL * held.labels / max(models, 1)) * classes
    lane = mixed * (_CLASS_LANE * classes + _CLASSES_LANE if classes else _LANE)
    waiting = held.pending * (_PENDING + _ID + lane) + held.known * (_KNOWN + _ID)
    return round(models * model + waiting)


_LISTED = 10
_PERIOD = 300.0  # seconds after which the older of two counts is dropped


class LargeModel(NamedTuple):
    """A model with a large share of the predictions."""

    model: str
    predictions: int  # since the beginning of its state
    share: float  # of all predictions of the last 5 to 10 minutes, or of all time without any
    bytes: int  # of memory, estimated


class LargestModels:
    """Finds the models with the largest shares, whenever it is called; the clock is monotonic.

    Examples
    --------
    >>> from abers.stream import Observation, Processor
    >>> processor, largest = Processor(), LargestModels()
    >>> names = ["a", "a", "a", "b"]
    >>> events = [Observation(str(n), n, m, score=0.5) for n, m in enumerate(names)]
    >>> _ = processor.process_many(events)
    >>> [(one.model, one.predictions, one.share) for one in largest([processor])]
    [('a', 3, 0.75), ('b', 1, 0.25)]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._older: Counter[str] | None = None  # predictions by model
        self._newer: Counter[str] = Counter()
        self._since = clock()  # when the newer were counted

    def __call__(self, processors: Iterable[Processor]) -> list[LargeModel]:
        """Return the largest shares, the largest first."""
        processors = [*processors]
        counts = _predictions(processors)
        recent = self._recent(counts)
        whole = recent.total() or 1
        found = nlargest(_LISTED, recent, key=lambda model: (recent[model], model))
        sizes = _sizes(processors, {*found})
        return [LargeModel(one, counts[one], recent[one] / whole, sizes[one]) for one in found]

    def _recent(self, counts: Counter[str]) -> Counter[str]:
        """Return how many predictions came lately; all of them if none did."""
        if self._older is None:
            self._older = self._newer = counts
        elif self._clock() - self._since >= _PERIOD:
            self._older, self._newer, self._since = self._newer, counts, self._clock()
        return counts - self._older or +counts


def _predictions(processors: Iterable[Processor]) -> Counter[str]:
    """Count all predictions by model."""
    counts = Counter[str]()
    for one in processors:
        for (model, _), made in zip(one.keys, one.made, strict=False):
            counts[model] += made
    return counts


def _sizes(processors: Iterable[Processor], models: set[str]) -> Counter[str]:
    """Estimate the bytes of memory of some models."""
    sizes = Counter[str]()
    for one in processors:
        for model, held in one.holdings(models).items():
            sizes[model] += model_bytes(one, held)
    return sizes


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
        """Update the index from all processors, by partition; call it between batches."""
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


OTHERS = "other"
"""Name under which metrics have the sum over all models without metrics of their own."""


class NamedModels:
    """The first `most` models that are counted.

    The name of a model is decided when something is counted, so no counter ever falls. A retired
    model leaves its place to the next new model.

    Examples
    --------
    >>> names = NamedModels(2)
    >>> [names.name(model) for model in ("a", "b", "c", "a")]
    ['a', 'b', 'other', 'a']
    >>> names.drop(["a"])
    >>> names.name("c")
    'c'
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[str] = set()

    def __contains__(self, model: str) -> bool:
        """Return whether a model has metrics of its own."""
        return model in self._names

    def name(self, model: str) -> str:
        """Return the name of a model in metrics."""
        if model in self._names:
            return model
        if model == OTHERS or len(self._names) >= self._most:
            return OTHERS
        self._names.add(model)
        return model

    def drop(self, models: Iterable[str]) -> None:
        """Drop models that are retired."""
        self._names.difference_update(models)


TableKey: TypeAlias = tuple[str, str]
"""Name of a table, and its view or level if there are several."""

BINS = 10
"""Number of bins of equal width, closed on the left, the last on both sides."""

WIDTH_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Upper bounds of the buckets of interval widths."""

PIT_BOUNDS = tuple(edge / 10 for edge in range(1, 11))
"""Upper bounds of the buckets of the probability integral transform."""

_EDGES = np.array([edge / BINS for edge in range(1, BINS)])


@dataclass
class ModelTotals:
    """Sums over settled predictions.

    Examples
    --------
    >>> from abers.stream import Events, Label, Observation, Processor
    >>> processor, totals = Processor(), ModelTotals()
    >>> events = Events.of([Observation("a", 1, "m", score=0.5), Label("a", 2, "m", value=1)])
    >>> settled = processor.process_batch(events).settled_batch
    >>> totals.add({0: "m"}, settled.keys, settled.scored)
    >>> totals.rows, totals.tables["brier", "calibrated"].tolist()
    ({'m': 0}, [[0.25]])
    """

    rows: dict[str, int] = field(default_factory=dict)  # by model
    tables: dict[TableKey, Floats] = field(default_factory=dict)  # of shape (models, columns)

    def __copy__(self) -> ModelTotals:
        """Return an independent copy."""
        tables = {key: table.copy() for key, table in self.tables.items()}
        return ModelTotals(self.rows.copy(), tables)

    def add(self, models: Mapping[int, str], keys: Rows, scored: ScoredRows) -> None:
        """Add scored rows; `keys` has their calibrators, `models` the model of each calibrator."""
        if not len(keys):
            return
        rows = self._rows(models, keys)
        for key, n_columns, columns, weights in _additions(scored):
            cells = rows if columns is None else rows * n_columns + columns
            sums = np.bincount(cells, weights, len(self.rows) * n_columns)
            self._table(key, n_columns)[:] += sums.reshape(len(self.rows), n_columns)

    def drop(self, models: Iterable[str]) -> None:
        """Drop models; those without a row are ignored."""
        gone = {*models} & self.rows.keys()
        if not gone:
            return
        kept = {model: row for model, row in self.rows.items() if model not in gone}
        rows = [*kept.values()]
        size = len(self.rows)
        self.rows = {model: row for row, model in enumerate(kept)}
        # A table may lack its last rows, if nothing of those models was added to it.
        self.tables = {key: _lengthened(table, size)[rows] for key, table in self.tables.items()}

    def _rows(self, models: Mapping[int, str], keys: Rows) -> Rows:
        """Return the row of each prediction's model."""
        numbers, which = np.unique(keys, return_inverse=True)
        named = (models[number] for number in numbers.tolist())
        return np.array([self.rows.setdefault(model, len(self.rows)) for model in named])[which]

    def _table(self, key: TableKey, columns: int) -> Floats:
        """Return a table with a row for each model."""
        table = self.tables.get(key, np.zeros((0, columns)))
        if len(table) < len(self.rows):
            self.tables[key] = table = _lengthened(table, len(self.rows))
        return table


def _lengthened(table: Floats, rows: int) -> Floats:
    """Return a table with rows of zeros appended."""
    return np.pad(table, ((0, rows - len(table)), (0, 0)))


_Addition: TypeAlias = "tuple[TableKey, int, Rows | None, Floats | None]"


def _additions(scored: ScoredRows) -> Iterator[_Addition]:
    """Yield the additions: table, number of columns, column of each row, and amounts."""
    for view, forecasts in scored.forecasts.items():
        yield from _of_view(view, forecasts)
    if scored.widths is not None:
        yield (
            ("width", ""),
            len(WIDTH_BOUNDS) + 1,
            np.searchsorted(WIDTH_BOUNDS, scored.widths),
            None,
        )
        yield ("width_sum", ""), 1, None, scored.widths
    if scored.outside is not None:
        yield ("outside", ""), 1, None, scored.outside.astype(np.float64)
    if scored.pit is not None:
        yield from _of_pit(*scored.pit)
    for level, covered in scored.covered.items():
        named = f"{level:.9g}"
        yield ("outcomes", named), 1, None, None
        yield ("expected", named), 1, None, np.full(len(covered), level)
        yield ("covered", named), 1, None, covered.astype(np.float64)
    if scored.tracked is not None:
        yield from _of_tracked(scored.tracked)


def _of_view(view: str, forecasts: Forecasts) -> Iterator[_Addition]:
    bins = np.searchsorted(_EDGES, forecasts.probabilities, side="right")
    finite = np.isfinite(forecasts.losses)
    yield ("predictions", view), BINS, bins, None
    yield ("score", view), BINS, bins, forecasts.probabilities
    yield ("positives", view), BINS, bins, forecasts.true
    yield ("brier", view), 1, None, forecasts.squares
    yield ("log_loss", view), 1, None, np.where(finite, forecasts.losses, 0.0)
    yield ("infinite", view), 1, None, (~finite).astype(np.float64)


def _of_tracked(tracked: TrackedRows) -> Iterator[_Addition]:
    named = f"{tracked.level:.9g}"
    yield ("tracked_outcomes", named), 1, None, None
    yield ("tracked_expected", named), 1, None, np.full(len(tracked.covered), tracked.level)
    for name in ("covered", "widths", "whole", "empty", "scores"):
        column: Floats = getattr(tracked, name).astype(np.float64)
        yield (f"tracked_{name}", named), 1, None, np.where(np.isfinite(column), column, 0.0)
    yield ("tracked_unscored", named), 1, None, np.isinf(tracked.scores).astype(np.float64)


def _of_pit(below: Floats, at: Floats) -> Iterator[_Addition]:
    """Spread each value evenly between its ends instead of drawing a random one."""
    last = np.zeros(len(at))
    for bucket, edge in enumerate(PIT_BOUNDS):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = np.where(below < at, np.clip((edge - below) / (at - below), 0, 1), at <= edge)
        yield ("pit", ""), len(PIT_BOUNDS), np.full(len(at), bucket), share - last
        last = share
    yield ("pit_sum", ""), 1, None, (below + at) / 2

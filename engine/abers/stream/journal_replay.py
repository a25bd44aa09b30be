"""Replay of a journal: a processor applies the entries of another one.

An entry has the valid events and their predictions, the state has all the rest. The entry is
checked before anything changes, and the counters afterwards.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from abers.exceptions import AbersError, SettingsError, StateError
from abers.serialization import MAX_COUNT, REMEDY, column, require
from abers.stream.columns import Events, objects
from abers.stream.join import COUNTERS
from abers.stream.journal import settings_digest
from abers.stream.retirement import retire
from abers.stream.settings import LARGEST_TIME
from abers.stream.tasks.base import PredictionRows
from abers.stream.validation import ValidEvents, require_limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from abers.stream.columns import Column
    from abers.stream.journal import JournalEntry
    from abers.stream.outputs import Outputs
    from abers.stream.state import ProcessorState
    from abers.stream.tasks.base import Task

    Mask = NDArray[np.bool_]

__all__ = ["apply"]

_INCONSISTENT = (ValueError, IndexError, KeyError, TypeError, OverflowError, AbersError)


class _EntryNames(NamedTuple):
    """Models, and pairs of model and segment, by their numbers in an entry."""

    models: list[str]
    keys: list[tuple[str, str]]


def apply(state: ProcessorState, entry: JournalEntry) -> Outputs:
    """Apply an entry to a state; see `Processor.apply`."""
    if entry.settings != settings_digest(state.settings):
        msg = "the journal entry is of other settings; set them back, or start without it"
        raise SettingsError(msg)
    _require_order(entry, state.join.counters)
    with _consistent():
        names = _names(state, entry)
    _require_limits_of_entry(state, names, entry)
    with _consistent():
        valid = _valid(entry, names, state.task)
        known = _predictions(entry, state.task)
    try:  # from here on the state changes
        with _consistent():
            outputs = _applied(state, entry, names, valid, known)
        _require_equal(entry, state.join.counters)
    except BaseException:
        state.broken = True
        raise
    return outputs


@contextmanager
def _consistent() -> Iterator[None]:
    """Make a StateError of whatever is wrong with an entry."""
    try:
        yield
    except _INCONSISTENT as error:
        msg = f"journal entry is inconsistent ({error}); {REMEDY}"
        raise StateError(msg) from None


def _applied(
    state: ProcessorState,
    entry: JournalEntry,
    names: _EntryNames,
    valid: ValidEvents,
    known: PredictionRows | None,
) -> Outputs:
    """Apply the valid events of an entry to the state, and return the outputs."""
    retired = retire(state, entry.retired)
    validator = state.join.validator
    validator.models.update({name: number for number, name in enumerate(names.models)})
    validator.keys.update({pair: number for number, pair in enumerate(names.keys)})
    labels, reasons = np.frombuffer(entry.labels, bool), [why for _, why in entry.rejected]
    joined = state.join.take_valid(valid, labels, reasons, retired.dead_letters)
    predicted = int((joined.steps.learns == 0).sum())
    require(known is None or len(known.n_labels) == predicted, "predictions")
    with np.errstate(all="ignore"):  # the predictions of an entry may be any numbers
        outputs, _ = state.calibrate(joined, retired.names, known)
    return outputs


def _require_order(entry: JournalEntry, counters: dict[str, int]) -> None:
    """Refuse an entry that does not come next, while nothing is changed yet."""
    if len(entry.counters) != len(COUNTERS):
        msg = f"journal entry has {len(entry.counters)} counters, not {len(COUNTERS)}; {REMEDY}"
        raise StateError(msg)
    before = _count_events(dict(zip(COUNTERS, entry.counters, strict=True))) - len(entry.labels)
    if before != _count_events(counters):
        msg = (
            f"the journal entry follows {before} events, and the processor has taken "
            f"{_count_events(counters)}; apply each entry once, in order"
        )
        raise StateError(msg)


def _names(state: ProcessorState, entry: JournalEntry) -> _EntryNames:
    """Return the names that the numbers of an entry refer to."""
    validator, gone = state.join.validator, entry.retired
    require(gone == sorted({*gone}), "retired models")
    require(not gone or 0 <= gone[0] <= gone[-1] < len(validator.models), "retired models")
    models = [name for number, name in enumerate(validator.models) if number not in {*gone}]
    keys = [key for key in validator.keys if key[0] in {*models}]
    return _EntryNames([*models, *entry.new_models], [*keys, *entry.new_keys])


def _require_limits_of_entry(
    state: ProcessorState, there: _EntryNames, entry: JournalEntry
) -> None:
    names = [*entry.new_models, *(segment for _, segment in entry.new_keys)]
    count = max(len(there.models), len(there.keys))
    require_limits(state.settings, count, names, entry.ids)


def _count_events(counters: dict[str, int]) -> int:
    return counters["observations"] + counters["labels_in"]


def _require_equal(entry: JournalEntry, counters: dict[str, int]) -> None:
    differing = [
        f"{name} {there} where it was {was}"
        for (name, there), was in zip(counters.items(), entry.counters, strict=True)
        if there != was
    ]
    if differing:
        msg = (
            f"the journal entry leads to another state: {', '.join(differing)}; the entries are "
            "not of this processor, or of an abers whose limits held for all models together, or a "
            "learner failed at other times; start from a snapshot"
        )
        raise StateError(msg)


# What an entry has


def _valid(entry: JournalEntry, names: _EntryNames, task: Task) -> ValidEvents:
    """Return the valid events as validation did."""
    batch = np.frombuffer(entry.labels, np.uint8)
    here = np.ones(len(batch), bool)
    here[[row for row, _ in entry.rejected]] = False
    kinds = batch[here]
    require((kinds <= 1).all(), "labels")
    labels = kinds == 1
    n = len(kinds)
    times = column(entry.times, "<i8", "times", n)
    require(((times > -LARGEST_TIME) & (times < LARGEST_TIME)).all(), "times")
    models, keys = _numbers(entry, names, labels)
    scores, values = np.zeros((n, task.score_width)), np.zeros(n)
    scores[~labels] = _table(entry.scores, n - int(labels.sum()), task.score_width, "scores")
    values[~labels] = _sizes(entry, n - int(labels.sum()))
    values[labels] = column(entry.values, "<f8", "values", int(labels.sum()))
    require(task.are_scores(scores[~labels]), "scores")
    require(task.are_values(values[labels]), "values")
    require(len(entry.ids) == n and all(entry.ids), "ids")
    extra = _spread(msgspec.json.decode(entry.extra) if entry.extra else [], batch == 0, "extra")
    segments = np.zeros(n, object)
    segments[~labels] = [names.keys[key][1] for key in keys[~labels].tolist()]
    events = Events(
        labels,
        objects(entry.ids),
        times,
        objects(names.models)[models],
        segments,
        x=_spread(entry.features or [], ~labels, "features"),
        extra=None if extra is None else extra[here],
    )
    return ValidEvents(events, np.flatnonzero(here), kinds, models, keys, times, scores, values, [])


def _numbers(
    entry: JournalEntry, names: _EntryNames, labels: Mask
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the numbers of models, and of pairs, which are 0 for labels."""
    require(len({*names.models}) == len(names.models), "models")
    require(len({*names.keys}) == len(names.keys), "keys")
    numbers = {model: number for number, model in enumerate(names.models)}
    owners = np.array([numbers[model] for model, _ in names.keys], np.uint32)
    keys = np.zeros(len(labels), np.uint32)
    keys[~labels] = column(entry.keys, "<u4", "keys", len(labels) - int(labels.sum()))
    models = column(entry.models, "<u4", "models", len(labels))
    require((models < len(names.models)).all(), "models")
    new = np.arange(len(names.models) - len(entry.new_models), len(names.models))
    require(np.isin(new, models).all(), "models that no event has")
    require((owners[keys[~labels]] == models[~labels]).all(), "keys")
    return models, keys


def _predictions(entry: JournalEntry, task: Task) -> PredictionRows | None:
    """Return the predictions as they were; None if they are to be computed again."""
    if task.repeats:
        return None
    n_labels = np.frombuffer(entry.n_labels, "<i8").astype(np.int64)
    require(((n_labels >= 0) & (n_labels <= MAX_COUNT)).all(), "numbers of labels")
    rows = _table(entry.predictions, len(n_labels), task.prediction_width, "predictions")
    require(task.are_predictions(rows), "predictions")
    return PredictionRows(rows, n_labels)


def _sizes(entry: JournalEntry, count: int) -> Any:  # noqa: ANN401 - an array, or 0 for all
    """Return the sizes of the features of observations, as validation does."""
    if entry.features is None:
        return 0.0
    require(len(entry.features) == count, "features")
    return [float(len(msgspec.msgpack.encode(x))) for x in entry.features]


def _table(given: bytes, rows: int, width: int, what: str) -> NDArray[np.float64]:
    return column(given, "<f8", what, rows * width).reshape(rows, width)


def _spread(values: list[Any], mask: Mask, what: str) -> Column | None:
    if not values:
        return None
    require(len(values) == int(mask.sum()), what)
    whole = np.full(len(mask), None)
    whole[mask] = objects(values)
    return whole

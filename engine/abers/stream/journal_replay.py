"""Replay of a journal: a processor applies the entries of another.

An entry becomes what was decided again, and is applied as that was. It is checked before anything
changes, and the counters afterwards.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import compress
from operator import eq
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from abers.exceptions import AbersError, SettingsError, StateError
from abers.serialization import MAX_COUNT, REMEDY, column, require
from abers.stream import step
from abers.stream.column_types import objects
from abers.stream.columns import Events
from abers.stream.decided import ENDS, Decided
from abers.stream.join import COUNTERS, LATER_COUNTERS
from abers.stream.journal import settings_digest
from abers.stream.settings import LARGEST_TIME
from abers.stream.tasks.base import PredictionRows
from abers.stream.validation import require_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from abers.stream.column_types import Column
    from abers.stream.journal import JournalEntry
    from abers.stream.model_names import ModelNames
    from abers.stream.outputs import Outputs
    from abers.stream.state import ProcessorState
    from abers.stream.tasks.base import Task

    Mask = NDArray[np.bool_]

__all__ = ["apply"]

K = TypeVar("K")

_INCONSISTENT = (ValueError, IndexError, KeyError, TypeError, OverflowError, AbersError)


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
        decided = _decided(entry, names, state.task)
    try:  # from here on the state changes
        with _consistent(), np.errstate(all="ignore"):  # predictions of an entry may be any numbers
            outputs, _ = step.apply(state, decided)
        _require_equal(entry, state.join.counters)
    except BaseException:
        state.broken = True
        raise
    return outputs


@contextmanager
def _consistent() -> Iterator[None]:
    """Make a StateError of any error in an entry."""
    try:
        yield
    except _INCONSISTENT as error:
        msg = f"journal entry is inconsistent ({error}); {REMEDY}"
        raise StateError(msg) from None


def _require_order(entry: JournalEntry, counters: dict[str, int]) -> None:
    """Refuse an entry that does not come next, while nothing is changed yet."""
    least = len(COUNTERS) - len(LATER_COUNTERS)
    if not least <= len(entry.counters) <= len(COUNTERS):
        msg = f"journal entry has {len(entry.counters)} counters, not {len(COUNTERS)}; {REMEDY}"
        raise StateError(msg)
    taken = len(entry.labels) - entry.labels.count(ENDS)
    before = _count_events(_written(entry)) - taken
    if before != _count_events(counters):
        msg = (
            f"the journal entry follows {before} events, and the processor has taken "
            f"{_count_events(counters)}; apply each entry once, in order"
        )
        raise StateError(msg)


def _names(state: ProcessorState, entry: JournalEntry) -> ModelNames:
    """Return the names that the numbers of an entry refer to."""
    known, gone = state.join.names, entry.retired
    require(gone == sorted({*gone}), "retired models")
    require(not gone or 0 <= gone[0] <= gone[-1] < len(known.models), "retired models")
    names = known.without({*gone})
    for new, there in ((entry.new_models, names.models), (entry.new_keys, names.keys)):
        require(len({*new}) == len(new) and there.keys().isdisjoint(new), "new names")
    return names


def _require_limits_of_entry(state: ProcessorState, there: ModelNames, entry: JournalEntry) -> None:
    names = [*entry.new_models, *(segment for _, segment in entry.new_keys)]
    count = max(len(there.models) + len(entry.new_models), len(there.keys) + len(entry.new_keys))
    require_limits(state.settings, count, names, entry.ids, state.join.validator.front)


def _written(entry: JournalEntry) -> dict[str, int]:
    return dict.fromkeys(COUNTERS, 0) | dict(zip(COUNTERS, entry.counters, strict=False))


def _count_events(counters: dict[str, int]) -> int:
    return counters["observations"] + counters["labels_in"]


def _require_equal(entry: JournalEntry, counters: dict[str, int]) -> None:
    differing = [
        f"{name} {counters[name]} where it was {was}"
        for name, was in _written(entry).items()
        if counters[name] != was
    ]
    if differing:
        msg = (
            f"the journal entry leads to another state: {', '.join(differing)}; the entries are "
            "not of this processor, or of an abers with limits for all models together, or a "
            "learner failed at other times; start from a snapshot"
        )
        raise StateError(msg)


# What an entry has


def _decided(entry: JournalEntry, names: ModelNames, task: Task) -> Decided:
    """Return the batch as it was decided; there are these names, and those that it brings."""
    batch = np.frombuffer(entry.labels, np.uint8)
    here = np.ones(len(batch), bool)
    here[[row for row, _ in entry.rejected]] = False
    kinds = batch[here]
    require((batch <= ENDS).all(), "labels")
    labels = kinds > 0
    n, labelled = len(kinds), int(labels.sum())
    times = column(entry.times, "<i8", "times", n)
    require(((times > -LARGEST_TIME) & (times < LARGEST_TIME)).all(), "times")
    scores, values = np.zeros((n, task.score_width)), np.zeros(n)
    scores[~labels] = _table(entry.scores, n - labelled, task.score_width, "scores")
    values[~labels] = _sizes(entry, n - labelled)
    values[labels] = column(entry.values, "<f8", "values", labelled)
    require(task.are_scores(scores[~labels]), "scores")
    require(task.are_values(values[kinds == 1]), "values")
    require(len(entry.ids) == n and all(entry.ids), "ids")
    numbers, models = _named(entry.models, n, names.by_number, entry.new_models, "models")
    keys, pairs = _named(entry.keys, n - labelled, names.pairs, entry.new_keys, "keys")
    owners = compress(models, (~labels).tolist())
    require(all(map(eq, owners, (model for model, _ in pairs))), "keys")
    extra = _spread(msgspec.json.decode(entry.extra) if entry.extra else [], batch == 0, "extra")
    events = Events(
        labels,
        objects(entry.ids),
        times,
        objects(models),
        _spread_keys([segment for _, segment in pairs], ~labels, object),
        x=_spread(entry.features or [], ~labels, "features"),
        extra=None if extra is None else extra[here],
    )
    return Decided(
        batch > 0,
        events,
        np.flatnonzero(here),
        kinds,
        numbers,
        _spread_keys(keys, ~labels, np.uint32),
        times,
        scores,
        values,
        entry.new_models,
        entry.new_keys,
        entry.rejected,
        retired=entry.retired,
        issued=_predictions(entry, task),
    )


def _named(
    given: bytes, n: int, known: Sequence[K], new: Sequence[K], what: str
) -> tuple[NDArray[np.uint32], list[K]]:
    """Return numbers, and the names that they mean: each new name is among them."""
    numbers, first = column(given, "<u4", what, n), len(known)
    require((numbers < first + len(new)).all(), what)
    require(len({*numbers[numbers >= first].tolist()}) == len(new), f"{what} that no event has")
    names = [known[one] if one < first else new[one - first] for one in numbers.tolist()]
    return numbers, names


def _spread_keys(values: Any, mask: Mask, kind: Any) -> NDArray[Any]:  # noqa: ANN401
    """Return values in the rows of a mask, and 0 in the others."""
    whole = np.zeros(len(mask), kind)
    whole[mask] = values
    return whole


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

"""A batch done again from what was decided of it.

Governing rule: an entry says what came in and what was answered, the state says all the rest;
what an entry says is looked at before anything is changed, and what came of it afterwards.
"""

# ruff: noqa: SLF001 - this is one more half of the class Processor

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from abers._saved import MOST
from abers._sealed import REMEDY
from abers.exceptions import AbersError, SettingsError, StateError
from abers.stream import retirement
from abers.stream.admission import Admitted, require_room
from abers.stream.columns import Events, objects
from abers.stream.deciding import COUNTERS
from abers.stream.settings import LARGEST_TIME
from abers.stream.tasks import Answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from abers.stream.columns import Column
    from abers.stream.journal import Entry
    from abers.stream.outputs import Outputs
    from abers.stream.processor import Processor
    from abers.stream.tasks import Task

    Mask = NDArray[np.bool_]

__all__ = ["redo"]

_INCONSISTENT = (ValueError, IndexError, KeyError, TypeError, OverflowError, AbersError)


class _Names(NamedTuple):
    """Models, and pairs of model and segment, by their numbers."""

    models: list[str]
    keys: list[tuple[str, str]]


def redo(processor: Processor, entry: Entry) -> Outputs:
    """Have a processor do what was decided; see `Processor.redo`."""
    if entry.settings != processor._mark:
        msg = "the entry was decided under other settings; set them back, or start without it"
        raise SettingsError(msg)
    _require_order(entry, processor.counters)
    with _consistent():
        names = _names(processor, entry)
    _require_room(processor, names, entry)
    with _consistent():
        admitted = _admitted(entry, names, processor._task)
        answers = _answers(entry, processor._task)
    try:  # from here on something is changed
        with _consistent():
            outputs = _redone(processor, entry, names, admitted, answers)
        _require_equal(entry, processor.counters)
    except BaseException:
        processor._spoil()
        raise
    return outputs


@contextmanager
def _consistent() -> Iterator[None]:
    """Make a StateError of whatever is wrong with an entry."""
    try:
        yield
    except _INCONSISTENT as error:
        msg = f"entry of a journal is inconsistent ({error}); {REMEDY}"
        raise StateError(msg) from None


def _redone(
    processor: Processor,
    entry: Entry,
    names: _Names,
    admitted: Admitted,
    answers: Answers | None,
) -> Outputs:
    deciding = processor._deciding
    retired = retirement.retire(processor, entry.retired)
    admission = deciding.admission
    admission.models.update({name: number for number, name in enumerate(names.models)})
    admission.keys.update({pair: number for number, pair in enumerate(names.keys)})
    labels, reasons = np.frombuffer(entry.labels, bool), [why for _, why in entry.refused]
    decided = deciding.redo(admitted, labels, reasons, retired.letters)
    predicted = int((decided.taken.learns == 0).sum())
    _require(answers is None or len(answers.held) == predicted, "answers")
    with np.errstate(all="ignore"):  # answers are as they are
        outputs, _ = processor._answer(decided, retired, answers)
    return outputs


def _require_order(entry: Entry, counters: dict[str, int]) -> None:
    """Refuse an entry that does not come next, while nothing is changed yet."""
    if len(entry.counters) != len(COUNTERS):
        msg = f"the entry has {len(entry.counters)} counters, not {len(COUNTERS)}; {REMEDY}"
        raise StateError(msg)
    before = _events(dict(zip(COUNTERS, entry.counters, strict=True))) - len(entry.labels)
    if before != _events(counters):
        msg = (
            f"the entry was decided after {before} events, and the processor has taken "
            f"{_events(counters)}; redo each entry once, in order"
        )
        raise StateError(msg)


def _names(processor: Processor, entry: Entry) -> _Names:
    """Give the names that an entry's numbers are of."""
    admission, gone = processor._deciding.admission, entry.retired
    _require(gone == sorted({*gone}), "retired models")
    _require(not gone or 0 <= gone[0] <= gone[-1] < len(admission.models), "retired models")
    models = [name for number, name in enumerate(admission.models) if number not in {*gone}]
    keys = [key for key in admission.keys if key[0] in {*models}]
    return _Names([*models, *entry.new_models], [*keys, *entry.new_keys])


def _require_room(processor: Processor, there: _Names, entry: Entry) -> None:
    names = [*entry.new_models, *(segment for _, segment in entry.new_keys)]
    count = max(len(there.models), len(there.keys))
    require_room(processor.settings, count, names, entry.ids)


def _events(counters: dict[str, int]) -> int:
    return counters["observations"] + counters["labels_in"]


def _require_equal(entry: Entry, counters: dict[str, int]) -> None:
    differing = [
        f"{name} {there} where it was {was}"
        for (name, there), was in zip(counters.items(), entry.counters, strict=True)
        if there != was
    ]
    if differing:
        msg = (
            f"redone, the batch gives another state: {', '.join(differing)}; the entries are not "
            "of this processor, or a learner failed at other times; start from a snapshot"
        )
        raise StateError(msg)


# What an entry says


def _admitted(entry: Entry, names: _Names, task: Task) -> Admitted:
    """Give the events that came in as admission did."""
    batch = np.frombuffer(entry.labels, np.uint8)
    here = np.ones(len(batch), bool)
    here[[row for row, _ in entry.refused]] = False
    kinds = batch[here]
    _require(bool((kinds <= 1).all()), "labels")
    told = kinds == 1
    n = len(kinds)
    times = _column(entry.times, "<i8", n, "times")
    _require(bool(((times > -LARGEST_TIME) & (times < LARGEST_TIME)).all()), "times")
    models, keys = _numbers(entry, names, told)
    scores, values = np.zeros((n, task.score_width)), np.zeros(n)
    scores[~told] = _table(entry.scores, n - int(told.sum()), task.score_width, "scores")
    values[~told] = _sizes(entry, n - int(told.sum()))
    values[told] = _column(entry.values, "<f8", int(told.sum()), "values")
    _require(task.are_scores(scores[~told]), "scores")
    _require(task.are_values(values[told]), "values")
    _require(len(entry.ids) == n and all(entry.ids), "ids")
    extra = _spread(msgspec.json.decode(entry.extra) if entry.extra else [], batch == 0, "extra")
    segments = np.zeros(n, object)
    segments[~told] = [names.keys[key][1] for key in keys[~told].tolist()]
    events = Events(
        told,
        objects(entry.ids),
        times,
        objects(names.models)[models],
        segments,
        x=_spread(entry.features or [], ~told, "features"),
        extra=None if extra is None else extra[here],
    )
    return Admitted(events, np.flatnonzero(here), kinds, models, keys, times, scores, values, [])


def _numbers(
    entry: Entry, names: _Names, told: Mask
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Give the numbers of models, and of pairs, which are 0 for labels."""
    _require(len({*names.models}) == len(names.models), "models")
    _require(len({*names.keys}) == len(names.keys), "keys")
    numbers = {model: number for number, model in enumerate(names.models)}
    owners = np.array([numbers[model] for model, _ in names.keys], np.uint32)
    keys = np.zeros(len(told), np.uint32)
    keys[~told] = _column(entry.keys, "<u4", len(told) - int(told.sum()), "keys")
    models = _column(entry.models, "<u4", len(told), "models")
    _require(bool((models < len(names.models)).all()), "models")
    new = np.arange(len(names.models) - len(entry.new_models), len(names.models))
    _require(bool(np.isin(new, models).all()), "models that no event has")
    _require(bool((owners[keys[~told]] == models[~told]).all()), "keys")
    return models, keys


def _answers(entry: Entry, task: Task) -> Answers | None:
    """Give the answers as they were; None if they are to be found again."""
    if task.distributions:
        return None
    held = np.frombuffer(entry.held, "<i8").astype(np.int64)
    _require(bool(((held >= 0) & (held <= MOST)).all()), "held")
    rows = _table(entry.answers, len(held), task.answer_width, "answers")
    _require(task.are_answers(rows), "answers")
    return Answers(rows, held)


def _sizes(entry: Entry, count: int) -> Any:  # noqa: ANN401 - an array, or 0 for all
    """Count the bytes of the features of observations, as admission does."""
    if entry.features is None:
        return 0.0
    _require(len(entry.features) == count, "features")
    return [float(len(msgspec.msgpack.encode(x))) for x in entry.features]


def _table(given: bytes, rows: int, width: int, what: str) -> NDArray[np.float64]:
    return _column(given, "<f8", rows * width, what).reshape(rows, width)


def _column(given: bytes, kind: str, size: int, what: str) -> NDArray[Any]:
    column = np.frombuffer(given, kind)
    _require(len(column) == size, what)
    return column.astype(column.dtype.newbyteorder("="))


def _spread(values: list[Any], places: Mask, what: str) -> Column | None:
    if not values:
        return None
    _require(len(values) == int(places.sum()), what)
    column = np.full(len(places), None)
    column[places] = objects(values)
    return column


def _require(condition: bool, what: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not condition:
        raise ValueError(what)

"""The journal of a processor: an entry for each batch, from which another processor repeats it.

An entry has what does not follow from the state before it: the valid events, their scores and
predictions, and the counters after them. What does follow, the join and what expires, is computed
again, and the counters show whether it came out the same.

Columns are little-endian bytes, a row each.

Replay of a journal: a processor applies the entries of another. An entry becomes what was decided
again, and is applied as that was. It is checked before anything changes, and the counters
afterwards.

A few events with their journal entry, without columns of a few rows. Plain events are processed one
at a time, as `abers.stream.single_event` does, and what their entry has of them is noted on the
way. If any event is not plain, all of them make a batch.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, chain, compress
from operator import eq
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from abers.arrays import raw
from abers.exceptions import AbersError, ParameterError, SettingsError, StateError
from abers.serialization import MAX_COUNT, REMEDY, column, require
from abers.stream.cells import objects
from abers.stream.columns import Events
from abers.stream.events import DeadLetter, Observation
from abers.stream.join import COUNTERS, LATER_COUNTERS
from abers.stream.outputs import ObjectRows, Outputs
from abers.stream.settings import LARGEST_TIME, OF_VALIDATION, Settings
from abers.stream.single_event import EventNotes
from abers.stream.state import apply_decided, step
from abers.stream.tasks.base import PredictionRows
from abers.stream.validation import ENDS, Decided, require_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.stream.cells import Column
    from abers.stream.events import Event, Output
    from abers.stream.state import ProcessorState
    from abers.stream.tasks.base import Task
    from abers.stream.validation import ModelNames

    Mask = NDArray[np.bool_]

__all__ = [
    "JournalEntry",
    "apply",
    "counted",
    "encoded_extra",
    "joined",
    "record",
    "record_few",
    "settings_digest",
]

_DIGEST = 8
_MOST_JOINED = 10_000  # events of entries that are applied as one
_JSON = msgspec.json.Encoder()


class JournalEntry(msgspec.Struct, array_like=True, frozen=True):
    """One batch of events, as a processor took it.

    Attributes
    ----------
    settings
        Digest of the settings of the processor.
    labels
        u1 for each event of the batch: 1 if it is a label, 2 if it says that none will come.
    rejected
        Row and reason of each event that is not valid, ascending; the columns below are of the
        valid events.
    ids
        Ids of observations and labels.
    times
        i8, event times.
    new_models, new_keys
        New models, and new pairs of model and segment, in order of appearance.
    models
        u4, number of the model.
    keys
        u4, number of the pair of model and segment of each observation.
    scores
        f8, score of each observation, a row each.
    values
        f8, value of each label.
    predictions, n_labels
        f8 and i8, prediction of each observation that was predicted, a row each, and the number of
        labels kept then; empty for a task that predicts again when its journal is replayed.
    features
        Features of each observation, if there is a learner.
    extra
        JSON: extra fields of each observation of the batch; empty if none has any.
    counters
        Counters after the batch; others behind them are 0.
    retired
        Numbers of the models that were retired before the batch, ascending; all other numbers are
        as after it.
    """

    settings: bytes
    labels: bytes
    rejected: list[tuple[int, str]]
    ids: list[str]
    times: bytes
    new_models: list[str]
    new_keys: list[tuple[str, str]]
    models: bytes
    keys: bytes
    scores: bytes
    values: bytes
    predictions: bytes
    n_labels: bytes
    features: list[dict[Any, Any]] | None
    extra: bytes
    counters: list[int]
    retired: list[int]


_LISTS = ("ids", "new_models", "new_keys")
_COLUMNS = (
    *("labels", "times", "models", "keys", "scores", "values"),
    *("predictions", "n_labels"),
)


def joined(entries: Iterable[JournalEntry]) -> Iterator[JournalEntry]:
    """Yield fewer entries that lead to the same state as consecutive entries.

    Those of small batches become one. Models are retired where a batch begins, so an entry that
    retires some begins a new entry.
    """
    waiting: list[JournalEntry] = []
    size = 0
    for entry in entries:
        size += len(entry.labels)
        apart = size > _MOST_JOINED or entry.retired
        if waiting and (apart or entry.settings != waiting[0].settings):
            yield _one(waiting)
            waiting, size = [], len(entry.labels)
        waiting.append(entry)
    if waiting:
        yield _one(waiting)


def _one(entries: Sequence[JournalEntry]) -> JournalEntry:
    """Return the entry of several batches as of one."""
    if len(entries) == 1:
        return entries[0]
    first, last = entries[0], entries[-1]
    starts = accumulate((len(one.labels) for one in entries), initial=0)
    columns: dict[str, Any] = {
        name: b"".join(getattr(one, name) for one in entries) for name in _COLUMNS
    } | {name: [*chain.from_iterable(getattr(one, name) for one in entries)] for name in _LISTS}
    if first.features is not None:
        columns["features"] = [*chain.from_iterable(one.features or () for one in entries)]
    columns["rejected"] = [
        (start + row, why)
        for start, one in zip(starts, entries, strict=False)
        for row, why in one.rejected
    ]
    return msgspec.structs.replace(
        first, extra=_joined_extra(entries), counters=last.counters, **columns
    )


def _joined_extra(entries: Sequence[JournalEntry]) -> bytes:
    """Join the lists of extra fields; where an entry has none, each observation has null."""
    if not any(one.extra for one in entries):
        return b""
    parts = [one.extra[1:-1] or b",".join([b"null"] * one.labels.count(0)) for one in entries]
    return b"[" + b",".join(filter(None, parts)) + b"]"


@lru_cache(maxsize=8)
def settings_digest(settings: Settings) -> bytes:
    """Return a digest of the settings that differ from the defaults.

    So a release may add a setting, and entries still apply. Settings of validation do not count,
    since an entry has the valid events.
    """
    usual = msgspec.structs.asdict(Settings())
    given = {
        name: value
        for name, value in sorted(msgspec.structs.asdict(settings).items())
        if value != usual[name] and name not in OF_VALIDATION
    }
    return blake2b(msgspec.msgpack.encode(given), digest_size=_DIGEST).digest()


def record(state: ProcessorState, events: Events) -> tuple[Outputs, JournalEntry]:
    """Process a batch, and return the outputs with its entry."""
    extra = b"" if events.extra is None else encoded_extra(events.extra[~events.labels].tolist())
    outputs, decided = step(state, events)
    observations = decided.kinds == 0
    issued = None if state.task.repeats else decided.issued
    entry = JournalEntry(
        settings=settings_digest(state.settings),
        labels=_kinds(decided),
        rejected=[*decided.rejected],
        ids=decided.events.ids.tolist(),
        times=bytes(raw(decided.times)),
        new_models=[*decided.new_models],
        new_keys=[*decided.new_keys],
        models=bytes(raw(decided.models)),
        keys=bytes(raw(decided.keys[observations])),
        scores=bytes(raw(decided.scores[observations])),
        values=bytes(raw(decided.values[~observations])),
        predictions=b"" if issued is None else bytes(raw(issued.rows)),
        n_labels=b"" if issued is None else bytes(raw(issued.n_labels)),
        features=None if state.join.learners is None else _features(decided.events, observations),
        extra=extra,
        counters=counted(state.join.counters),
        retired=[*decided.retired],
    )
    return outputs, entry


def _kinds(decided: Decided) -> bytes:
    kinds = decided.labels.astype(np.uint8)
    kinds[decided.rows] = decided.kinds
    return kinds.tobytes()


def counted(counters: Mapping[str, int]) -> list[int]:
    """Return the counters that are written, in their order."""
    given = [*counters.values()]
    while len(given) > len(COUNTERS) - len(LATER_COUNTERS) and not given[-1]:
        given.pop()
    return given


def _features(events: Events, observations: NDArray[np.bool_]) -> list[Any]:
    return [] if events.x is None else events.x[observations].tolist()


def encoded_extra(fields: Sequence[Any]) -> bytes:
    """Encode extra fields, before anything changes: not all values can be encoded."""
    try:
        return _JSON.encode(fields)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        msg = f"extra fields cannot be encoded ({error}); pass through only what JSON can hold"
        raise ParameterError(msg) from None


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
            outputs, _ = apply_decided(state, decided)
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


_MOST = 32  # events: more are faster as a batch


def record_few(
    state: ProcessorState, events: Sequence[Event]
) -> tuple[Outputs, JournalEntry] | None:
    """Process a few plain events, and return their outputs and entry.

    The outputs are without `settled_batch` and alarms, since monitors and tests take the events
    later. None if the events are to make a batch; nothing has changed then. A ParameterError is
    raised, before anything changes, if an extra field cannot be encoded.
    """
    if state.broken or not state.outcomes or not 0 < len(events) <= _MOST:
        return None
    single = state.single
    known = [found for found in map(single.known, events) if found is not None]
    if len(known) < len(events):
        return None
    fields = [one.extra for one in events if type(one) is Observation]
    extra = encoded_extra(fields) if any(one is not None for one in fields) else b""
    notes = EventNotes()
    made = [single.take(event, *found, notes) for event, found in zip(events, known, strict=True)]
    return _outputs(state, made), _entry(state, notes, extra)


def _entry(state: ProcessorState, notes: EventNotes, extra: bytes) -> JournalEntry:
    """Return the entry of events that are noted, and are the last that a state took."""
    repeats = state.task.repeats
    return JournalEntry(
        settings=settings_digest(state.settings),
        labels=bytes(notes.labels),
        rejected=[],
        ids=notes.ids,
        times=_packed("q", notes.times),
        new_models=[],
        new_keys=[],
        models=_packed("I", notes.models),
        keys=_packed("I", notes.keys),
        scores=_packed("d", notes.scores),
        values=_packed("d", notes.values),
        predictions=b"" if repeats else _packed("d", notes.predictions),
        n_labels=b"" if repeats else _packed("q", notes.n_labels),
        features=None,
        extra=extra,
        counters=counted(state.join.counters),
        retired=[],
    )


def _outputs(state: ProcessorState, made: Sequence[Sequence[Output]]) -> Outputs:
    """Return the outputs of each event by kind."""
    kinds: tuple[list[Any], ...] = ([], [], [])
    rows: tuple[list[int], ...] = ([], [], [])
    for row, outputs in enumerate(made):
        for one in outputs:
            kind = _kind(state, one)
            kinds[kind].append(one)
            rows[kind].append(row)
    predictions, outcomes, dead = kinds
    return Outputs(
        ObjectRows(state.task.prediction, predictions),
        ObjectRows(state.task.outcome, outcomes),
        [*zip(rows[2], dead, strict=True)],
        np.array(rows[0], np.int64),
        np.array(rows[1], np.int64),
    )


def _kind(state: ProcessorState, output: Output) -> int:
    """Return 0 for a prediction, 1 for an outcome, 2 for a dead letter."""
    kind = type(output)
    return 0 if kind is state.task.prediction else 1 if kind is not DeadLetter else 2


def _packed(kind: str, values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}{kind}", *values)

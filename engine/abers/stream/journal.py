"""The journal of a processor: an entry for each batch, from which another processor repeats it.

An entry has what does not follow from the state before it: the valid events, their scores and
predictions, and the counters after them. What does follow, the join and what expires, is computed
again, and the counters show whether it came out the same.

Columns are little-endian bytes, a row each.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from abers.arrays import raw
from abers.exceptions import ParameterError
from abers.stream.join import COUNTERS, LATER_COUNTERS
from abers.stream.settings import OF_VALIDATION, Settings
from abers.stream.step import step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.stream.columns import Events
    from abers.stream.decided import Decided
    from abers.stream.outputs import Outputs
    from abers.stream.state import ProcessorState

__all__ = ["JournalEntry", "counted", "encoded_extra", "joined", "record", "settings_digest"]

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

"""The journal of a processor: an entry for each batch, from which another processor repeats it.

An entry has what does not follow from the state before it: the valid events, their scores and
predictions, and the counters after them. What does follow, the join and what expires, is computed
again, and the counters show whether it came out the same.

Columns are little-endian bytes, a row each.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from abers.arrays import raw
from abers.exceptions import ParameterError
from abers.stream.retirement import retire_due
from abers.stream.settings import OF_VALIDATION, Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from abers.stream.columns import Events
    from abers.stream.outputs import Outputs
    from abers.stream.state import ProcessorState

__all__ = ["JournalEntry", "record", "settings_digest"]

_DIGEST = 8
_JSON = msgspec.json.Encoder()


class JournalEntry(msgspec.Struct, array_like=True, frozen=True):
    """One batch of events, as a processor took it.

    Attributes
    ----------
    settings
        Digest of the settings of the processor.
    labels
        u1 for each event of the batch: 1 if it is a label.
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
        labels held then; empty for a task that predicts again when its journal is replayed.
    features
        Features of each observation, if there is a learner.
    extra
        JSON: extra fields of each observation of the batch; empty if none has any.
    counters
        All counters after the batch.
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
    extra = _extra(events)
    retired = retire_due(state, events)
    validator = state.join.validator
    models, keys = len(validator.models), len(validator.keys)
    joined = state.join.take(events, retired.dead_letters)
    outputs, predicted = state.calibrate(joined, retired.names)
    valid = joined.valid
    labels = valid.kinds == 1
    observations = ~labels
    known = not state.task.repeats
    entry = JournalEntry(
        settings=settings_digest(state.settings),
        labels=events.labels.tobytes(),
        rejected=[(letter.row or 0, letter.reason) for letter in valid.rejected],
        ids=valid.events.ids.tolist(),
        times=bytes(raw(valid.times)),
        new_models=_since(validator.models, models),
        new_keys=_since(validator.keys, keys),
        models=bytes(raw(valid.models)),
        keys=bytes(raw(valid.keys[observations])),
        scores=bytes(raw(valid.scores[observations])),
        values=bytes(raw(valid.values[labels])),
        predictions=bytes(raw(predicted.rows)) if known else b"",
        n_labels=bytes(raw(predicted.n_labels)) if known else b"",
        features=None if state.join.learners is None else _features(valid.events, observations),
        extra=extra,
        counters=[*state.join.counters.values()],
        retired=[*retired.numbers],
    )
    return outputs, entry


def _since(known: dict[Any, int], number: int) -> list[Any]:
    return [*islice(known, number, None)] if len(known) > number else []


def _features(events: Events, observations: NDArray[np.bool_]) -> list[Any]:
    return [] if events.x is None else events.x[observations].tolist()


def _extra(events: Events) -> bytes:
    """Encode the extra fields, before anything changes: not all values can be encoded."""
    if events.extra is None:
        return b""
    try:
        return _JSON.encode(events.extra[~events.labels].tolist())
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        msg = f"extra fields cannot be encoded ({error}); pass through only what JSON can hold"
        raise ParameterError(msg) from None

"""What was decided of a batch, so that another processor can do it again without deciding.

Governing rule: an entry holds what cannot be had from the state before it: the events that
came in, the scores and answers they got, and the counters after them. What follows from
those, who is paired with whom and what expires, is not written down but done again, and
the counters say whether it came out the same.

Columns are little-endian bytes, a row each.
"""

# ruff: noqa: SLF001 - this is one more half of the class Processor

from __future__ import annotations

from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from abers.exceptions import ParameterError
from abers.stream import retirement
from abers.stream.settings import OF_ADMISSION, Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from abers.stream.columns import Events
    from abers.stream.outputs import Outputs
    from abers.stream.processor import Processor

__all__ = ["Entry", "marked", "take"]

_DIGEST = 8
_JSON = msgspec.json.Encoder()


class Entry(msgspec.Struct, array_like=True, frozen=True):
    """What was decided of one batch of events.

    Attributes
    ----------
    settings
        Digest of the settings under which it was decided.
    labels
        u1 for each event of the batch: 1 if it is a label.
    refused
        Row and reason of each event that did not come in, ascending; the columns below are of
        the others.
    ids
        Of observations and labels.
    times
        i8, event times.
    new_models, new_keys
        Models, and pairs of model and segment, that were not there before, in order of
        appearance.
    models
        u4, number of the model.
    keys
        u4, number of the pair of model and segment of each observation.
    scores
        f8, score of each observation, a row each.
    values
        f8, value of each label.
    answers, held
        f8 and i8, answer to each observation that was predicted, a row each, and how many labels
        were held then; empty where whole distributions are told or judged: they are predicted
        again.
    features
        Of each observation, if a learner is to learn them.
    extra
        JSON: what is passed through for each observation of the batch; empty if none has any.
    counters
        All counters after the batch.
    retired
        Numbers of the models that were retired before the batch, ascending; all other numbers are
        those of afterwards.
    """

    settings: bytes
    labels: bytes
    refused: list[tuple[int, str]]
    ids: list[str]
    times: bytes
    new_models: list[str]
    new_keys: list[tuple[str, str]]
    models: bytes
    keys: bytes
    scores: bytes
    values: bytes
    answers: bytes
    held: bytes
    features: list[dict[Any, Any]] | None
    extra: bytes
    counters: list[int]
    retired: list[int] = []


def marked(settings: Settings) -> bytes:
    """Digest settings; one that is left as it is by default counts for nothing.

    So entries outlive a release in which there is one more setting. Those of admission count for
    nothing either, since an entry says what came in.
    """
    usual = msgspec.structs.asdict(Settings())
    given = {
        name: value
        for name, value in sorted(msgspec.structs.asdict(settings).items())
        if value != usual[name] and name not in OF_ADMISSION
    }
    return blake2b(msgspec.msgpack.encode(given), digest_size=_DIGEST).digest()


def take(processor: Processor, events: Events) -> tuple[Outputs, Entry]:
    """Let a processor take a batch, and write down what was decided."""
    extra = _extra(events)
    retired = retirement.begin(processor, events)
    admission = processor._deciding.admission
    models, keys = len(admission.models), len(admission.keys)
    decided = processor._deciding.decide(events, retired.letters)
    outputs, answers = processor._answer(decided, retired)
    admitted = decided.admitted
    told = admitted.kinds == 1
    seen = ~told
    known = not processor._task.distributions
    entry = Entry(
        settings=processor._mark,
        labels=events.labels.tobytes(),
        refused=[(letter.row or 0, letter.reason) for letter in admitted.refused],
        ids=admitted.events.ids.tolist(),
        times=_bytes(admitted.times),
        new_models=_since(admission.models, models),
        new_keys=_since(admission.keys, keys),
        models=_bytes(admitted.models),
        keys=_bytes(admitted.keys[seen]),
        scores=_bytes(admitted.scores[seen]),
        values=_bytes(admitted.values[told]),
        answers=_bytes(answers.rows) if known else b"",
        held=_bytes(answers.held) if known else b"",
        features=None if processor._deciding.learning is None else _features(admitted.events, seen),
        extra=extra,
        counters=[*processor.counters.values()],
        retired=[*retired.numbers],
    )
    return outputs, entry


def _since(known: dict[Any, int], number: int) -> list[Any]:
    return [*islice(known, number, None)] if len(known) > number else []


def _features(events: Events, seen: NDArray[np.bool_]) -> list[Any]:
    return [] if events.x is None else events.x[seen].tolist()


def _extra(events: Events) -> bytes:
    """Write down what is passed through, before anything is changed: not all can be."""
    if events.extra is None:
        return b""
    try:
        return _JSON.encode(events.extra[~events.labels].tolist())
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        msg = f"extra fields cannot be written down ({error}); pass through what JSON can hold"
        raise ParameterError(msg) from None


def _bytes(column: NDArray[Any]) -> bytes:
    return column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes()

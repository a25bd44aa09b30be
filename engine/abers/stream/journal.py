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
import numpy as np

from abers._sealed import REMEDY
from abers.exceptions import AbersError, StateError
from abers.stream.admission import Admitted
from abers.stream.columns import Events, objects
from abers.stream.deciding import COUNTERS
from abers.stream.settings import LARGEST_TIME, Settings
from abers.stream.tasks import Answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.stream.columns import Column
    from abers.stream.outputs import Outputs
    from abers.stream.processor import Processor

__all__ = ["Entry", "marked", "redo", "take"]

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
        JSON: what is passed through for each observation; empty if none has any.
    counters
        All counters after the batch.
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


def marked(settings: Settings) -> bytes:
    """Digest settings; one that is left as it is by default counts for nothing.

    So entries outlive a release in which there is one more setting.
    """
    usual = msgspec.structs.asdict(Settings())
    given = {
        name: value
        for name, value in sorted(msgspec.structs.asdict(settings).items())
        if value != usual[name]
    }
    return blake2b(msgspec.msgpack.encode(given), digest_size=_DIGEST).digest()


# Writing


def take(processor: Processor, events: Events) -> tuple[Outputs, Entry]:
    """Let a processor take a batch, and write down what was decided."""
    admission = processor._deciding.admission
    models, keys = len(admission.models), len(admission.keys)
    decided = processor._deciding.decide(events)
    outputs, answers = processor._answer(decided)
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
        extra=_extra(admitted.events.extra, seen),
        counters=[*processor.counters.values()],
    )
    return outputs, entry


def _since(known: dict[Any, int], number: int) -> list[Any]:
    return [*islice(known, number, None)] if len(known) > number else []


def _features(events: Events, seen: NDArray[np.bool_]) -> list[Any]:
    return [] if events.x is None else events.x[seen].tolist()


def _extra(extra: Column | None, seen: NDArray[np.bool_]) -> bytes:
    given = [] if extra is None else extra[seen].tolist()
    return _JSON.encode(given) if any(one is not None for one in given) else b""


def _bytes(column: NDArray[Any]) -> bytes:
    return column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes()


# Reading


def redo(processor: Processor, entry: Entry) -> Outputs:
    """Have a processor do what was decided; see `Processor.redo`."""
    if entry.settings != processor._mark:
        msg = "the entry was decided under other settings; set them back, or start without it"
        raise StateError(msg)
    _require_order(entry, processor.counters)
    deciding = processor._deciding
    try:
        admitted = _admitted(processor, entry)
        decided = deciding.redo(
            admitted,
            np.frombuffer(entry.labels, np.bool_),
            [why for _, why in entry.refused],
        )
        predicted = len(decided.taken.learns) - int(decided.taken.learns.sum())
        answers = _answers(processor, entry, predicted)
        with np.errstate(all="ignore"):  # answers are as they are
            outputs, _ = processor._answer(decided, answers)
    except (ValueError, IndexError, KeyError, TypeError, AbersError) as error:
        msg = f"entry of a journal is inconsistent ({error}); {REMEDY}"
        raise StateError(msg) from None
    _require_equal(entry, processor.counters)
    return outputs


def _require_order(entry: Entry, counters: dict[str, int]) -> None:
    """Refuse an entry that does not come next, while nothing is changed yet."""
    if len(entry.counters) != len(COUNTERS):
        msg = f"the entry has {len(entry.counters)} counters, not {len(COUNTERS)}; {REMEDY}"
        raise StateError(msg)
    after = dict(zip(COUNTERS, entry.counters, strict=True))
    before = _events(after) - len(entry.labels)
    if before != _events(counters):
        msg = (
            f"the entry was decided after {before} events, and the processor has taken "
            f"{_events(counters)}; redo each entry once, in order"
        )
        raise StateError(msg)


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


def _admitted(processor: Processor, entry: Entry) -> Admitted:
    """Give the events that came in as admission did."""
    admission, task = processor._deciding.admission, processor._task
    batch = np.frombuffer(entry.labels, np.uint8)
    here = np.ones(len(batch), bool)
    here[[row for row, _ in entry.refused]] = False
    rows, kinds = np.flatnonzero(here), batch[here]
    n, told = len(rows), kinds == 1
    _require(bool((kinds <= 1).all()), "labels")
    _require(len(entry.ids) == n and all(entry.ids), "ids")
    times = _column(entry.times, "<i8", n, "times")
    _require(bool(((times > -LARGEST_TIME) & (times < LARGEST_TIME)).all()), "times")
    _name(admission.models, entry.new_models, "models")
    _name(admission.keys, entry.new_keys, "keys")
    seen = n - int(told.sum())
    models = _column(entry.models, "<u4", n, "models")
    keys = np.zeros(n, np.uint32)
    keys[~told] = _column(entry.keys, "<u4", seen, "keys")
    _require(bool((models < len(admission.models)).all()), "models")
    _require(not seen or bool((keys < len(admission.keys)).all()), "keys")
    scores, values = np.zeros((n, task.score_width)), np.zeros(n)
    wide = seen * task.score_width
    scores[~told] = _column(entry.scores, "<f8", wide, "scores").reshape(seen, task.score_width)
    values[told] = _column(entry.values, "<f8", n - seen, "values")
    segments = np.zeros(n, object)
    if seen:
        segments[~told] = objects([segment for _, segment in admission.keys])[keys[~told]]
    events = Events(
        told,
        objects(entry.ids),
        times,
        objects([*admission.models])[models],
        segments,
        x=_spread(entry.features or [], ~told, "features"),
        extra=_spread(msgspec.json.decode(entry.extra) if entry.extra else [], ~told, "extra"),
    )
    return Admitted(events, rows, kinds, models, keys, times, scores, values, [])


def _answers(processor: Processor, entry: Entry, count: int) -> Answers | None:
    """Give the answers as they were; None if they are to be found again."""
    if processor._task.distributions:
        return None
    width = processor._task.answer_width
    rows = _column(entry.answers, "<f8", count * width, "answers")
    return Answers(rows.reshape(count, width), _column(entry.held, "<i8", count, "answers"))


def _name(known: dict[Any, int], names: Sequence[Any], what: str) -> None:
    for name in names:
        _require(name not in known, what)
        known[name] = len(known)


def _column(given: bytes, kind: str, size: int, what: str) -> NDArray[Any]:
    column = np.frombuffer(given, kind)
    _require(len(column) == size, what)
    return column.astype(column.dtype.newbyteorder("="))


def _spread(values: list[Any], places: NDArray[np.bool_], what: str) -> Column | None:
    if not values:
        return None
    _require(len(values) == int(places.sum()), what)
    column = np.full(len(places), None)
    column[places] = objects(values)
    return column


def _require(condition: bool, what: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not condition:
        raise ValueError(what)

"""Rows of requests, as events, and answers as rows of responses.

A row that cannot be read is an error in its place, and the others are served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from abers.stream import Label, Observation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from abers.stream import Event
    from abers.stream.durable.answers import EventAnswer

__all__ = [
    "MOST_ROWS",
    "BadRequestError",
    "LabelRow",
    "PredictRow",
    "RequestRows",
    "label_rows",
    "observation_rows",
    "response",
]

MOST_ROWS = 10_000
"""The most rows of a request."""

_encode = msgspec.json.Encoder().encode
_FORGOTTEN = (
    "this id was predicted before, and its prediction is no longer remembered; use a new id"
)


class PredictRow(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A row that asks for a prediction."""

    id: str
    score: float | dict[str, float] | None = None
    x: dict[str, Any] | None = None
    model: str = "default"
    segment: str = ""
    time: int | None = None


class LabelRow(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A row that brings a label."""

    id: str
    label: bool | int | float | str
    model: str = "default"
    time: int | None = None


class BadRequestError(Exception):
    """A request that must be a list of rows, and is another."""


class RowError(NamedTuple):
    """A row that cannot be read."""

    id: Any
    detail: str


class RequestRows(NamedTuple):
    """The rows of a request."""

    events: list[Event]
    errors: dict[int, RowError]  # by the number of the row
    single: bool  # whether the request is one row, and no list


_NO_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
R = TypeVar("R", PredictRow, LabelRow)
_predict, _label = msgspec.json.Decoder(list[PredictRow]), msgspec.json.Decoder(list[LabelRow])


def observation_rows(body: bytes, now: int) -> RequestRows:
    """Return the observations of a request that came now; raises a BadRequestError."""
    return _rows(body, _predict, PredictRow, lambda row: observation(row, now))


def label_rows(body: bytes, now: int) -> RequestRows:
    """Return the labels of a request that came now; raises a BadRequestError."""
    return _rows(body, _label, LabelRow, lambda row: _label_event(row, now))


def observation(row: PredictRow, now: int) -> Observation:
    """Return the observation of a row."""
    time = now if row.time is None else row.time
    return Observation(row.id, time, row.model, row.score, row.x, row.segment, now)


def _label_event(row: LabelRow, now: int) -> Label:
    return Label(row.id, now if row.time is None else row.time, row.model, row.label, now)


def _rows(
    body: bytes, decoder: msgspec.json.Decoder[list[R]], kind: type[R], event: Callable[[R], Event]
) -> RequestRows:
    single = body.lstrip()[:1] == b"{"
    if single:
        body = b"[" + body + b"]"
    try:
        rows: list[R] = decoder.decode(body)
    except msgspec.ValidationError:
        return _one_by_one(body, kind, event, single=single)
    except _NO_JSON as error:
        raise _no_json(error) from None
    _require_few(rows)
    return RequestRows([*map(event, rows)], {}, single)


def _one_by_one(
    body: bytes, kind: type[R], event: Callable[[R], Event], *, single: bool
) -> RequestRows:
    """Read rows; some are wrong."""
    try:
        given = msgspec.json.decode(body)
    except _NO_JSON as error:  # behind a row that is wrong
        raise _no_json(error) from None
    if not isinstance(given, list):
        msg = "the body is neither a list of rows nor a row; send [{…}, …] or {…}"
        raise BadRequestError(msg)
    _require_few(given)
    events: list[Event] = []
    errors: dict[int, RowError] = {}
    for number, one in enumerate(given):
        try:
            events.append(event(msgspec.convert(one, kind)))
        except msgspec.ValidationError as error:
            id_ = one.get("id") if isinstance(one, dict) else None
            errors[number] = RowError(id_, str(error))
    return RequestRows(events, errors, single)


def _no_json(error: Exception) -> BadRequestError:
    return BadRequestError(f"the body is no JSON ({error}); send a list of rows, or one row")


def _require_few(rows: Sequence[object]) -> None:
    if len(rows) > MOST_ROWS:
        msg = f"{len(rows):,} rows are too many; send at most {MOST_ROWS:,} in a request"
        raise BadRequestError(msg)


def response(rows: RequestRows, answers: Sequence[EventAnswer]) -> bytes:
    """Return the body of a response: a row for each row of the request."""
    found = [_row(event.id, one) for event, one in zip(rows.events, answers, strict=True)]
    for number, wrong in rows.errors.items():  # ascending, so each comes into its place
        found.insert(number, _error(wrong.id, "bad-row", wrong.detail))
    return found[0] if rows.single else _joined(found)


def _joined(rows: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(rows) + b"]"


def _row(id_: str, answer: EventAnswer) -> bytes:
    if answer.prediction is not None:
        return answer.prediction
    if answer.dead_letter is not None:
        return _error(id_, answer.dead_letter.reason, answer.dead_letter.detail)
    if answer.status == "forgotten":
        return _error(id_, "forgotten-id", _FORGOTTEN)
    return _encode({"id": id_, "status": answer.status})


def _error(id_: Any, reason: str, detail: str) -> bytes:  # noqa: ANN401 - as it came
    return _encode({"id": id_, "error": {"reason": reason, "detail": detail}})

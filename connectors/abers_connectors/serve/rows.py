"""Rows of requests, as events, and answers as rows of responses.

A row that cannot be read is an error in its place, and the others are served. `Schema` reads rows,
as it reads records of files and topics. Rows of exact types are events as they are, and msgspec
decodes these many times faster.

The Open Inference Protocol, which clients of KServe and MLServer speak, takes tensors of ids and
scores, and returns tensors of probabilities. It has no labels.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec

from abers.stream import Label, Observation, Prediction
from abers.stream.cells import BadRecordError, Fields
from abers.stream.columns import Schema
from abers.stream.readers import (
    ClassReader,
    ClassScoresReader,
    FoldScoresReader,
    LabelReader,
    shown,
)
from abers.stream.schema_columns import DEFAULT_MODEL
from abers.stream.times import MICROSECONDS, MILLISECONDS
from abers_connectors.mapping import columns_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers.stream import Event
    from abers.stream.durable.answers import EventAnswer
    from abers.stream.readers import CellReader
    from abers.stream.schema_columns import Readers
    from abers_connectors.config.model import Config

__all__ = [
    "BadRequestError",
    "RequestRows",
    "RowReader",
    "infer_response",
    "infer_rows",
    "response",
]

MOST_ROWS = 10_000
"""The most rows of a request."""

_encode_lines = msgspec.json.Encoder().encode_lines
_FORGOTTEN = (
    "this id was predicted before, and its prediction is no longer remembered; use a new id"
)
_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Time = Annotated[int, msgspec.Meta(ge=MILLISECONDS, lt=MICROSECONDS)]
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode


class BadRequestError(Exception):
    """A request that is refused as a whole, with its HTTP status."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


class RowError(NamedTuple):
    """Why a row is no event."""

    id: Any
    reason: str
    detail: str


class RequestRows(NamedTuple):
    """The rows of a request."""

    events: list[Event]
    errors: Mapping[int, RowError]  # by the number of the row, ascending
    single: bool = False  # whether the request is a row without a list
    id: str | None = None  # of the request, in the Open Inference Protocol


class RowReader:
    """Reads the rows of requests of one kind.

    Parameters
    ----------
    row
        Type of the rows that are events as they are; /openapi.json shows it.
    event
        Makes an event of a row of this type that came now; None if every row needs the schema.
    schema
        Reads all other rows.
    required
        Groups of fields: a row has at least one of each.
    """

    def __init__(
        self,
        row: Any,  # noqa: ANN401 - a type that is made
        event: Callable[[Any, int], Event] | None,
        schema: Schema,
        required: Sequence[Sequence[str]],
    ) -> None:
        self.row, self._event, self._schema, self._required = row, event, schema, required
        self._names: Sequence[str] = row.__struct_fields__
        self._decode = msgspec.json.Decoder(list[row]).decode

    @classmethod
    def of_observations(cls, config: Config) -> RowReader:
        """Return the reader of rows that ask for predictions."""
        reads, learns = _readers(config), config.learns
        percent = config.input.percent
        fields = Fields(segment="segment", x="x" if learns else None)
        score: Any = float | str if percent else _score_type(reads.score)
        values: list[Any] = [("score", score)]
        if learns:
            values = [("x", dict[str, Any]), ("score", score | None, None)]
        row = _row_type(
            "PredictRow", *values, ("model", _Name, DEFAULT_MODEL), ("segment", str, "")
        )
        event = None if percent else _unscored if learns else _observation
        schema = Schema(fields, reads, "labelled")
        return cls(row, event, schema, [["id"], fields.scored[::-1]])

    @classmethod
    def of_labels(cls, config: Config) -> RowReader:
        """Return the reader of rows with labels."""
        reads, named = _readers(config), bool(config.input.pos_label)
        classes = config.settings().classes
        label: Any = bool | float | str if named else _label_type(reads.label, classes)
        row = _row_type("LabelRow", ("label", label), ("model", _Name, DEFAULT_MODEL))
        event = None if named else _label
        return cls(row, event, Schema(Fields(), reads, "labels"), [["id"], ["label"]])

    def read(self, body: bytes, now: int) -> RequestRows:
        """Return the rows of a request that came now; raises a BadRequestError."""
        single = body.lstrip()[:1] == b"{"
        if single:
            body = b"[" + body + b"]"
        if self._event is not None:
            try:
                rows = self._decode(body)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                pass  # a row needs a closer look
            else:
                _require_alone(rows, single=single)
                _require_few(rows)
                return RequestRows([*map(self._event, rows, repeat(now))], {}, single)
        raw = _raw_rows(body)
        _require_alone(raw, single=single)
        return self.of_records([*map(_record, raw)], now)._replace(single=single)

    def of_records(self, records: Sequence[Any], now: int) -> RequestRows:
        """Return the rows of JSON values that came now; an error concerns only its row."""
        if not records:
            return RequestRows([], {})
        _require_few(records)
        wrong = {row: error for row, one in enumerate(records) if (error := self._wrong(one))}
        given = [
            {"time": now} if row in wrong else {"time": now} | _given(one)
            for row, one in enumerate(records)
        ]
        columns = columns_of(given, self._schema.reads)
        reading = self._schema.read(columns, range(len(given)), wrong)
        replace = msgspec.structs.replace
        return RequestRows(
            [replace(one, recorded=now) for one in reading.events],
            {one.row: RowError(_id_of(records[one.row]), *one[1:]) for one in reading.refused},
        )

    def _wrong(self, record: object) -> BadRecordError | None:
        """Return why a record is no row of this kind, if its fields show that."""
        if isinstance(record, BadRecordError):
            return record
        if type(record) is not dict:
            return BadRecordError("bad-record", f"{shown(record)} is not a row; send an object")
        if others := [name for name in record if name not in self._names]:
            detail = f"there is no field {shown(others[0])}; use {', '.join(self._names)}"
            return BadRecordError("bad-record", detail)
        found = _given(record)
        for names in self._required:
            if found.keys().isdisjoint(names):
                detail = f'the row has no "{names[0]}"; add it'
                return BadRecordError("missing-field", detail)
        return None


def _readers(config: Config) -> Readers:
    """Return the readers of values; messages name keys of the file, as no flag sets them."""
    return config.reads()._replace(front="toml")


def _raw_rows(body: bytes) -> list[msgspec.Raw]:
    """Return the texts of the rows of a request; raises a BadRequestError."""
    try:
        return _split(body)
    except msgspec.ValidationError:
        msg = "the body is neither a list of rows nor a row; send [{…}, …] or {…}"
        raise BadRequestError(msg) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        msg = f"the body is not JSON ({error}); send a list of rows, or one row"
        raise BadRequestError(msg) from None


def _record(text: msgspec.Raw) -> Any:  # noqa: ANN401 - as JSON has it
    """Return the value of a text, or why it has none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return BadRecordError("bad-json", f"the row cannot be read ({error}); repair it")


def _given(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: one for name, one in record.items() if one is not None and one != ""}


def _id_of(record: object) -> Any:  # noqa: ANN401 - as it came
    return record.get("id") if isinstance(record, dict) else None


def _row_type(name: str, *fields: Any) -> Any:  # noqa: ANN401 - what `defstruct` takes
    """Return a type of rows with an id, these fields, and a time."""
    every = [("id", _Name), *fields, ("time", _Time | None, None)]
    return msgspec.defstruct(name, every, forbid_unknown_fields=True, gc=False)


def _score_type(reader: CellReader) -> Any:  # noqa: ANN401 - any type
    if isinstance(reader, ClassScoresReader):
        return dict[str, float]
    return float | list[float] if isinstance(reader, FoldScoresReader) else float


def _label_type(reader: CellReader, classes: Sequence[str]) -> Any:  # noqa: ANN401 - any type
    if isinstance(reader, ClassReader):
        return Literal[tuple(classes)]
    return bool | Literal[0, 1] if isinstance(reader, LabelReader) else float


def _observation(row: Any, now: int) -> Observation:  # noqa: ANN401 - of a type that is made
    time = now if row.time is None else row.time
    return Observation(row.id, time, row.model, row.score, None, row.segment, now)


def _unscored(row: Any, now: int) -> Observation:  # noqa: ANN401 - of a type that is made
    time = now if row.time is None else row.time
    return Observation(row.id, time, row.model, row.score, row.x, row.segment, now)


def _label(row: Any, now: int) -> Label:  # noqa: ANN401 - of a type that is made
    return Label(row.id, now if row.time is None else row.time, row.model, row.label, now)


def _require_alone(rows: Sequence[object], *, single: bool) -> None:
    """Raise a BadRequestError if more rows follow the row of a request without a list."""
    if single and len(rows) > 1:
        msg = "the body is not JSON (rows follow a row); send a list of rows, or one row"
        raise BadRequestError(msg)


def _require_few(rows: Sequence[object]) -> None:
    if len(rows) > MOST_ROWS:
        msg = f"{len(rows):,} rows are too many; send at most {MOST_ROWS:,} in a request"
        raise BadRequestError(msg, 413)


def response(rows: RequestRows, answers: Sequence[EventAnswer]) -> bytes:
    """Return the body of a response: a row for each row of the request."""
    found: list[Any] = [one.prediction for one in answers]
    if others := [number for number, text in enumerate(found) if text is None]:
        made = [_row(rows.events[number].id, answers[number]) for number in others]
        for number, text in zip(others, _texts(made), strict=True):
            found[number] = text
    for number, text in zip(rows.errors, _texts([*map(_error, rows.errors.values())]), strict=True):
        found.insert(number, text)  # ascending, so each comes into its place
    return found[0] if rows.single else b"[" + b",".join(found) + b"]"


def _texts(rows: list[dict[str, Any]]) -> list[bytes]:
    """Return rows as JSON: together, which takes a fraction of the time of each."""
    return _encode_lines(rows).split(b"\n")[:-1]


def _row(id_: str, answer: EventAnswer) -> dict[str, Any]:
    letter = answer.dead_letter
    if letter is not None:
        return _error(RowError(id_, letter.reason, letter.detail))
    if answer.status == "forgotten":
        return _error(RowError(id_, "forgotten-id", _FORGOTTEN))
    return {"id": id_, "status": answer.status}


def _error(wrong: RowError) -> dict[str, Any]:
    return {"id": wrong.id, "error": {"reason": wrong.reason, "detail": wrong.detail}}


_OUTPUTS = ("p0", "p1", "p")
_read = msgspec.json.Decoder(Prediction).decode


class _Tensor(msgspec.Struct):
    name: str
    datatype: str
    shape: list[int]
    data: list[Any]


class _InferRequest(msgspec.Struct):
    inputs: list[_Tensor]
    id: str | None = None


_decode = msgspec.json.Decoder(_InferRequest).decode


def infer_rows(reader: RowReader | None, model: str, body: bytes, now: int) -> RequestRows:
    """Return the rows of a request that came now; raises a BadRequestError.

    There is no reader unless the task has two classes.
    """
    if reader is None:
        msg = "this protocol serves only tasks of two classes; use /v1/predict"
        raise BadRequestError(msg)
    try:
        request = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        msg = f"not a request of the Open Inference Protocol ({error}); send tensors id and score"
        raise BadRequestError(msg) from None
    tensors = {one.name: one.data for one in request.inputs}
    ids, scores = tensors.get("id"), tensors.get("score")
    if ids is None or scores is None:
        msg = "not a request of the Open Inference Protocol: it lacks tensors; send id and score"
        raise BadRequestError(msg)
    if len(ids) != len(scores):
        msg = f"{len(ids):,} ids and {len(scores):,} scores; send equally many"
        raise BadRequestError(msg)
    named = {"model": model}
    pairs = zip(ids, scores, strict=True)
    records = [{"id": id_, "score": score} | named for id_, score in pairs]
    return reader.of_records(records, now)._replace(id=request.id)


def infer_response(model: str, rows: RequestRows, answers: Sequence[EventAnswer]) -> bytes:
    """Return the body of a response; a BadRequestError names the rows without a prediction.

    The protocol has no place for them; rows with a prediction may be sent again.
    """
    wrong = [f"{one.id}: {one.detail}" for one in rows.errors.values()]
    wrong += [
        f"{event.id}: {one.dead_letter.detail if one.dead_letter else one.status}"
        for event, one in zip(rows.events, answers, strict=True)
        if one.prediction is None
    ]
    if wrong:
        every = len(answers) + len(rows.errors)
        msg = f"{len(wrong):,} of {every:,} rows have no prediction; {'; '.join(wrong[:3])}"
        raise BadRequestError(msg)
    made = [_read(one.prediction or b"") for one in answers]
    outputs = [
        {
            "name": name,
            "datatype": "FP64",
            "shape": [len(made)],
            "data": [getattr(one, name) for one in made],
        }
        for name in _OUTPUTS
    ]
    named = {} if rows.id is None else {"id": rows.id}
    return msgspec.json.encode({"model_name": model, **named, "outputs": outputs})

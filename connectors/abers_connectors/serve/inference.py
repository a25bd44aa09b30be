"""The Open Inference Protocol: tensors of ids and scores in, of probabilities out.

Clients of KServe and MLServer speak it. It has no labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from abers.stream import Prediction
from abers_connectors.serve.rows import BadRequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream.durable.answers import EventAnswer
    from abers_connectors.serve.rows import RequestRows, RowReader

__all__ = ["infer_response", "infer_rows"]

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
        msg = "here this protocol has predictions of two classes alone; use /v1/predict"
        raise BadRequestError(msg)
    try:
        request = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        msg = f"no request of the Open Inference Protocol ({error}); send tensors id and score"
        raise BadRequestError(msg) from None
    tensors = {one.name: one.data for one in request.inputs}
    ids, scores = tensors.get("id"), tensors.get("score")
    if ids is None or scores is None:
        msg = "no request of the Open Inference Protocol: it lacks tensors; send id and score"
        raise BadRequestError(msg)
    if len(ids) != len(scores):
        msg = f"{len(ids):,} ids and {len(scores):,} scores; send as many"
        raise BadRequestError(msg)
    named = {"model": model}
    pairs = zip(ids, scores, strict=True)
    records = [{"id": id_, "score": score} | named for id_, score in pairs]
    return reader.of_records(records, now)._replace(id=request.id)


def infer_response(model: str, rows: RequestRows, answers: Sequence[EventAnswer]) -> bytes:
    """Return the body of a response; a BadRequestError names the rows without a prediction.

    The protocol has no place for them; those with a prediction may be asked again.
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

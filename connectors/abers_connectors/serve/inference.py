"""The Open Inference Protocol: tensors of ids and scores in, of probabilities out.

Clients of KServe and MLServer speak it. It has no labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from abers.stream import Prediction
from abers_connectors.serve.rows import (
    MOST_ROWS,
    BadRequestError,
    PredictRow,
    RequestRows,
    observation,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream.durable.answers import EventAnswer

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


def infer_rows(body: bytes, model: str, now: int) -> RequestRows:
    """Return the observations of a request that came now; raises a BadRequestError."""
    try:
        given = _decode(body)
        tensors = {one.name: one.data for one in given.inputs}
        ids = msgspec.convert(tensors.get("id"), list[str])
        scores = msgspec.convert(tensors.get("score"), list[float])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        msg = f"no request of the Open Inference Protocol ({error}); send tensors id and score"
        raise BadRequestError(msg) from None
    if not len(ids) == len(scores) <= MOST_ROWS:
        msg = f"{len(ids):,} ids and {len(scores):,} scores; send as many, at most {MOST_ROWS:,}"
        raise BadRequestError(msg)
    rows = (PredictRow(id_, score, model=model) for id_, score in zip(ids, scores, strict=True))
    return RequestRows([observation(row, now) for row in rows], {}, single=False)


def infer_response(model: str, rows: RequestRows, answers: Sequence[EventAnswer]) -> bytes:
    """Return the body of a response; a BadRequestError names the rows without a prediction.

    The protocol has no place for them; those with a prediction may be asked again.
    """
    wrong = [
        f"{event.id}: {one.dead_letter.detail if one.dead_letter else one.status}"
        for event, one in zip(rows.events, answers, strict=True)
        if one.prediction is None
    ]
    if wrong:
        msg = f"{len(wrong):,} of {len(answers):,} rows have no prediction; {'; '.join(wrong[:3])}"
        raise BadRequestError(msg)
    try:
        made = [_read(one.prediction or b"") for one in answers]
    except msgspec.ValidationError:
        msg = "this protocol has predictions of two classes alone; use /v1/predict"
        raise BadRequestError(msg) from None
    outputs = [
        {
            "name": name,
            "datatype": "FP64",
            "shape": [len(made)],
            "data": [getattr(one, name) for one in made],
        }
        for name in _OUTPUTS
    ]
    return msgspec.json.encode({"model_name": model, "outputs": outputs})

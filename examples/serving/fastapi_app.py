"""FastAPI with a durable processor in it: what it answers is on disk.

Run `pip install abers fastapi uvicorn`, and in this folder `uvicorn fastapi_app:app`: one worker.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse

from abers.exceptions import DurabilityError
from abers.stream import DurableProcessor, Event, Label, Observation, Outputs


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Restore the state, and give it free at the end."""
    with DurableProcessor(os.environ.get("ABERS_STATE", "abers-state")) as app.state.durable:
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(DurabilityError)
async def failed(_: Request, error: DurabilityError) -> JSONResponse:
    """End, since nobody knows what is on disk: the next start reads what is there."""
    signal.raise_signal(signal.SIGTERM)
    return JSONResponse({"detail": str(error)}, 503, {"retry-after": "1"})


async def taken(event: Event) -> Outputs:
    """Return the outputs of an event when they are on disk; events that wait share a write."""
    outputs: Outputs = await asyncio.wrap_future(app.state.durable.submit([event]))
    for _, letter in outputs.dead_letters:
        raise HTTPException(422, letter.detail)
    return outputs


@app.post("/predict/{id_}")
async def predict(id_: str, score: float) -> dict[str, Any]:
    """Predict; an id has one prediction."""
    event = Observation(id_, time.time_ns() // 1_000_000, score=score)
    for one in (await taken(event)).predictions:
        return {"id": id_, "p0": one.p0, "p1": one.p1, "p": one.p}
    raise HTTPException(409, "this id was predicted before; use a new id")


@app.post("/label/{id_}")
async def label(id_: str, value: int) -> dict[str, Any]:
    """Learn a label; if it comes again, or before its prediction, it settles nothing yet."""
    outputs = await taken(Label(id_, time.time_ns() // 1_000_000, value=value))
    return {"id": id_, "settled": bool(len(outputs.outcomes or ()))}

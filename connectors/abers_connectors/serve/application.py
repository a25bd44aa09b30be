"""The ASGI application of `abers serve`: requests that change the state, and pages for all others.

Bodies, rows and waiting events are bounded. A request is answered once its events are on disk.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.exceptions import DurabilityError
from abers_connectors.http.middleware import HostCheck
from abers_connectors.serve.rows import (
    BadRequestError,
    RowReader,
    infer_response,
    infer_rows,
    response,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from concurrent.futures import Future

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from abers.stream import DurableProcessor, Event
    from abers.stream.durable.answers import EventAnswer
    from abers_connectors.config.model import Config
    from abers_connectors.http.credentials import ServeTokens
    from abers_connectors.serve.rows import RequestRows

    _Waiting = list[tuple[list[Event], asyncio.Future[list[EventAnswer]]]]

__all__ = ["ServeApplication", "ServeClock"]

_KEY = "clock"


class ServeClock:
    """Times that never go back, in milliseconds.

    The clock of a machine may be set back. Rows would then be behind those before them, and rows
    with times of their own too far ahead. So this clock stands still meanwhile, also after a
    restart.

    Parameters
    ----------
    position
        The last `position`, which is stored with the events.

    Examples
    --------
    >>> clock = ServeClock(None)
    >>> clock.at(1_000), clock.at(400), ServeClock(clock.position).at(999), clock.at(1_001)
    (1000, 1000, 1000, 1001)
    """

    def __init__(self, position: Any) -> None:  # noqa: ANN401 - as it was stored
        found = position.get(_KEY) if isinstance(position, dict) else None
        self._last = found if type(found) is int else 0

    def at(self, time: int) -> int:
        """Return a time of the machine's clock, or the latest so far if that is later."""
        self._last = max(self._last, time)
        return self._last

    @property
    def position(self) -> dict[str, int]:
        """The position for the next clock."""
        return {_KEY: self._last}


class BusyError(Exception):
    """Too many events wait, so no more are taken."""


class Batcher:
    """Gathers events for a durable processor, in the event loop.

    Parameters
    ----------
    answer
        Answers events, once they are on disk.
    most
        Number of events that may wait.
    """

    def __init__(
        self, answer: Callable[[list[Event]], Future[list[EventAnswer]]], most: int
    ) -> None:
        self._answer, self._most = answer, most
        self._waiting: _Waiting = []
        self._size, self._busy = 0, False

    @property
    def idle(self) -> bool:
        """Whether nothing waits."""
        return not self._size

    async def answers(self, events: list[Event]) -> list[EventAnswer]:
        """Return the answers to events; raises a BusyError if too many wait."""
        if not events:
            return []
        if self._size and self._size + len(events) > self._most:
            raise BusyError
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[EventAnswer]] = loop.create_future()
        self._waiting.append((events, future))
        self._size += len(events)
        if not self._busy:
            self._busy = True
            loop.call_soon(self._begin, loop)  # when other requests of this turn are read, too
        return await future

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        group, self._waiting = self._waiting, []
        events = [event for part, _ in group for event in part]
        try:
            done = self._answer(events)
        except Exception as error:  # noqa: BLE001 - each request gets it
            self._end(group, len(events), loop, error)
            return
        done.add_done_callback(
            lambda one: loop.call_soon_threadsafe(self._end, group, len(events), loop, one)
        )

    def _end(
        self,
        group: _Waiting,
        size: int,
        loop: asyncio.AbstractEventLoop,
        done: Future[list[EventAnswer]] | Exception,
    ) -> None:
        self._size -= size
        error = done if isinstance(done, Exception) else done.exception()
        answers = iter(done.result() if not (error or isinstance(done, Exception)) else ())
        for events, future in group:
            if future.done():  # its client has gone
                [*islice(answers, len(events))]
            elif error is None:
                future.set_result([*islice(answers, len(events))])
            else:
                future.set_exception(error)
        self._busy = bool(self._waiting)
        if self._busy:
            self._begin(loop)


_BODY = 4 << 20  # bytes
_WAITING = 50_000  # events: what a disk takes in about a second
_FIELDS = 64  # of the head of a request
_JSON = (b"content-type", b"application/json")
_NOT_ALLOWED = 405
_OF_BODY = (b"content-length", b"transfer-encoding")
_INFER, _INFER_END = "/v2/models/", "/infer"
_VERSIONS = "/versions/"  # of models of the Open Inference Protocol; here a model has none
_CLOSE = (b"connection", b"close")
_AGAIN = (b"retry-after", b"1")


class _Gone(Exception):  # noqa: N818 - caught in this module
    """The client has gone."""


class _RefusedRequest(Exception):  # noqa: N818 - caught in this module
    """A request is refused with a status."""

    def __init__(self, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(text)
        self.status, self.headers = status, headers


class _Endpoint(NamedTuple):
    kind: str  # of its token
    read: Callable[[bytes, int], RequestRows]
    write: Callable[[RequestRows, Sequence[EventAnswer]], bytes]


class ServeApplication:
    """Answers requests of predictions and labels, and passes all others on.

    Parameters
    ----------
    pages
        Answers all requests but these.
    config
        Says how rows are read.
    tokens
        Tokens that allow requests.
    names
        Host names of the server, in addition to addresses and localhost.

    Attributes
    ----------
    refused
        Numbers of rows that became no events, by reason.
    """

    def __init__(
        self, pages: ASGIApp, config: Config, tokens: ServeTokens, names: Collection[str]
    ) -> None:
        self._pages, self._tokens = pages, tokens
        observations = RowReader.of_observations(config)
        self._inferred = observations if config.settings().task == "binary" else None
        self._endpoints = {
            "/v1/predict": _Endpoint("predict", observations.read, response),
            "/v1/labels": _Endpoint("label", RowReader.of_labels(config).read, response),
        }
        self._knows = lru_cache(maxsize=64)(HostCheck(pages, names).knows)
        self._batcher: Batcher | None = None
        self._clock = ServeClock(None)
        self._open = False
        self.refused = Counter[str]()

    def open(self, durable: DurableProcessor) -> None:
        """Begin to answer, once the state is restored."""
        clock = ServeClock(durable.position)
        self._batcher = Batcher(lambda events: durable.answer(events, clock.position), _WAITING)
        self._clock, self._open = clock, True

    def close(self) -> None:
        """Take no more requests; those that were taken are answered."""
        self._open = False

    @property
    def idle(self) -> bool:
        """Whether all requests that were taken are answered."""
        return self._batcher is None or self._batcher.idle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        endpoint = self._endpoint(scope)
        try:
            if endpoint is None:
                await self._pages(_without_body(scope), receive, _JsonRefusals(scope, send))
                return
            body = await self._answer(endpoint, scope, receive)
        except _Gone:
            return
        except _RefusedRequest as error:
            await _refuse(send, error.status, str(error), *error.headers)
        else:
            await _send(send, 200, body)

    def _endpoint(self, scope: Scope) -> _Endpoint | None:
        """Return the endpoint of a request; None for a page."""
        path: str = scope["path"]
        model = path.removeprefix(_INFER).removesuffix(_INFER_END)
        if path == f"{_INFER}{model}{_INFER_END}" and model and _VERSIONS not in model:
            return _Endpoint(
                "predict",
                partial(infer_rows, self._inferred, model),
                partial(infer_response, model),
            )
        return self._endpoints.get(path)

    async def _answer(self, endpoint: _Endpoint, scope: Scope, receive: Receive) -> bytes:
        headers = scope["headers"]
        if scope["method"] != "POST":
            text = "this path takes POST; see /openapi.json"
            raise _RefusedRequest(405, text, (b"allow", b"POST"), _CLOSE)
        if len(headers) > _FIELDS:
            raise _RefusedRequest(431, "the request has too many header fields", _CLOSE)
        given = dict(headers)
        if not self._knows(given.get(b"host", b"").decode("latin-1")):
            raise _RefusedRequest(403, "not served under this name; add it to http.hosts", _CLOSE)
        if given.get(b"content-type", b"").partition(b";")[0].strip() != _JSON[1]:
            # A page of another site cannot send this header.
            raise _RefusedRequest(415, "send the header content-type: application/json", _CLOSE)
        if not self._tokens.allows(endpoint.kind, headers):
            text = f"no token for {endpoint.kind}; send it as Authorization: Bearer …"
            raise _RefusedRequest(401, text, (b"www-authenticate", b"Bearer"), _CLOSE)
        body = await _body(headers, receive)
        if self._batcher is None or not self._open:
            raise _RefusedRequest(503, "the state is being restored or saved; try again", _AGAIN)
        try:
            rows = endpoint.read(body, self._clock.at(time.time_ns() // 1_000_000))
            self.refused.update(one.reason for one in rows.errors.values())
            return endpoint.write(rows, await self._batcher.answers(rows.events))
        except BadRequestError as error:
            raise _RefusedRequest(error.status, str(error)) from None
        except BusyError:
            raise _RefusedRequest(429, "too many events wait; send less at once", _AGAIN) from None
        except DurabilityError:
            raise _RefusedRequest(503, "the disk failed; send it again", _AGAIN) from None


async def _body(headers: Sequence[tuple[bytes, bytes]], receive: Receive) -> bytes:
    """Return the body of a request."""
    parts: list[bytes] = []
    length = next((value for name, value in headers if name == b"content-length"), b"0")
    size = int(length) if length.isdigit() and len(length) < len(str(_BODY)) + 1 else _BODY + 1
    if size <= _BODY:
        size = 0
        while size <= _BODY:
            message: Any = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if not message.get("more_body"):
                return b"".join(parts)
    text = f"the body has more than {_BODY:,} bytes; send fewer rows"
    raise _RefusedRequest(413, text, _CLOSE)


class _JsonRefusals:
    """Sends the response of a page, but an error 404 or 405 as JSON."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send, self._refused = scope, send, False

    async def __call__(self, message: Message) -> None:
        if self._refused:
            return
        headers = message.get("headers") or ()
        if message.get("status") not in {404, 405} or _JSON in headers:
            await self._send(message)
            return
        self._refused = True
        allow = [one for one in headers if one[0] == b"allow"]
        what = f"{self._scope['method']} {self._scope['path']}: there is no such path"
        if message["status"] == _NOT_ALLOWED:
            what = f"{self._scope['path']} does not take {self._scope['method']}"
        text = f"{what}; see /openapi.json"
        await _refuse(self._send, message["status"], text, *allow, _CLOSE)


def _without_body(scope: Scope) -> Scope:
    """Return a request of another method than GET without its body, which is never read."""
    if scope["method"] in {"GET", "HEAD"}:
        return scope
    kept = [one for one in scope["headers"] if one[0] not in _OF_BODY]
    return {**scope, "headers": kept}


async def _refuse(send: Send, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
    """Send why a request is refused."""
    await _send(send, status, msgspec.json.encode({"error": text}), *headers)


async def _send(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    """Send a response."""
    length = (b"content-length", str(len(body)).encode())
    head = {"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]}
    await send(head)
    await send({"type": "http.response.body", "body": body})

"""The ASGI application of `abers serve`: requests that change the state, and pages for all others.

Bodies, rows and what waits are bounded. A request is answered when its events are on disk.
"""

from __future__ import annotations

import time
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.exceptions import DurabilityError
from abers_connectors.http.middleware import HostCheck
from abers_connectors.serve.batcher import Batcher, BusyError
from abers_connectors.serve.clock import ServeClock
from abers_connectors.serve.inference import infer_response, infer_rows
from abers_connectors.serve.rows import BadRequestError, RowReader, response

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from abers.stream import DurableProcessor
    from abers.stream.durable.answers import EventAnswer
    from abers_connectors.config.model import Config
    from abers_connectors.serve.rows import RequestRows
    from abers_connectors.serve.tokens import ServeTokens

__all__ = ["ServeApplication"]

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
        Of the requests.
    names
        Host names of the server, besides addresses and localhost.
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

    def open(self, durable: DurableProcessor) -> None:
        """Begin to answer, when the state is restored."""
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
        """Return what answers a request; None for a page."""
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
            text = f"no token for this; send Authorization: Bearer … with that for {endpoint.kind}"
            raise _RefusedRequest(401, text, (b"www-authenticate", b"Bearer"), _CLOSE)
        body = await _body(headers, receive)
        if self._batcher is None or not self._open:
            raise _RefusedRequest(503, "the state is being restored or saved; try again", _AGAIN)
        try:
            rows = endpoint.read(body, self._clock.at(time.time_ns() // 1_000_000))
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
    """Sends the response of a page; that there is no such page, or no such method, as JSON."""

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
    """Return a request of another method than GET as if it had no body: none is ever read."""
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

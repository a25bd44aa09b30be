"""Limits of requests, `abers_connectors.http.middleware`, without a socket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from abers_connectors.http.middleware import ChunkedResponse, ConcurrencyLimit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SCOPE: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "headers": []}


async def nothing() -> Message:
    """Receive nothing more."""
    return {"type": "http.disconnect"}


async def asked(app: ASGIApp) -> list[Message]:
    """Call an application, and return its messages."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await app(dict(SCOPE), nothing, send)
    return sent


def test_slots() -> None:
    """Beyond its number of requests an application is busy, until one of them ends."""
    go = asyncio.Event()

    async def waiting(_: Scope, __: Receive, send: Send) -> None:
        await go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def asking() -> list[int]:
        app = ConcurrencyLimit(waiting, 3)
        inside = [asyncio.ensure_future(asked(app)) for _ in range(3)]
        await asyncio.sleep(0)  # they are inside now
        refused = await asked(app)
        assert (b"retry-after", b"10") in refused[0]["headers"]
        go.set()
        answers = [refused, *await asyncio.gather(*inside), await asked(app)]
        return [answer[0]["status"] for answer in answers]

    assert asyncio.run(asking()) == [503, 200, 200, 200, 200]


def test_a_slot_of_what_fails() -> None:
    """An application that fails releases its slot."""

    async def failing(_: Scope, __: Receive, ___: Send) -> None:
        raise OSError

    async def asking() -> None:
        app = ConcurrencyLimit(failing, 1)
        for _ in range(3):
            (answer,) = await asyncio.gather(asked(app), return_exceptions=True)
            assert isinstance(answer, OSError)

    asyncio.run(asking())


def test_others_are_served_between_pieces() -> None:
    """A large response leaves the event loop to others after each chunk."""
    turns: list[str] = []

    async def send(_: Message) -> None:
        turns.append("piece")

    async def other() -> None:
        while turns.count("piece") < 6:
            turns.append("other")
            await asyncio.sleep(0)

    async def both() -> None:
        answer = ChunkedResponse(bytes(4 << 16))
        await asyncio.gather(answer(dict(SCOPE), nothing, send), other())

    asyncio.run(both())
    assert turns.count("other") >= 4


def test_pieces() -> None:
    """A large body arrives whole, in chunks that fit into a buffer."""
    body = bytes(range(256)) * 1_000
    head, *pieces = asyncio.run(asked(ChunkedResponse(body, media_type="text/plain")))
    assert (b"content-length", b"256000") in head["headers"]
    assert b"".join(piece["body"] for piece in pieces) == body
    assert max(len(piece["body"]) for piece in pieces) == 1 << 16
    assert [piece.get("more_body", False) for piece in pieces] == [True] * 4 + [False]

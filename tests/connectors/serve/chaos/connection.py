"""An HTTP client that can be rude: it sends parts of requests, and leaves before the answer."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, NamedTuple

__all__ = ["Answer", "Connection", "request"]

_PATIENCE = 30.0  # seconds
_JSON = "application/json"


class Answer(NamedTuple):
    """Status and body of a response."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - as JSON has it
        """The body as JSON."""
        return json.loads(self.body)


def request(
    path: str, body: bytes, token: str = "", *, kind: str = _JSON, length: int | None = None
) -> bytes:
    """Return the bytes of a request."""
    given = f"authorization: Bearer {token}\r\n" if token else ""
    size = len(body) if length is None else length
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {kind}\r\n{given}"
    return f"{head}content-length: {size}\r\n\r\n".encode() + body


class Connection:
    """A connection to a port of this machine, which is opened when it is needed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, data: bytes) -> asyncio.StreamReader:
        """Send bytes, and return the stream of what comes back."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(data)
        await writer.drain()
        return reader

    async def ask(self, data: bytes) -> Answer:
        """Send a request, and return its answer; an OSError is raised if there is none."""
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._answer(await self.send(data))
        except (OSError, EOFError, asyncio.IncompleteReadError) as error:
            self.leave()
            raise ConnectionError(str(error)) from None

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        head = (await reader.readuntil(b"\r\n\r\n")).lower().decode("latin-1").split("\r\n")
        fields = dict(line.partition(": ")[::2] for line in head[1:-2])
        body = await reader.readexactly(int(fields["content-length"]))
        if fields.get("connection") == "close":
            self.leave()
        return Answer(int(head[0].split()[1]), body)

    def leave(self) -> None:
        """Close the connection at once, without a word."""
        if self._streams is not None:
            with suppress(OSError):
                self._streams[1].transport.abort()
            self._streams = None

"""The least that a server of predictions does: `python -m benchmarks.bare_server`.

uvicorn takes the requests of `abers serve`, decodes each, and answers with as many fixed
predictions; nothing is calibrated or kept. It reports its port as `abers serve` does.
"""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import uvicorn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Message = dict[str, Any]

_HEADERS = [(b"content-type", b"application/json")]
_DECODE = msgspec.json.Decoder(list[dict[str, Any]]).decode
_ENCODE = msgspec.json.Encoder().encode


async def app(
    _: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Answer a request."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    events = _DECODE(body)
    answer = _ENCODE([{"id": one["id"], "p0": 0.3, "p1": 0.4, "p": 0.35} for one in events])
    size = str(len(answer)).encode()
    headers = [*_HEADERS, (b"content-length", size)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def main() -> None:
    """Serve until the process is ended."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        sys.stderr.write(f"http://127.0.0.1:{bound.getsockname()[1]};\nready\n")
        sys.stderr.flush()
        config = uvicorn.Config(app, lifespan="off", log_level="error", access_log=False)
        uvicorn.Server(config).run(sockets=[bound])


if __name__ == "__main__":
    main()

"""A web hook for tests: a real server, and the requests that it received."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["SECRET", "Listener", "Posted", "listening"]

SECRET = "/services/T0/s3cr3t"  # noqa: S105 - it is to be looked for


class Posted(NamedTuple):
    """A request that a server received."""

    path: str
    kind: str | None
    body: bytes


class Listener(NamedTuple):
    """A server: its address, and the requests that it received."""

    url: str
    heard: Queue[Posted]


@contextmanager
def listening(answers: Sequence[int] = ()) -> Iterator[Listener]:
    """Serve a web hook, which gives these answers first, and then 204."""
    codes, heard = iter(answers), Queue[Posted]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.put(Posted(self.path, self.headers["Content-Type"], body))
            code = next(codes, 204)
            self.send_response(code)
            if code == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815 - what a redirection would lead to

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Listener(f"http://127.0.0.1:{server.server_port}{SECRET}", heard)
        server.shutdown()
        thread.join()

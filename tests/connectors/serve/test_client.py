"""The client of examples/serving: it repeats requests until they are answered, or for so long."""

from __future__ import annotations

import http.server
import sys
import threading
import time
from typing import TYPE_CHECKING, ClassVar

import pytest
from tests.conftest import ROOT
from tests.connectors.serve.running import Running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

sys.path.append(str(ROOT / "examples" / "serving"))
from serve_client import ServeClient


def test_a_client_across_a_restart(tmp_path: Path) -> None:
    """A client whose server ends gets its answer from the next server at this address."""
    with Running(tmp_path / "state") as first:
        client, port = ServeClient(first.address.geturl()), str(first.address.port)
        made = client.predict([{"id": "a", "score": 0.5}])
        first.process.kill()
        first.ended()
    found: list[object] = []
    asking = threading.Thread(
        target=lambda: found.extend(client.predict([{"id": "a", "score": 0.5}]))
    )
    asking.start()
    with Running(tmp_path / "state", port=port):
        asking.join(60)
        assert found == made
        assert client.label([{"id": "a", "label": 1}]) == [{"id": "a", "status": "learned"}]
        with pytest.raises(RuntimeError, match=r"/v1/predict: 413: .*10,001 rows are too many"):
            client.predict([{"id": "x"}] * 10_001)


class Proxy(http.server.BaseHTTPRequestHandler):
    """Answers in turn what a list has: a status, or None to break off."""

    answers: ClassVar[list[int | None]] = []
    came: ClassVar[list[float]] = []

    def do_POST(self) -> None:
        """Answer a request."""
        self.rfile.read(int(self.headers["content-length"]))
        self.came.append(time.monotonic())
        status = self.answers.pop(0)
        if status is None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[")
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("retry-after", "1")
        self.end_headers()
        self.wfile.write(b"[]" if status == 200 else b"<html>busy</html>")

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def proxy() -> Iterator[str]:
    """Return the address of a server that answers as `Proxy.answers` has it."""
    with http.server.HTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Proxy.came.clear()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_answers_that_break_off(proxy: str) -> None:
    """A client repeats what breaks off, waits as it is asked to, and reads no page of a proxy."""
    Proxy.answers[:] = [None, 429, 502, 200]
    assert ServeClient(proxy).predict([]) == []
    came = Proxy.came
    assert len(came) == 4
    assert min(came[2] - came[1], came[3] - came[2]) >= 1.0


def test_patience_ends(proxy: str) -> None:
    """A client gives up when its patience ends, and says what it was answered."""
    Proxy.answers[:] = [503]
    with pytest.raises(RuntimeError, match="/v1/labels: 503: <html>busy</html>"):
        ServeClient(proxy, patience=0.5).label([])

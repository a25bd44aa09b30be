"""A running `abers serve`, and a client of it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["Reply", "Running", "command"]

PATIENCE = 60.0
JSON = {"content-type": "application/json"}


class Reply(NamedTuple):
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - as JSON has it
        """The body."""
        return json.loads(self.body)


def command(
    data: Path, *words: str, port: str = "0", program: Sequence[str] = ("abers_connectors",)
) -> list[str]:
    """Return the command of a server; its program is a module, and perhaps words of it."""
    start = [sys.executable, "-m", *program, "serve", *words]
    return [*start, "--data", str(data), "--port", port]


class Running:
    """`abers serve` as a process of its own, in a `with` block."""

    def __init__(
        self,
        data: Path,
        *words: str,
        environ: Mapping[str, str] | None = None,
        port: str = "0",
        program: Sequence[str] = ("abers_connectors",),
    ) -> None:
        """Start it, and wait until it is ready."""
        self.process = subprocess.Popen(
            command(data, *words, port=port, program=program),
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environ or {})},
        )
        assert self.process.stderr is not None
        self.said: list[str] = []
        for line in self.process.stderr:
            self.said.append(line)
            if line.startswith("ready"):
                self.said += islice(self.process.stderr, 2)  # what may be tried
                break
        first = self.said[0].split(";")[0] if self.said else ""
        self.address = urlsplit(first.rpartition(" ")[2])

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it if it runs."""
        self.process.kill()
        self.ended()

    def ask(
        self,
        path: str,
        body: object = None,
        headers: Mapping[str, str] = JSON,
    ) -> Reply:
        """Return the response to a request: with a body, a POST."""
        connection = http.client.HTTPConnection(self.address.netloc, timeout=PATIENCE)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            verb = "GET" if data is None else "POST"
            connection.request(verb, path, data, {**headers})
            found = connection.getresponse()
            return Reply(found.status, dict(found.getheaders()), found.read())
        finally:
            connection.close()

    def predict(self, *rows: object) -> Any:  # noqa: ANN401 - as JSON has it
        """Return the answers to rows."""
        return self.ask("/v1/predict", [*rows]).json

    def label(self, *rows: object) -> list[str]:
        """Return the statuses of labels."""
        return [one.get("status") for one in self.ask("/v1/labels", [*rows]).json]

    def terminate(self) -> int:
        """Ask it to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        """Wait for its end; return its exit code."""
        _, rest = self.process.communicate(timeout=PATIENCE)
        self.said += (rest or "").splitlines(keepends=True)
        return self.process.returncode

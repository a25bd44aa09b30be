"""A bucket on moto's S3 server, behind a proxy that injects faults."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.request import Request, urlopen

import fsspec
from tests.connectors.kafka.brokers import PATIENCE

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from pathlib import Path

__all__ = ["Bucket", "Kind", "Proxy", "free_port"]

Kind: TypeAlias = Literal["refuse", "hang", "slow"]

_HOST = "127.0.0.1"
_NAME = "soak"
_PIECE = 1 << 22  # bytes: a snapshot comes through a slow bucket in a few pieces
_DELAY = (
    1.2  # seconds by which a slow bucket delays a piece: no request takes the 5 s of a time-out
)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as one:
        one.bind((_HOST, 0))
        return int(one.getsockname()[1])


class Proxy:
    """Passes TCP connections on to a port, in a thread of its own.

    Parameters
    ----------
    target
        The port.

    Attributes
    ----------
    port
        Port on which it listens.
    """

    def __init__(self, target: int) -> None:
        """Start to listen."""
        self._target = target
        self._fault: Kind | None = None
        self.port = free_port()
        self._loop = asyncio.new_event_loop()
        self._writers: set[StreamWriter] = set()
        self._passing = asyncio.Event()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        started = asyncio.start_server(self._connected, _HOST, self.port, limit=_PIECE)
        asyncio.run_coroutine_threadsafe(started, self._loop).result()
        self.inject(None)

    def inject(self, fault: Kind | None) -> None:
        """Begin a fault, or end it: refuse connections, hold what they carry back, or delay it."""
        asyncio.run_coroutine_threadsafe(self._inject(fault), self._loop).result()

    async def _inject(self, fault: Kind | None) -> None:
        self._fault = fault
        if fault == "hang":
            self._passing.clear()
        else:
            self._passing.set()
        if fault == "refuse":
            for one in self._writers:
                one.transport.abort()

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        if self._fault == "refuse":
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection(_HOST, self._target, limit=_PIECE)
        ends = {writer, back}
        self._writers |= ends
        try:
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
        finally:
            self._writers -= ends

    async def _pass(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(_PIECE):
                await self._passing.wait()
                if self._fault == "slow":
                    await asyncio.sleep(_DELAY)
                writer.write(piece)
                await writer.drain()
        with suppress(OSError):
            writer.close()


class Bucket:
    """A bucket, which a process of its own keeps in memory.

    Attributes
    ----------
    url
        URL of the bucket; the variables of the environment lead through the proxy.
    proxy
        The proxy in front of it.
    """

    def __init__(self, folder: Path) -> None:
        """Start the server, and make the bucket."""
        port = free_port()
        self._address = f"http://{_HOST}:{port}"
        with (folder / "bucket.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", _HOST, "-p", str(port)],
                stdout=log,
                stderr=log,
            )
        self._make()
        self.proxy, self.url = Proxy(port), f"s3://{_NAME}"
        os.environ |= {
            "AWS_ACCESS_KEY_ID": "soak",
            "AWS_SECRET_ACCESS_KEY": "soak",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{_HOST}:{self.proxy.port}",
        }
        self._files: Any = fsspec.filesystem("s3", endpoint_url=self._address)

    def _make(self) -> None:
        request = Request(f"{self._address}/{_NAME}", method="PUT")  # noqa: S310 - ours
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with urlopen(request, timeout=10):  # noqa: S310 - ours
                    return
            except OSError:  # it starts
                assert self._process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def ages(self, now: float) -> dict[str, float]:
        """Return the age of the newest snapshot of each partition in seconds, past the proxy."""
        self._files.invalidate_cache()
        found: dict[str, float] = {}
        for name, one in self._files.find(_NAME, detail=True).items():
            partition, _, file = name.rpartition("/")
            if file.endswith(".abers"):
                age = now - one["LastModified"].timestamp()
                found[partition] = min(age, found.get(partition, age))
        return found

    def download(self, folder: Path) -> None:
        """Copy all snapshots to a folder, past the proxy."""
        self._files.invalidate_cache()
        self._files.get(_NAME, str(folder), recursive=True)

    def close(self) -> None:
        """Stop proxy and server."""
        self.proxy.close()
        self._process.terminate()
        self._process.wait()

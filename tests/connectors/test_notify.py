"""What systemd is told, over a real socket of its kind."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from abers_connectors.notify import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(params=["path", "abstract"])
def line(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[socket.socket]:
    """Listen as systemd does, under a path or a name of no file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        path = str(tmp_path / "s") if request.param == "path" else f"\0abers{os.getpid()}"
        listening.bind(path)
        listening.settimeout(0.0)
        yield listening


def address(line: socket.socket) -> str:
    """Give the address as systemd writes it."""
    name: str | bytes = line.getsockname()
    return f"@{name[1:].decode()}" if isinstance(name, bytes) else name


def heard(line: socket.socket) -> list[bytes]:
    """Give all that was said."""
    said = []
    while True:
        try:
            said.append(line.recv(1000))
        except BlockingIOError:
            return said


def test_what_is_told(line: socket.socket) -> None:
    """Each thing is a message of its own, in the words of sd_notify."""
    supervisor = Supervisor({"NOTIFY_SOCKET": address(line)})
    supervisor.say("restoring\nscores[3]")
    supervisor.ready()
    supervisor.stopping()
    assert heard(line) == [b"STATUS=restoring scores[3]", b"READY=1", b"STOPPING=1"]


def test_signs_of_life(line: socket.socket) -> None:
    """A sign of life is sent when half of the time is over that systemd waits, however often."""
    now = [5.0]
    environ = {"NOTIFY_SOCKET": address(line), "WATCHDOG_USEC": "60000000"}
    supervisor = Supervisor(environ, clock=lambda: now[0])
    for now[0] in (5.0, 6.0, 34.9, 35.0, 36.0, 70.0):
        supervisor.alive()
    assert heard(line) == [b"WATCHDOG=1"] * 3


@pytest.mark.parametrize(
    "more", [{}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}]
)
def test_no_sign_is_wanted(line: socket.socket, more: dict[str, str]) -> None:
    """Without a watchdog of systemd, or with that of another process, there is no sign."""
    supervisor = Supervisor({"NOTIFY_SOCKET": address(line), **more})
    supervisor.alive()
    assert heard(line) == []


def test_our_own_watchdog(line: socket.socket) -> None:
    """A watchdog that names this process is for it."""
    environ = {"NOTIFY_SOCKET": address(line), "WATCHDOG_USEC": "1"}
    Supervisor(environ | {"WATCHDOG_PID": str(os.getpid())}).alive()
    assert heard(line) == [b"WATCHDOG=1"]


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/no/such"}])
def test_nobody_listens(environ: dict[str, str]) -> None:
    """Where nobody listens nothing happens."""
    supervisor = Supervisor(environ | {"WATCHDOG_USEC": "1"})
    for tell in (supervisor.ready, supervisor.alive, supervisor.stopping):
        tell()


def test_nobody_reads(tmp_path: Path) -> None:
    """A listener that does not read holds nothing up."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "s"))
        tell: Callable[[], None] = Supervisor({"NOTIFY_SOCKET": str(tmp_path / "s")}).ready
        for _ in range(10_000):
            tell()

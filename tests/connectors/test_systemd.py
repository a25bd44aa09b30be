"""Notifications to systemd, over a real socket."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from abers_connectors.process import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(params=["path", "abstract"])
def line(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[socket.socket]:
    """Listen as systemd does, on a path or an abstract socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        path = str(tmp_path / "s") if request.param == "path" else f"\0abers{os.getpid()}"
        listening.bind(path)
        listening.settimeout(0.0)
        yield listening


def address(line: socket.socket) -> str:
    """Return the address as systemd writes it."""
    name: str | bytes = line.getsockname()
    return f"@{name[1:].decode()}" if isinstance(name, bytes) else name


def received(line: socket.socket) -> list[bytes]:
    """Return all messages so far."""
    messages = []
    while True:
        try:
            messages.append(line.recv(1000))
        except BlockingIOError:
            return messages


def test_notifications(line: socket.socket) -> None:
    """Each notification is one message, in the format of sd_notify."""
    supervisor = Supervisor({"NOTIFY_SOCKET": address(line)})
    supervisor.say("restoring\nscores[3]")
    supervisor.ready()
    supervisor.stopping()
    assert received(line) == [b"STATUS=restoring scores[3]", b"READY=1", b"STOPPING=1"]


def test_watchdog_messages(line: socket.socket) -> None:
    """The watchdog is reset once per half timeout, however often `alive` is called."""
    now = [5.0]
    environ = {"NOTIFY_SOCKET": address(line), "WATCHDOG_USEC": "60000000"}
    supervisor = Supervisor(environ, clock=lambda: now[0])
    for now[0] in (5.0, 6.0, 34.9, 35.0, 36.0, 70.0):
        supervisor.alive()
    assert received(line) == [b"WATCHDOG=1"] * 3


@pytest.mark.parametrize(
    "more", [{}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}]
)
def test_no_watchdog(line: socket.socket, more: dict[str, str]) -> None:
    """Without a watchdog, or with that of another process, nothing is sent."""
    supervisor = Supervisor({"NOTIFY_SOCKET": address(line), **more})
    supervisor.alive()
    assert received(line) == []


def test_our_own_watchdog(line: socket.socket) -> None:
    """A watchdog with the id of this process is reset."""
    environ = {"NOTIFY_SOCKET": address(line), "WATCHDOG_USEC": "1"}
    Supervisor(environ | {"WATCHDOG_PID": str(os.getpid())}).alive()
    assert received(line) == [b"WATCHDOG=1"]


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/no/such"}])
def test_nobody_listens(environ: dict[str, str]) -> None:
    """Without a listener nothing is sent and nothing fails."""
    supervisor = Supervisor(environ | {"WATCHDOG_USEC": "1"})
    for notify in (supervisor.ready, supervisor.alive, supervisor.stopping):
        notify()


def test_nobody_reads(tmp_path: Path) -> None:
    """A listener that does not read blocks nothing."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "s"))
        notify: Callable[[], None] = Supervisor({"NOTIFY_SOCKET": str(tmp_path / "s")}).ready
        for _ in range(10_000):
            notify()

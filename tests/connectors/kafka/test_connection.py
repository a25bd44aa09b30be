"""Connections to brokers of which one hangs."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from abers_connectors.kafka import connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.connectors.kafka.brokers import Broker

OPENERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "admin": connection.new_admin,
    "admin, with errors of abers": connection.open_admin,
    "consumer": lambda settings: closing(connection.new_consumer(settings)),
    "producer": lambda settings: closing(connection.new_producer(settings, "none")),
}


class Hanging(threading.Thread):
    """A server that accepts connections and never answers."""

    def __init__(self) -> None:
        """Listen."""
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.accepted: list[socket.socket] = []

    @property
    def address(self) -> str:
        """Host and port."""
        host, port = self.listener.getsockname()
        return f"{host}:{port}"

    def run(self) -> None:
        """Accept, until the listener is closed."""
        while True:
            try:
                self.accepted.append(self.listener.accept()[0])
            except OSError:
                return


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    """Return a server that hangs."""
    server = Hanging()
    server.start()
    yield server
    server.listener.shutdown(socket.SHUT_RDWR)
    server.listener.close()
    for one in server.accepted:
        one.close()


@pytest.mark.parametrize("name", OPENERS)
def test_a_broker_that_hangs_keeps_no_client_from_another(
    name: str, broker: Broker, hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that tries the one that hangs first finds the other one."""
    monkeypatch.setattr(connection, "_ATTEMPT", 500)
    settings = {"bootstrap_servers": [hanging.address, *broker.bootstrap.split(",")]}
    while not hanging.accepted:  # the client draws its first broker
        with OPENERS[name](settings) as client:
            assert client is not None


def test_clients_are_opened_in_one_place() -> None:
    """No other module opens a client, which would wait for a broker that hangs."""
    package = Path(connection.__file__).parents[1]
    modules = [one for one in package.rglob("*.py") if one != Path(connection.__file__)]
    assert [one for one in modules if re.search(r"\bKafka\w+\(\*", one.read_text())] == []

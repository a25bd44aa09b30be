"""What librdkafka's statistics and log say of its connections."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ConnectionWatch", "Heartbeat"]

_log = logging.getLogger("librdkafka")
_COORDINATOR = "GroupCoordinator"  # the connection of a consumer to the coordinator of its group
_CONNECTED = "in state UP"  # of a connection that was lost


class _Broker(msgspec.Struct):
    """A broker in the statistics."""

    state: str
    disconnects: int
    rxidle: int  # microseconds since it last answered; -1 if it never did


class _Statistics(msgspec.Struct):
    """The part of the statistics that is used."""

    ts: int  # microseconds by the monotonic clock
    brokers: dict[str, _Broker]


_decode = msgspec.json.Decoder(_Statistics).decode


class Heartbeat:
    """When the coordinator of a consumer's group last answered, by the monotonic clock."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def take(self, statistics: str) -> None:
        """Take statistics of the consumer, however late."""
        found = _decode(statistics)
        coordinator = found.brokers.get(_COORDINATOR)
        if coordinator is not None and coordinator.rxidle >= 0:
            # The clock of librdkafka is another on systems without a monotonic clock.
            at = min((found.ts - coordinator.rxidle) / 1e6, time.monotonic())
            self.last = max(self.last, at)


class ConnectionWatch:
    """Whether a client has lost a connection, and its log.

    The log tells of a lost connection at once. It is silent about one that nobody had used for a
    minute, and about a broker that is no longer part of the cluster: of these the statistics tell.
    """

    def __init__(self) -> None:
        self.lost = False
        self._connected = set[str]()

    def log(self, level: int, text: str, *words: object) -> None:
        """Log a line of the client, as a `logging.Logger` does."""
        _log.log(level, text, *words)
        if _CONNECTED in (text % words if words else text):
            self.lost = True

    def take(self, statistics: str) -> None:
        """Take statistics of the client."""
        brokers: Mapping[str, _Broker] = _decode(statistics).brokers
        connected = {name for name, one in brokers.items() if one.state == "UP"}
        if any(one.disconnects for one in brokers.values()) or not self._connected <= connected:
            self.lost = True
        self._connected = connected

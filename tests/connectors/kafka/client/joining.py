"""Members and writers of the tests, and what they wait for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from abers_connectors.kafka.client import Group, Transactions

if TYPE_CHECKING:
    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.kafka.transport import Membership
    from abers_connectors.kafka.watchdog import Watchdog

__all__ = ["member", "out_of_reach", "settled", "writer"]

SESSION = 300  # seconds: no machine is so slow that a member seems to be gone meanwhile


def member(
    broker: Broker, watchdog: Watchdog, instance: str, *topics: str, session: float = SESSION
) -> Group:
    """Join a group that is named after the first topic."""
    return Group(
        topics,
        f"group-of-{topics[0]}",
        instance,
        session=session,
        settings=broker.client,
        watchdog=watchdog,
    )


def writer(broker: Broker, watchdog: Watchdog, topic: str, timeout: float = 10) -> Transactions:
    """Make a producer that is named after its topic."""
    return Transactions(
        f"id-{topic}",
        topics=[topic],
        group=f"group-of-{topic}",
        timeout=timeout,
        compression="lz4",
        settings=broker.client,
        watchdog=watchdog,
    )


def out_of_reach(client: Any) -> None:  # noqa: ANN401 - has no types
    """Cut the connection to a coordinator, to which the client then makes none for a second."""
    done = threading.Event()

    def cut() -> None:
        for node in [*client._manager._conns]:  # noqa: SLF001 - only its own thread may do that
            if str(node).startswith("coordinator"):
                client.close(node)
                for _ in range(5):
                    client._manager.update_backoff(node)  # noqa: SLF001
        done.set()

    client._net.call_soon_threadsafe(cut)  # noqa: SLF001
    assert done.wait(60)


def settled(*groups: Group, owned: int) -> list[Membership]:
    """Poll until the members own so many partitions together, each some."""
    while True:
        for one in groups:
            one.poll(0.05, 500)
        found = [one.membership() for one in groups]
        count = sum(len(one.assigned) for one in found)
        if count == owned and all(one.proof and one.assigned for one in found):
            return found

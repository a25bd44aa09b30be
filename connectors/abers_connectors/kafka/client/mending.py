"""What is mended of kafka-python (3.0.12), so that a process outlives a broker.

Governing rule: a request of a transaction is answered, or sent again to whoever coordinates now,
and nobody asks without a pause. Only a call that a client makes of itself is changed, and only in
the client at hand.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kafka import errors as told
from kafka.future import Future

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["mended", "unhurried"]

_AGAIN = 0.02  # seconds until the brokers are asked again who coordinates a transaction
_PAUSE = 0.1  # seconds until they are asked again who coordinates a group

# Each says that there is no answer, of which some had the client give up for good.
_UNANSWERED = (told.RequestTimedOutError, told.NodeNotReadyError, told.Cancelled)


def mended(producer: Any) -> Any:  # noqa: ANN401 - has no types
    """Change how a producer reaches its coordinators.

    Parameters
    ----------
    producer
        A client that has begun nothing yet.

    Returns
    -------
    KafkaProducer
        The same one.
    """
    client = producer._sender._client  # noqa: SLF001 - there is no other way
    client.await_ready = _told(client.await_ready)
    client.send = _lost(client.send)
    return producer


def unhurried(consumer: Any) -> Any:  # noqa: ANN401 - has no types
    """Have a consumer pause where the brokers still name a coordinator that is gone.

    It asks them again at once otherwise, and warns each time: hundreds of times a second, until
    another broker coordinates.

    Parameters
    ----------
    consumer
        A client that has a group.

    Returns
    -------
    KafkaConsumer
        The same one.
    """
    coordinator = consumer._coordinator  # noqa: SLF001 - there is no other way
    ask = coordinator._send_group_coordinator_request  # noqa: SLF001

    async def asked() -> object:
        node = await ask()
        if coordinator._client.connection_delay(node) > 0:  # noqa: SLF001
            await coordinator._net.sleep(_PAUSE)  # noqa: SLF001
        return node

    coordinator._send_group_coordinator_request = asked  # noqa: SLF001
    return consumer


def _told(await_ready: Callable[..., bool]) -> Callable[..., bool]:
    """Say that a node is not ready, where the client would raise it.

    What is raised makes the client drop the request, and whoever waits for its answer waits for
    ever; of a node that is not ready it finds out who coordinates now, and asks that one.
    """

    def ready(node: object, timeout_ms: float) -> bool:
        with suppress(told.KafkaConnectionError):
            return await_ready(node, timeout_ms)
        time.sleep(_AGAIN)
        return False

    return ready


def _lost(send: Callable[..., Future]) -> Callable[..., Future]:
    """Have every request that is not answered fail as one whose connection was lost.

    Such a one the client sends again. A broker tells by its sequence number what it has already,
    and what it has decided of a transaction it tells as often as it is asked.
    """

    def sent(node: object, request: object, **more: object) -> Future:
        answer = Future()

        def fail(error: Exception) -> None:
            unanswered = isinstance(error, _UNANSWERED)
            answer.failure(told.KafkaConnectionError(str(error)) if unanswered else error)

        send(node, request, **more).add_callback(answer.success).add_errback(fail)
        return answer

    return sent

"""What the tests of the client have at hand."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from abers_connectors.kafka.client import Log
from abers_connectors.kafka.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.connectors.kafka.brokers import Broker


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    """Give a watchdog that nothing here should wake."""
    one = Watchdog(60, pytest.fail)
    yield one
    one.close()


@pytest.fixture
def reader(broker: Broker, watchdog: Watchdog) -> Iterator[Callable[[str], Log]]:
    """Read beside the group that is named after a topic."""
    with ExitStack() as stack:

        def made(topic: str) -> Log:
            log = Log(f"group-of-{topic}", settings=broker.client, watchdog=watchdog)
            stack.callback(log.close)
            return log

        yield made

"""`abers state rescale`: the number of partitions of an application with routers changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.connectors.kafka.clients import on_each_client
from tests.connectors.kafka.rescaling import RescaledApplication, stream

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran
    from tests.connectors.kafka.brokers import Broker

    Invoke = Callable[..., Ran]
    Start = Callable[..., subprocess.Popen[bytes]]


def totals(invoke: Invoke, application: RescaledApplication) -> dict[str, int]:
    """Return the accounts of all partitions together, which add up."""
    ran = invoke("state", "verify", application.written(), "--json")
    assert ran.code == 0, ran.err
    found: dict[str, int] = json.loads(ran.out)["total"]
    return found


def rescale(invoke: Invoke, application: RescaledApplication, partitions: int) -> None:
    """Bring an application to so many partitions: its accounts stay as they are."""
    before = totals(invoke, application)
    ran = invoke("state", "rescale", application.written(), "--partitions", str(partitions))
    assert ran.code == 0, ran.err
    application.generation += 1
    assert application.topic("routed") in ran.out
    assert totals(invoke, application) == before
    lists = json.loads(invoke("state", "list", application.written(), "--json").out)
    assert [one["partition"] for one in lists] == [*range(partitions)]


@on_each_client
def test_more_and_fewer(
    broker: Broker, tmp_path: Path, start: Start, invoke: Invoke, client: str
) -> None:
    """Each model goes on with what it has learned, to the bit, in 4, 7 and 3 partitions."""
    application = RescaledApplication(broker, tmp_path, start)
    application.use(client)
    first, second, third = stream(1800, (3, 2)).cut(60, 120)
    application.serve(first)
    rescale(invoke, application, 7)
    application.serve(second)
    rescale(invoke, application, 3)
    application.serve(third)
    application.require(application.outputs(application.routed([1, 2, 3])))

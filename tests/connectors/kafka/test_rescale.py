"""`abers state rescale`: the number of partitions of an application with routers changes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.connectors.conftest import in_a_line
from tests.connectors.kafka.clients import on_each_client
from tests.connectors.kafka.rescaling import RescaledApplication, Stream, stream

from abers.exceptions import BrokerError
from abers_connectors.errors import CONFIG, USAGE
from abers_connectors.kafka.assembly import open_worker
from abers_connectors.kafka.generations import generation_in_use, require_generation
from abers_connectors.process import Supervisor
from abers_connectors.runtime.status import ROUTER, TASKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.conftest import Ran
    from tests.connectors.kafka.brokers import Broker

    from abers_connectors.runtime.status import Stage

    Invoke = Callable[..., Ran]
    Start = Callable[..., subprocess.Popen[bytes]]

KILLED = Path(__file__).with_name("killed_rescale.py")


def totals(invoke: Invoke, application: RescaledApplication) -> dict[str, int]:
    """Return the accounts of all partitions together, which add up."""
    ran = invoke("state", "verify", application.written(), "--json")
    assert ran.code == 0, ran.err
    found: dict[str, int] = json.loads(ran.out)["total"]
    return found


def rescale(invoke: Invoke, application: RescaledApplication, partitions: int) -> None:
    """Bring an application to so many partitions: its accounts stay as they are."""
    before, application.kafka["route_by"] = totals(invoke, application), "model"
    ran = invoke("state", "rescale", application.written(), "--partitions", str(partitions))
    assert ran.code == 0, ran.err
    application.generation += 1
    assert application.topic("routed") in ran.out
    assert totals(invoke, application) == before
    lists = json.loads(invoke("state", "list", application.written(), "--json").out)
    assert [one["partition"] for one in lists] == [*range(partitions)]
    application.kafka["partitions"] = partitions + 1
    checked = invoke("check", application.written(), "--connect")
    del application.kafka["partitions"]
    hint = f"topic {application.topic('routed')} has {partitions}, as before"
    assert hint in in_a_line(checked.out + checked.err)


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


def test_from_partitions_of_the_inputs(
    broker: Broker, tmp_path: Path, start: Start, invoke: Invoke
) -> None:
    """An application that ran without routers goes on with them, from its committed offsets.

    When the brokers have deleted the offsets of its group, its changelog says what is in use.
    """
    application = RescaledApplication(broker, tmp_path, start, (4, 4))
    first, second = stream(1200, (4, 4), by_model=True).cut(60)
    del application.kafka["route_by"]
    application.serve(first)
    records = application.merged()
    rescale(invoke, application, 3)
    application.serve(second)
    application.require(application.outputs(records + application.routed([2])))
    with broker.admin() as admin:
        admin.delete_groups([application.name])
    assert generation_in_use(application.config()).number == 2


@pytest.mark.parametrize("stage", [ROUTER, TASKS])
def test_a_process_of_an_earlier_generation(
    broker: Broker, tmp_path: Path, start: Start, invoke: Invoke, stage: Stage
) -> None:
    """A process that found the state before it was rescaled, and joins after that, ends with 75."""
    application = RescaledApplication(broker, tmp_path, start)
    application.serve(stream(50, (3, 2)))
    config = application.config()
    old = generation_in_use(config)
    rescale(invoke, application, 2)
    with (
        pytest.raises(BrokerError, match="is of generation 2, and this process of 1"),
        open_worker(
            old.config,
            old.application,
            None,
            Supervisor({}),
            stage=stage,
            require_generation=partial(require_generation, config, old.number),
        ) as worker,
    ):
        worker.run()


def test_kills(broker: Broker, tmp_path: Path, start: Start, invoke: Invoke) -> None:
    """Killed at any step, the command has changed nothing or all, and is repeated."""
    application = RescaledApplication(broker, tmp_path, start)
    first, second = stream(1200, (3, 2)).cut(60)
    application.serve(first)
    before, config = totals(invoke, application), application.written()
    for step in count(1):
        words = [sys.executable, str(KILLED), str(step), config, "3"]
        ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert totals(invoke, application) == before
        if not ran.returncode:
            break
        assert ran.returncode == -signal.SIGKILL, ran.stderr
    assert "3 partitions already" in ran.stdout
    assert step > 10
    application.generation = generation_in_use(application.config()).number
    application.serve(second)
    application.require(application.outputs(application.routed([1, application.generation])))


def test_a_lost_topic_of_routers(
    broker: Broker, tmp_path: Path, start: Start, invoke: Invoke
) -> None:
    """Without the topic of the last generation, none goes on with the state before it."""
    application = RescaledApplication(broker, tmp_path, start)
    first, second = stream(100, (3, 2)).cut(5)
    application.serve(first)
    rescale(invoke, application, 2)
    application.serve(second)
    with broker.admin() as admin:
        routed, group = application.topic("routed"), application.name
        admin.delete_topics([routed])
        application.until(  # the coordinator forgets them a little later
            lambda: routed not in {one.topic for one in admin.list_group_offsets([group])[group]}
        )
    for words in (["state", "list"], ["state", "rescale", "--partitions", "3"], ["run"]):
        ran = invoke(*words, application.written())
        assert ran.code == CONFIG
        assert f"has no offsets on {application.topic('routed')}" in in_a_line(ran.err)


def refused(invoke: Invoke, application: RescaledApplication, partitions: int = 3) -> str:
    """Return why the command does nothing; no topic is left of it."""
    ran = invoke("state", "rescale", application.written(), "--partitions", str(partitions))
    assert ran.code == CONFIG, ran.out
    with application.broker.admin() as admin:
        assert f"{application.name}.routed-2" not in admin.list_topics()
    return in_a_line(ran.err)


def test_refusals(broker: Broker, tmp_path: Path, start: Start, invoke: Invoke) -> None:
    """The command says why it does nothing: what runs, what is left to read, what does not fit."""
    application = RescaledApplication(broker, tmp_path, start)
    first, second = stream(300, (3, 2)).cut(20)
    application.serve(first)
    ran = invoke("state", "rescale", application.written(), "--partitions", "4")
    assert ran.code == 0
    assert "has 4 partitions already; nothing was changed" in ran.out
    for wrong in ("0", "4097"):
        ran = invoke("state", "rescale", application.written(), "--partitions", wrong)
        assert ran.code == USAGE
        assert "from 1 to 4,096" in in_a_line(ran.err)

    path = application.state.pop("path")
    assert "state.path: name the folder or URL of the snapshots" in refused(invoke, application)
    application.state["path"] = path
    del application.kafka["route_by"]
    assert "kafka.route_by: missing" in refused(invoke, application)
    application.kafka["route_by"] = "model"
    application.sections["calibrator"] = {"window": 77}
    assert "window" in refused(invoke, application)
    del application.sections["calibrator"]

    application.produce(second)
    with application.run("--stage", "router") as process:
        application.until(lambda: len(application.read("routed")) == 600, process)
        said = refused(invoke, application)
        assert f"the group of {application.name}-router has members" in said
        application.stop(process)
    assert "run `abers run CONFIG --stage tasks` until it has read all" in refused(
        invoke, application
    )
    application.serve(Stream([], []), "--stage", "tasks")
    rescale(invoke, application, 3)


def test_other_settings_where_snapshots_have_it_all(
    broker: Broker, tmp_path: Path, start: Start, invoke: Invoke
) -> None:
    """Settings other than those of the state are refused, also if no state has to be loaded."""
    application = RescaledApplication(broker, tmp_path, start)
    first, _ = stream(100, (3, 2)).cut(5)
    application.serve(first)
    rescale(invoke, application, 2)  # whose snapshots stand where their changelogs begin
    application.sections["calibrator"] = {"window": 77}
    ran = invoke("state", "rescale", application.written(), "--partitions", "3")
    assert ran.code == CONFIG, ran.out
    assert "window was None and is 77" in in_a_line(ran.err)


def test_a_model_of_several_states(
    broker: Broker, tmp_path: Path, start: Start, invoke: Invoke
) -> None:
    """Without routers a model may have a calibrator in each partition, and these do not join."""
    application = RescaledApplication(broker, tmp_path, start, (4, 4))
    del application.kafka["route_by"]
    first = stream(100, (4, 4))
    labels = [
        one._replace(partition=observation.partition)
        for one in first.labels
        for observation in first.observations
        if json.loads(one.value or b"")["id"] == json.loads(observation.value or b"")["id"]
    ]
    application.serve(Stream(first.observations, labels))
    application.kafka["route_by"] = "model"
    said = refused(invoke, application)
    assert "has a calibrator in each of states" in said
    assert "with kafka.route_by, which learns from the inputs" in said

"""`abers state`: the status of a state, and the replacement of a lost one."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from kafka.admin import ConfigResource, ConfigResourceType
from tests.connectors.conftest import in_a_line
from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.brokers import PATIENCE, Message
from tests.connectors.kafka.streams import labels_of, observations, oracle

from abers_connectors.runtime.application import RecordCounts
from abers_connectors.runtime.snapshots import SnapshotStore

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran
    from tests.connectors.kafka.brokers import Broker
    from tests.connectors.kafka.streams import Record

    from abers.stream import Processor

    Invoke = Callable[..., Ran]

OBSERVATIONS = observations(400, PARTITIONS)
LABELS = labels_of(OBSERVATIONS)
HALF = OBSERVATIONS[200].time


@pytest.fixture
def served(broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]) -> Served:
    """Create an application with half of a stream in its topics."""
    found = Served(broker, tmp_path, start)
    found.produce(*_part(0, HALF))
    return found


def _part(since: int, until: int) -> tuple[list[Record], list[Record]]:
    both = (OBSERVATIONS, LABELS)
    first, second = ([one for one in part if since <= one.time < until] for part in both)
    return first, second


def lose(served: Served) -> None:
    """Remove the snapshots, and the changelog from which they could be restored."""
    snapshots = SnapshotStore(str(served.folder / "state"), served.app)
    with served.log() as look:
        served.cut("changelog", look.ends(served.topics["changelog"]))
    for number in range(PARTITIONS):
        snapshots.remove(number)


def listed(invoke: Invoke) -> list[dict[str, Any]]:
    """Return the output of `abers state list`."""
    ran = invoke("state", "list", "abers.toml", "--json")
    assert ran.code == 0, ran.err
    found: list[dict[str, Any]] = json.loads(ran.out)
    return found


def test_what_there_is(served: Served, invoke: Invoke) -> None:
    """The status of every partition is shown: without a state, with one, and with damage."""
    first = listed(invoke)
    assert [one["partition"] for one in first] == [0, 1]
    assert {offset for one in first for offset in one["committed"].values()} == {None}
    assert {one["restore"].partition(":")[0] for one in first} == {"nothing"}

    served.configure(snapshot_every=100)
    served.serve()
    lists = listed(invoke)
    with served.log() as look:
        for one in lists:
            number = one["partition"]
            assert [*one["committed"].values()] == [
                look.log.offset_range(part).end
                for part in look.application.input_partitions(number)
            ]
            assert (one["start"], one["end"]) == tuple(
                look.log.offset_range(look.application.changelog_partition(number))
            )
    newest = lists[0]["snapshots"][0]
    assert newest["unfit"] is None
    assert lists[0]["restore"].startswith(f"snapshot {newest['name']} and the changelog from @")

    for one in lists[0]["snapshots"]:
        with open(one["name"], "r+b") as file:  # noqa: PTH123 - a file to be spoilt
            file.truncate(one["size"] // 2)
    damaged = listed(invoke)
    assert all(one["unfit"] for one in damaged[0]["snapshots"])
    assert damaged[0]["restore"] == "the changelog from its beginning"
    ran = invoke("state", "list", "abers.toml")
    assert ran.code == 0
    assert "bytes: not to be used: " in ran.out
    assert "a restore starts from the changelog from its beginning" in ran.out


def test_a_lost_state_is_derived_anew(served: Served, invoke: Invoke) -> None:
    """The rebuilt state is the lost one, nothing is published, and the service continues."""
    served.serve()
    lose(served)
    code, err = served.refused()
    assert code == 78
    assert "abers state rebuild CONFIG --from-inputs" in err
    assert "no snapshot can be used" in listed(invoke)[0]["restore"]
    published = served.broker.consume(served.topics["predictions"])

    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs")
    assert ran.code == 0, ran.err
    assert len(served.broker.consume(served.topics["predictions"])) == len(published)
    settings = served.config().settings()
    processors, _ = oracle(*_part(0, HALF), settings, PARTITIONS)
    with served.log() as look:
        tasks = look.tasks()
    for task, processor in zip(tasks, processors, strict=True):
        assert task.processor.state_bytes() == processor.state_bytes()
        assert task.checkpoint.batch == 1  # nothing of the changelog is left to go on from

    served.produce(*_part(HALF, HALF + 10**9))
    served.serve()
    _, lines = oracle(OBSERVATIONS, LABELS, settings, PARTITIONS)
    found = served.broker.consume(served.topics["predictions"])
    assert sorted((one.timestamp, one.value) for one in found) == lines


def test_a_lost_state_is_derived_since_its_start(served: Served, invoke: Invoke) -> None:
    """Records before `kafka.starting_offset` were not read, and are not learned now either."""
    since = OBSERVATIONS[100].time
    served.configure(f"kafka.starting_offset = {since}")
    served.serve()
    lose(served)
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs")
    assert ran.code == 0, ran.err
    processors, _ = oracle(*_part(since, HALF), served.config().settings(), PARTITIONS)
    with served.log() as look:
        tasks = look.tasks()
    for task, processor in zip(tasks, processors, strict=True):
        assert task.processor.state_bytes() == processor.state_bytes()


def test_one_partition_is_derived_anew(served: Served, invoke: Invoke) -> None:
    """The other partitions stay as they are."""
    served.serve()
    lose(served)
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs", "--partition", "1")
    assert ran.code == 0, ran.err
    snapshots = [[one["unfit"] for one in part["snapshots"]] for part in listed(invoke)]
    assert snapshots == [[], [None]]
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs", "--partition", "2")
    assert ran.code == 2
    assert "there is no partition 2; there are 0 to 1" in in_a_line(ran.err)


def test_inputs_without_their_beginning(served: Served, invoke: Invoke) -> None:
    """Truncated inputs are refused, by their offsets, unless they are allowed."""
    served.serve()
    lose(served)
    served.cut("labels", {1: 5})
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs")
    assert ran.code == 78
    assert f"{served.topics['labels']}[1] has @5 to @" in ran.err
    assert "--allow-truncated-input" in ran.err
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs", "--allow-truncated-input")
    assert ran.code == 0, ran.err
    assert "rebuilt from what is left" in ran.out
    served.produce(*_part(HALF, HALF + 10**9))
    served.serve()


def verified(invoke: Invoke) -> dict[str, Any]:
    """Return the sums of `abers state verify`, which must close."""
    ran = invoke("state", "verify", "abers.toml", "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    assert found["unbalanced"] == []
    assert len(found["partitions"]) == PARTITIONS
    total: dict[str, Any] = found["total"]
    return total


def test_every_record_is_accounted_for(served: Served, invoke: Invoke) -> None:
    """Records, events and predictions add up, restored from snapshots, changelog or inputs."""
    junk = [Message(b"{", b"k"), Message(None, b"k"), Message(b"{}", b"k"), Message(b"[]", b"k")]
    served.broker.produce(served.topics["observations"], junk)
    served.configure(snapshot_every=50)
    served.serve()
    first, labels = _part(0, HALF)
    found = verified(invoke)
    assert found["records"] == len(first) + len(labels) + len(junk)
    assert (found["undecodable"], found["tombstones"]) == (3, 1)
    assert (found["observations"], found["labels"]) == (len(first), len(labels))
    assert found["predictions"] == len(first)
    ran = invoke("state", "verify", "abers.toml", "--partition", "0")
    assert [line.split(":")[0].split(" ")[1] for line in ran.out.splitlines()] == [
        *("records", "events", "predictions")
    ]
    for number in range(PARTITIONS):
        SnapshotStore(str(served.folder / "state"), served.app).remove(number)
    assert verified(invoke) == found  # from the changelog alone
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs")
    assert ran.code == 0, ran.err
    assert verified(invoke) == found
    ran = invoke("state", "reset", "abers.toml", "--model", "m0", "--accept-data-loss")
    assert ran.code == 0, ran.err
    assert verified(invoke) == found
    served.produce(*_part(HALF, HALF + 10**9))
    served.serve()
    assert verified(invoke)["records"] == len(OBSERVATIONS) + len(LABELS) + len(junk)
    ran = invoke("state", "reset", "abers.toml", "--accept-data-loss")
    assert ran.code == 0, ran.err
    assert {*verified(invoke).values()} == {0}


def test_accounts_that_do_not_add_up(
    served: Served, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are named by partition, and the exit code is 78."""
    served.serve()
    counts = RecordCounts(records=(1, 0))
    monkeypatch.setattr(RecordCounts, "plus", lambda *_: counts)
    SnapshotStore(str(served.folder / "state"), served.app).remove(0)
    ran = invoke("state", "verify", "abers.toml", "--partition", "0")
    assert ran.code == 78
    assert "partition 0: 1 records: " in ran.err


def test_a_state_is_given_up(served: Served, invoke: Invoke) -> None:
    """The loss is described, and only if it is accepted an empty state replaces the old one."""
    served.configure(snapshot_every=50)
    served.serve()
    with served.log() as look:
        before = [task.checkpoint for task in look.tasks()]
    ran = invoke("state", "reset", "abers.toml")
    assert ran.code == 2
    assert " labels learned, " in ran.err
    assert "add --accept-data-loss" in ran.err
    with served.log() as look:
        assert [task.checkpoint for task in look.tasks()] == before
    ran = invoke("state", "reset", "abers.toml", "--accept-data-loss")
    assert ran.code == 0, ran.err
    with served.log() as look:
        tasks = look.tasks()
    for task, place in zip(tasks, before, strict=True):
        assert sum(task.processor.counters.values()) == 0
        assert (task.checkpoint.batch, task.checkpoint.next_offsets) == (
            place.batch,
            place.next_offsets,
        )
    served.produce(*_part(HALF, HALF + 10**9))
    served.serve()
    assert len(served.broker.consume(served.topics["predictions"])) == len(OBSERVATIONS)


def test_one_model_is_forgotten(served: Served, invoke: Invoke) -> None:
    """One model is reset completely, the others stay, and the service continues."""
    served.configure(snapshot_every=50)
    served.serve()
    with served.log() as look:
        before = [_learned(task.processor) for task in look.tasks()]
    gone = min({model for one in before for model in one})
    ran = invoke("state", "reset", "abers.toml", "--model", "nobody")
    assert ran.code == 2
    assert f"no model nobody is known in these partitions\n  known: {gone}" in ran.err
    ran = invoke("state", "reset", "abers.toml", "--model", gone)
    assert f"all that was learned of {gone}" in ran.err
    assert "add --accept-data-loss" in ran.err
    ran = invoke("state", "reset", "abers.toml", "--model", gone, "--accept-data-loss")
    assert ran.code == 0, ran.err
    with served.log() as look:
        after = [_learned(task.processor) for task in look.tasks()]
    assert after == [
        {model: 0 if model == gone else n for model, n in one.items()} for one in before
    ]
    served.produce(*_part(HALF, HALF + 10**9))
    served.serve()
    assert len(served.broker.consume(served.topics["predictions"])) == len(OBSERVATIONS)


def _learned(processor: Processor) -> dict[str, int]:
    """Return the number of labels that each model has learned."""
    monitors: Any = processor.monitors
    counts = [monitor.calibrated.count for monitor in monitors]
    return {model: n for (model, _), n in zip(processor.keys, counts, strict=True)}


def test_nothing_is_changed_beside_a_member(served: Served, invoke: Invoke) -> None:
    """A member of the group is named and stops the command, also if it was just killed."""
    served.configure('kafka.session_timeout = "300s"')
    served.serve()
    with served.run() as process:
        while True:
            with served.broker.admin() as admin:
                if admin.describe_groups([served.app])[served.app]["members"]:
                    break
        process.kill()
    for words in (("reset", "--accept-data-loss"), ("rebuild", "--from-inputs")):
        ran = invoke("state", words[0], "abers.toml", words[1])
        assert ran.code == 78
        assert f"{served.app}-0: the group of {served.app} has members" in ran.err


@pytest.mark.long
def test_nothing_is_changed_beside_a_member_of_the_consumer_protocol(
    served: Served, invoke: Invoke
) -> None:
    """Members of the other group protocol stop the command too, also if they were just killed."""
    served.configure('kafka.client = "librdkafka"\nkafka.group_protocol = "consumer"')
    with served.run() as process, served.log() as look:
        while not look.drained():
            time.sleep(0.05)
        process.kill()
    ran = invoke("state", "reset", "abers.toml", "--accept-data-loss")
    assert ran.code == 78
    assert f'"consumer": the group of {served.app} has members' in ran.err


def test_partitions_that_were_added_are_refused(served: Served) -> None:
    """The service names the partitions of each topic, as labels would miss observations."""
    with served.broker.admin() as admin:
        admin.create_partitions({served.topics["labels"]: PARTITIONS + 1})
        while True:
            (labels,) = admin.describe_topics([served.topics["labels"]])
            if len(labels["partitions"]) == PARTITIONS + 1:
                break
        admin.wait_for_topics([served.topics["labels"]], timeout_ms=1000 * PATIENCE)
    code, err = served.refused()
    assert (code, "must have equally many partitions" in err) == (78, True)
    assert f"{served.topics['labels']} has {PARTITIONS + 1}" in err


def test_a_changelog_that_forgets_is_refused(served: Served) -> None:
    """A service does not start if its changelog may be deleted; the command to fix it is shown."""
    with served.broker.admin() as admin:
        topic = ConfigResource(
            ConfigResourceType.TOPIC, served.topics["changelog"], {"retention.ms": "1000"}
        )
        admin.alter_configs([topic], incremental=True)
        while "1000" not in str(admin.describe_configs([topic])):
            time.sleep(0.01)
    code, err = served.refused()
    assert (code, "kafka.changelog: topic " in err) == (78, True)
    assert "retention.ms=1000" in err
    assert "kafka-configs.sh --alter" in err


def test_settings_that_were_changed(served: Served, invoke: Invoke) -> None:
    """The service names the changed settings, and the command that rebuilds the state."""
    served.configure(snapshot_every=50)
    served.serve()
    served.configure("calibrator.window = 50", snapshot_every=50)
    code, err = served.refused()
    assert code == 78
    assert "window was None and is 50" in err
    assert "abers state rebuild CONFIG --from-inputs" in err
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs")
    assert ran.code == 0, ran.err
    served.produce(*_part(HALF, HALF + 10**9))
    served.serve()


def test_limits_of_admission_that_were_changed(served: Served) -> None:
    """The service continues from snapshot and changelog if all their records fit."""
    served.configure("limits.max_models = 1", snapshot_every=50)
    served.serve()
    more = [
        one._replace(event=msgspec.structs.replace(one.event, model=f"{one.event.model}-new"))
        for one in _part(HALF, HALF + 10**9)[0]
    ]
    served.configure("limits.max_models = 2", snapshot_every=10**6)  # no more snapshots
    served.produce(more, [])
    served.serve()
    served.configure("limits.max_models = 3", snapshot_every=10**6)
    with served.log() as look:  # a snapshot of 1 model, and a changelog of 2
        assert [len(task.processor.keys) for task in look.tasks()] == [2] * PARTITIONS
    served.configure("limits.max_models = 1", snapshot_every=10**6)
    code, err = served.refused()
    assert code == 78
    said = in_a_line(err)
    assert "the state holds 2 models or segments, and limits.max_models = 1; set limits." in said


def test_words_that_do_not_go_together(served: Served, invoke: Invoke) -> None:
    """Each contradiction is refused with a sentence."""
    ran = invoke("state", "rebuild", "abers.toml")
    assert (ran.code, "--from-inputs" in ran.err) == (2, True)
    ran = invoke("state", "reset", "abers.toml", "--accept-data-loss")
    assert (ran.code, "has no offsets; `abers run` creates" in in_a_line(ran.err)) == (78, True)
    text = (served.folder / "abers.toml").read_text().replace('state.path = "state"', "")
    (served.folder / "abers.toml").write_text(text)
    ran = invoke("state", "reset", "abers.toml", "--accept-data-loss")
    assert (ran.code, "state.path: name the folder" in ran.err) == (78, True)
    (served.folder / "files.toml").write_text(
        'input.observations = "a.csv"\noutput.predictions="b.csv"'
    )
    ran = invoke("state", "list", "files.toml")
    assert ran.code == 78

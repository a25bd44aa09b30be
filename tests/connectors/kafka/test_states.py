"""`abers state`: what there is of a state, and how a lost one is replaced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from kafka.admin import ConfigResource, ConfigResourceType
from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.streams import labels_of, observations, oracle

from abers_connectors.kafka.snapshots import Snapshots

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran
    from tests.connectors.kafka.brokers import Broker
    from tests.connectors.kafka.streams import Record

    from abers.stream import Processor

    Invoke = Callable[..., Ran]

SEEN = observations(400, PARTITIONS)
TOLD = labels_of(SEEN)
HALF = SEEN[200].time


@pytest.fixture
def served(broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]) -> Served:
    """Make an application with half of a stream in its topics."""
    found = Served(broker, tmp_path, start)
    found.produce(*_part(0, HALF))
    return found


def _part(since: int, until: int) -> tuple[list[Record], list[Record]]:
    seen, told = ([one for one in part if since <= one.time < until] for part in (SEEN, TOLD))
    return seen, told


def lose(served: Served) -> None:
    """Remove the snapshots, and the changelog that would do without them."""
    snapshots = Snapshots(str(served.folder / "state"), served.app)
    with served.log() as look:
        served.cut("changelog", look.ends(served.topics["changelog"]))
    for number in range(PARTITIONS):
        snapshots.remove(number)


def listed(invoke: Invoke) -> list[dict[str, Any]]:
    """Give what `abers state list` says."""
    ran = invoke("state", "list", "abers.toml", "--json")
    assert ran.code == 0, ran.err
    found: list[dict[str, Any]] = json.loads(ran.out)
    return found


def test_what_there_is(served: Served, invoke: Invoke) -> None:
    """All is told of every partition, before there is a state, with one, and with damage."""
    first = listed(invoke)
    assert [one["partition"] for one in first] == [0, 1]
    assert {offset for one in first for offset in one["committed"].values()} == {None}
    assert {one["restore"].partition(":")[0] for one in first} == {"nothing"}

    served.configure(every=100)
    served.serve()
    lists = listed(invoke)
    with served.log() as look:
        for one in lists:
            number = one["partition"]
            assert [*one["committed"].values()] == [
                look.log.bounds(part).end for part in look.home.partitions(number)
            ]
            assert (one["start"], one["end"]) == tuple(look.log.bounds(look.home.log(number)))
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
    """It is the one that was lost, nothing is published, and the service goes on from it."""
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
        shards = look.shards()
    for shard, processor in zip(shards, processors, strict=True):
        assert shard.processor.state_bytes() == processor.state_bytes()
        assert shard.place.batch == 1  # nothing of the changelog is left to go on from

    served.produce(*_part(HALF, HALF + 10**9))
    served.serve()
    _, lines = oracle(SEEN, TOLD, settings, PARTITIONS)
    found = served.broker.consume(served.topics["predictions"])
    assert sorted((one.timestamp, one.value) for one in found) == lines


def test_a_lost_state_is_derived_since_its_start(served: Served, invoke: Invoke) -> None:
    """What was not read because it was before `kafka.start` is not learned now either."""
    since = SEEN[100].time
    served.configure(f"kafka.start = {since}")
    served.serve()
    lose(served)
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs")
    assert ran.code == 0, ran.err
    processors, _ = oracle(*_part(since, HALF), served.config().settings(), PARTITIONS)
    with served.log() as look:
        shards = look.shards()
    for shard, processor in zip(shards, processors, strict=True):
        assert shard.processor.state_bytes() == processor.state_bytes()


def test_one_partition_is_derived_anew(served: Served, invoke: Invoke) -> None:
    """The others are left as they are."""
    served.serve()
    lose(served)
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs", "--partition", "1")
    assert ran.code == 0, ran.err
    snapshots = [[one["unfit"] for one in part["snapshots"]] for part in listed(invoke)]
    assert snapshots == [[], [None]]
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs", "--partition", "2")
    assert (ran.code, "there is no partition 2; there are 0 to 1" in ran.err) == (2, True)


def test_inputs_without_their_beginning(served: Served, invoke: Invoke) -> None:
    """They are refused, by their offsets, unless what is left will do."""
    served.serve()
    lose(served)
    served.cut("labels", {1: 5})
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs")
    assert ran.code == 78
    assert f"{served.topics['labels']}[1] has @5 to @" in ran.err
    assert "--since-what-is-there" in ran.err
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs", "--since-what-is-there")
    assert ran.code == 0, ran.err
    assert "derived from what is left" in ran.out
    served.produce(*_part(HALF, HALF + 10**9))
    served.serve()


def test_a_state_is_given_up(served: Served, invoke: Invoke) -> None:
    """What would be lost is told, and only if that is accepted it begins empty where it was."""
    served.configure(every=50)
    served.serve()
    with served.log() as look:
        before = [shard.place for shard in look.shards()]
    ran = invoke("state", "reset", "abers.toml")
    assert ran.code == 2
    assert " labels learned, " in ran.err
    assert "add --accept-loss" in ran.err
    with served.log() as look:
        assert [shard.place for shard in look.shards()] == before
    ran = invoke("state", "reset", "abers.toml", "--accept-loss")
    assert ran.code == 0, ran.err
    with served.log() as look:
        shards = look.shards()
    for shard, place in zip(shards, before, strict=True):
        assert sum(shard.processor.counters.values()) == 0
        assert (shard.place.batch, shard.place.following) == (place.batch, place.following)
    served.produce(*_part(HALF, HALF + 10**9))
    served.serve()
    assert len(served.broker.consume(served.topics["predictions"])) == len(SEEN)


def test_one_model_is_forgotten(served: Served, invoke: Invoke) -> None:
    """Of one model all is forgotten, of the others nothing, and the service goes on."""
    served.configure(every=50)
    served.serve()
    with served.log() as look:
        before = [_learned(shard.processor) for shard in look.shards()]
    gone = min({model for one in before for model in one})
    ran = invoke("state", "reset", "abers.toml", "--model", "nobody")
    assert ran.code == 2
    assert f"no model nobody is known in these partitions; known: {gone}" in ran.err
    ran = invoke("state", "reset", "abers.toml", "--model", gone)
    assert f"all that was learned of {gone}" in ran.err
    assert "add --accept-loss" in ran.err
    ran = invoke("state", "reset", "abers.toml", "--model", gone, "--accept-loss")
    assert ran.code == 0, ran.err
    with served.log() as look:
        after = [_learned(shard.processor) for shard in look.shards()]
    assert after == [
        {model: 0 if model == gone else n for model, n in one.items()} for one in before
    ]
    served.produce(*_part(HALF, HALF + 10**9))
    served.serve()
    assert len(served.broker.consume(served.topics["predictions"])) == len(SEEN)


def _learned(processor: Processor) -> dict[str, int]:
    """Count the labels that each model has learned."""
    monitors: Any = processor.monitors
    counts = [monitor.calibrated.count for monitor in monitors]
    return {model: n for (model, _), n in zip(processor.keys, counts, strict=True)}


def test_nothing_is_changed_beside_a_member(served: Served, invoke: Invoke) -> None:
    """While a service is there it is named, and so it is when it has only just been killed."""
    served.configure('kafka.session_timeout = "60s"')
    served.serve()
    with served.run() as process:
        while True:
            with served.broker.admin() as admin:
                if admin.describe_groups([served.app])[served.app]["members"]:
                    break
        process.kill()
    for words in (("reset", "--accept-loss"), ("rebuild", "--from-inputs")):
        ran = invoke("state", words[0], "abers.toml", words[1])
        assert ran.code == 78
        assert f"{served.app}-0: there are members in the group" in ran.err


def test_partitions_that_were_added_are_refused(served: Served) -> None:
    """The service says which topic has how many, for labels would miss their observations."""
    with served.broker.admin() as admin:
        admin.create_partitions({served.topics["labels"]: PARTITIONS + 1})
        admin.wait_for_topics([served.topics["labels"]])
    code, err = served.refused()
    assert (code, "must have as many partitions" in err) == (78, True)
    assert f"{served.topics['labels']} has {PARTITIONS + 1}" in err


def test_a_changelog_that_forgets_is_refused(served: Served) -> None:
    """A service does not begin where what it writes may be deleted; the command to mend is told."""
    with served.broker.admin() as admin:
        topic = ConfigResource(
            ConfigResourceType.TOPIC, served.topics["changelog"], {"retention.ms": "1000"}
        )
        admin.alter_configs([topic], incremental=True)
    code, err = served.refused()
    assert (code, "kafka.changelog: topic " in err) == (78, True)
    assert "retention.ms=1000" in err
    assert "kafka-configs.sh --alter" in err


def test_settings_that_were_changed(served: Served, invoke: Invoke) -> None:
    """The service names them, and the command that makes a state of the new ones."""
    served.configure(every=50)
    served.serve()
    served.configure("calibrator.window = 50", every=50)
    code, err = served.refused()
    assert code == 78
    assert "window was None and is 50" in err
    assert "abers state rebuild CONFIG --from-inputs" in err
    ran = invoke("state", "rebuild", "abers.toml", "--from-inputs")
    assert ran.code == 0, ran.err
    served.produce(*_part(HALF, HALF + 10**9))
    served.serve()


def test_limits_of_admission_that_were_changed(served: Served) -> None:
    """The service goes on from snapshot and changelog if all that they hold fits."""
    served.configure("limits.max_models = 1", every=50)
    served.serve()
    more = [
        one._replace(event=msgspec.structs.replace(one.event, model=f"{one.event.model}-new"))
        for one in _part(HALF, HALF + 10**9)[0]
    ]
    served.configure("limits.max_models = 2", every=10**6)  # no more snapshots
    served.produce(more, [])
    served.serve()
    served.configure("limits.max_models = 3", every=10**6)
    with served.log() as look:  # a snapshot of 1 model, and a changelog of 2
        assert [len(shard.processor.keys) for shard in look.shards()] == [2] * PARTITIONS
    served.configure("limits.max_models = 1", every=10**6)
    code, err = served.refused()
    assert code == 78
    assert "the state holds 2 models or segments, and max_models=1; set max_models to 2" in err


def test_words_that_do_not_go_together(served: Served, invoke: Invoke) -> None:
    """Each is refused with a sentence."""
    ran = invoke("state", "rebuild", "abers.toml")
    assert (ran.code, "--from-inputs" in ran.err) == (2, True)
    ran = invoke("state", "reset", "abers.toml", "--accept-loss")
    assert (ran.code, "has no offsets; `abers run` begins" in ran.err) == (78, True)
    text = (served.folder / "abers.toml").read_text().replace('state.path = "state"', "")
    (served.folder / "abers.toml").write_text(text)
    ran = invoke("state", "reset", "abers.toml", "--accept-loss")
    assert (ran.code, "state.path: name the place" in ran.err) == (78, True)
    (served.folder / "files.toml").write_text(
        'input.observations = "a.csv"\noutput.predictions="b.csv"'
    )
    ran = invoke("state", "list", "files.toml")
    assert ran.code == 78

"""`abers replay` of topics: the outputs of a service, without any effect on it."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from kafka import TopicPartition
from tests.connectors.dashboard.pages import Listening, tiles
from tests.connectors.kafka.brokers import PATIENCE, Message
from tests.connectors.kafka.streams import START, labels_of, observations, oracle, written
from tests.connectors.keys import KEY

from abers.stream import Processor
from abers_connectors.config.model import load
from abers_connectors.kafka.client import PartitionReader
from abers_connectors.kafka.topic_history import TopicHistory
from abers_connectors.process import Watchdog
from abers_connectors.replay.run import Pace
from abers_connectors.runtime.application import Application, Checkpoint, RecordCounts
from abers_connectors.runtime.batches import MergedRecords
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.reprocessor import InputReprocessor
from abers_connectors.runtime.restore import InitialState
from abers_connectors.runtime.serializer import Serializer
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.task import StreamTask, encode
from abers_connectors.secret import read_key

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran
    from tests.connectors.kafka.brokers import Broker
    from tests.connectors.kafka.streams import Record

    from abers_connectors.config.model import Config

    Invoke = Callable[..., Ran]

PARTITIONS = 3


class Stage:
    """Topics with a stream in them, and their configuration."""

    def __init__(
        self,
        broker: Broker,
        folder: Path,
        observations: list[Record],
        labels: list[Record],
        partitions: int = PARTITIONS,
    ) -> None:
        self.broker, self.folder = broker, folder
        self.topics = broker.create_all(partitions)
        broker.produce(self.topics["observations"], written(observations))
        broker.produce(self.topics["labels"], written(labels))
        self.configure()

    def configure(self, more: str = "") -> None:
        """Write the configuration."""
        lines = [f'{name} = "{topic}"' for name, topic in self.topics.items()]
        text = f'[kafka]\nbootstrap_servers = "{self.broker.bootstrap}"\nmax_records = 37\n'
        (self.folder / "abers.toml").write_text("\n".join([text, *lines, more, ""]))

    def config(self) -> Config:
        """Read the configuration."""
        return load(self.folder / "abers.toml")


@pytest.fixture
def stream() -> tuple[list[Record], list[Record]]:
    """Return observations, and labels that come later."""
    seen = observations(300, PARTITIONS)
    return seen, labels_of(seen)


@pytest.fixture
def stage(broker: Broker, tmp_path: Path, stream: tuple[list[Record], list[Record]]) -> Stage:
    """Write a stream into topics."""
    return Stage(broker, tmp_path, *stream)


def test_a_file_is_as_if_all_had_been_processed_in_order(
    stage: Stage, stream: tuple[list[Record], list[Record]], invoke: Invoke
) -> None:
    """Its lines are those of one processor a partition, by time, labels first."""
    ran = invoke("replay", "abers.toml", "--output", "out.jsonl", "--json")
    assert ran.code == 0, ran.err
    _, expected = oracle(*stream, stage.config().settings(), PARTITIONS)
    assert (stage.folder / "out.jsonl").read_bytes().splitlines() == [line for _, line in expected]
    summary = json.loads(ran.out)
    assert (summary["records"], summary["observations"], summary["labels"]) == (600, 300, 300)
    assert summary["dead_letters"] == {}


def test_labels_that_never_come(broker: Broker, tmp_path: Path, invoke: Invoke) -> None:
    """Observations whose labels never come are predicted, and wait at the end."""
    seen = observations(300, PARTITIONS)
    labels = labels_of(seen)[:250]
    stage = Stage(broker, tmp_path, seen, labels)
    ran = invoke("replay", "abers.toml", "--output", "out.jsonl", "--json")
    assert ran.code == 0, ran.err
    _, expected = oracle(seen, labels, stage.config().settings(), PARTITIONS)
    assert (tmp_path / "out.jsonl").read_bytes().splitlines() == [line for _, line in expected]
    summary = json.loads(ran.out)
    assert (summary["observations"], summary["labels"], summary["waiting"]) == (300, 250, [50, 0])
    assert summary["dead_letters"] == {}


def test_a_topic_of_labels_without_any(broker: Broker, tmp_path: Path, invoke: Invoke) -> None:
    """Without any label all observations are predicted, and the table says that none came."""
    seen = observations(60, PARTITIONS)
    Stage(broker, tmp_path, seen, [])
    ran = invoke("replay", "abers.toml", "--output", "out.jsonl")
    assert ran.code == 0, ran.err
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 60
    assert "No label has arrived" in ran.err


def test_predictions_go_to_standard_output_by_default(stage: Stage, invoke: Invoke) -> None:
    """The table goes to standard error; the topic of the service stays empty."""
    ran = invoke("replay", "abers.toml")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 300
    assert "300 predictions, 300 labels" in ran.err
    assert stage.broker.consume(stage.topics["predictions"]) == []


def test_a_topic_keeps_keys_headers_partitions_and_times(
    stage: Stage, stream: tuple[list[Record], list[Record]], invoke: Invoke
) -> None:
    """Predictions equal those of a file, with the times of their observations."""
    target = stage.broker.create("history", PARTITIONS)
    ran = invoke("replay", "abers.toml", "--output", f"kafka:{target}")
    assert ran.code == 0, ran.err
    assert "retention" not in ran.err
    found = stage.broker.consume(target)
    _, expected = oracle(*stream, stage.config().settings(), PARTITIONS)
    assert sorted((one.timestamp, one.value) for one in found) == expected
    of = {one.event.id: one for one in stream[0]}
    for one in found:
        record = of[json.loads(one.value)["id"]]
        assert one.key == record.event.model.encode()
        assert one.headers == [("trace", record.event.id.encode())]
        assert (one.partition, one.timestamp) == (record.partition, record.time)


@pytest.mark.usefixtures("stage")
def test_a_topic_with_short_retention_is_reported(broker: Broker, invoke: Invoke) -> None:
    """A warning says if a topic deletes old records, or changes their time."""
    short = broker.create("short", PARTITIONS, retention_ms="86400000")
    ran = invoke("replay", "abers.toml", "--output", f"kafka:{short}")
    words = " ".join(ran.err.split())
    assert f"{short} deletes records older than 1 day (retention.ms), and the first are of" in words
    assert "2023-11-14T22:13:20.000Z; set retention.ms to -1" in words
    other = broker.create("appended", message_timestamp_type="LogAppendTime")
    ran = invoke("replay", "abers.toml", "--output", f"kafka:{other}")
    assert ran.code == 0
    assert "gives records the time of their writing" in ran.err
    assert len(broker.consume(other)) == 300


def test_nothing_is_written_where_a_service_writes(stage: Stage, invoke: Invoke) -> None:
    """A topic of the service is refused, and so is a missing topic."""
    for name, topic in stage.topics.items():
        ran = invoke("replay", "abers.toml", "--output", f"kafka:{topic}")
        assert ran.code == 2
        assert f"{topic} is kafka.{name}, which belongs to the service" in ran.err
    ran = invoke("replay", "abers.toml", "--output", "kafka:nowhere")
    assert ran.code == 2
    assert "there is no topic nowhere" in ran.err


def test_a_part_of_history(
    stage: Stage, stream: tuple[list[Record], list[Record]], invoke: Invoke
) -> None:
    """Only the part is read; labels of observations before it are no dead letters."""
    stage.configure('[limits]\nlabel_timeout = "30s"\n[output]\nmax_dead_letter_ratio = 0')
    since, until = START + 100_000, START + 200_000
    ran = invoke(
        "replay",
        "abers.toml",
        "--since",
        str(since),
        "--until",
        "2023-11-14T22:16:40Z",
        "--output",
        "out.jsonl",
        "--json",
    )
    assert ran.code == 0, ran.err
    part = [[one for one in records if since <= one.time < until] for records in stream]
    _, expected = oracle(part[0], part[1], stage.config().settings(), PARTITIONS)
    lines = [line for _, line in expected if b"unknown-id" not in line]
    assert (stage.folder / "out.jsonl").read_bytes().splitlines() == lines
    assert len(lines) == 100
    summary = json.loads(ran.out)
    assert summary["dead_letters"] == {}
    assert summary["counters"]["dead:unknown-id"] > 0


@pytest.mark.usefixtures("stage")
def test_a_part_by_offsets(invoke: Invoke) -> None:
    """An offset applies to every partition."""
    ran = invoke(
        "replay", "abers.toml", "--since", "@10", "--until", "@12", "--json", "-o", "x.jsonl"
    )
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["records"] == 2 * 2 * PARTITIONS
    ran = invoke("replay", "abers.toml", "--since", "@ten")
    assert (ran.code, "--since: '@ten' is not an offset" in ran.err) == (2, True)


@pytest.mark.usefixtures("stage")
def test_another_topic_may_be_read(broker: Broker, invoke: Invoke) -> None:
    """The topic of --from replaces the observations, with as many partitions."""
    other = broker.create("other", PARTITIONS)
    broker.produce(other, written(observations(5, PARTITIONS)))
    ran = invoke("replay", "abers.toml", "--from", other, "-o", "x.jsonl", "--json")
    assert json.loads(ran.out)["observations"] == 5
    ran = invoke("replay", "abers.toml", "--from", broker.create("single"))
    assert (ran.code, "both inputs need equally many partitions" in ran.err) == (2, True)


def test_dead_letters_lie_beside_the_predictions(
    stage: Stage, broker: Broker, invoke: Invoke
) -> None:
    """They have topic, partition and offset; too many, or on request one, end the replay."""
    broker.produce(stage.topics["labels"], [Message(b"{nope", b"k", 1)])
    ran = invoke("replay", "abers.toml", "--output", "out.jsonl", "--json")
    assert json.loads(ran.out)["dead_letters"] == {"bad-json": 1}
    (line,) = (stage.folder / "out.jsonl.dead.jsonl").read_text().splitlines()
    dead = json.loads(line)
    assert (dead["topic"], dead["partition"], dead["raw"]) == (stage.topics["labels"], 1, "{nope")
    stage.configure('[output]\non_bad_record = "stop"')
    ran = invoke("replay", "abers.toml", "--output", "other.jsonl")
    assert ran.code == 1
    assert re.search(r"labels-\w+\[1\]@\d+: .*\n  write one JSON object a record", ran.err)
    assert not (stage.folder / "other.jsonl").exists()
    broker.produce(stage.topics["labels"], [Message(b"{nope", b"k", 1, START)] * 500)
    stage.configure("[output]\nmax_dead_letter_ratio = 0.1")
    ran = invoke("replay", "abers.toml", "--output", "other.jsonl")
    assert ran.code == 65
    assert not (stage.folder / "other.jsonl").exists()
    assert (stage.folder / "other.jsonl.dead.jsonl").exists()


def test_the_state_is_saved_for_a_service(
    stage: Stage, stream: tuple[list[Record], list[Record]], invoke: Invoke
) -> None:
    """The saved state has the offsets that follow, and is never replaced."""
    words = ("replay", "abers.toml", "--until", str(START + 200_000), "--output", "out.jsonl")
    ran = invoke(*words, "--save-state", "seed")
    assert ran.code == 0, ran.err
    assert "abers run abers.toml --initial-state seed" in ran.err
    part = [[one for one in records if one.time < START + 200_000] for records in stream]
    settings = stage.config().settings()
    processors, _ = oracle(part[0], part[1], settings, PARTITIONS)
    snapshots = SnapshotStore(str(stage.folder / "seed"), "abers")
    for number, processor in enumerate(processors):
        ((_, blob),) = snapshots.newest(number)
        restored = Processor.restore(blob, settings)
        assert restored.state_bytes() == processor.state_bytes()
        assert restored.waiting[0] > 0
        at, label_at = (sum(one.partition == number for one in records) for records in part)
        assert Checkpoint.from_position(restored.position) == Checkpoint(
            *("abers", number, 0, 0, (at, label_at)),
            counts=RecordCounts(records=(at, label_at)),
            partitions=PARTITIONS,
        )
    ran = invoke(*words, "--save-state", "seed")
    assert (ran.code, "there is a state already" in ran.err) == (2, True)


def test_labels_that_are_late_end_no_replay(broker: Broker, tmp_path: Path, invoke: Invoke) -> None:
    """Labels may come 18,000 records after their observations, and the state is saved."""
    seen, stage = observations(30_000), Stage(broker, tmp_path, [], [], partitions=1)
    large = (one._replace(headers=[("trace", bytes(250))]) for one in written(seen))
    broker.produce(stage.topics["observations"], large, linger_ms=50)
    labels = written(labels_of(seen, late=18_000_000))
    broker.produce(stage.topics["labels"], labels, linger_ms=50)
    ran = invoke("replay", "abers.toml", "-o", "out.jsonl", "--save-state", "seed", "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    assert (summary["observations"], summary["labels"]) == (30_000, 30_000)
    ((_, blob),) = SnapshotStore(str(tmp_path / "seed"), "abers").newest(0)
    assert Checkpoint.from_position(Processor.restore(blob).position).next_offsets == (
        30_000,
        30_000,
    )


def test_a_service_goes_on_where_the_replay_ended(
    stage: Stage, stream: tuple[list[Record], list[Record]], broker: Broker, invoke: Invoke
) -> None:
    """A service from the saved state ends as if it had read all, nothing twice."""
    ran = invoke("replay", "abers.toml", "--until", str(START + 200_000), "--save-state", "seed")
    assert ran.code == 0, ran.err
    config = stage.config()
    snapshots = SnapshotStore(str(stage.folder / "seed"), "abers")
    watchdog = Watchdog(60)
    log = PartitionReader("abers", settings=broker.client, watchdog=watchdog)
    beginning = InitialState(Application.of(config), log, "earliest", snapshots)
    tasks = [beginning.create(number) for number in range(PARTITIONS)]
    log.close()
    watchdog.close()
    names = [stage.topics["observations"], stage.topics["labels"]]
    history = TopicHistory(names, broker.client, timeout=PATIENCE)
    ranges = history.ranges()
    rest = {
        one: part._replace(
            start=tasks[one.partition].checkpoint.next_offsets[names.index(one.topic)]
        )
        for one, part in ranges.items()
    }
    deserializer, serializer = (
        Deserializer(config, partitions=PARTITIONS),
        Serializer(max_bytes=1 << 20),
    )
    for number, which, record in history.read(rest):
        tasks[number].process(MergedRecords([record], [which]), deserializer, serializer)
    history.close()
    processors, _ = oracle(*stream, config.settings(), PARTITIONS)
    for task, processor in zip(tasks, processors, strict=True):
        assert task.processor.state_bytes() == processor.state_bytes()


def test_time_passes_as_it_did(
    stage: Stage, stream: tuple[list[Record], list[Record]], broker: Broker
) -> None:
    """At double speed the last record is due after half of the time; outputs are the same."""
    config, now, slept = stage.config(), [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    history = TopicHistory([stage.topics["observations"]], broker.client, timeout=PATIENCE)
    pace = Pace(2.0, clock=lambda: now[0], sleep=sleep)
    reprocessor = InputReprocessor(config, history, history.ranges(), pace.due)
    batches, shares = [], []
    for batch in reprocessor.batches():
        batches.append(batch)
        shares.append(reprocessor.fraction())
    history.close()
    assert shares == [(row + 1) / 300 for row in range(300)]
    assert now[0] == pytest.approx(299 / 2)
    assert len(batches) == len(stream[0]) == len(slept) + 1
    assert (
        sum(len(part.outputs.predictions) for one in batches for part in one.parts if part.outputs)
        == 300
    )


class Served(Stage):
    """The records of a service: a changelog, and its outputs."""

    def serve(self, *snapshots_at: int) -> list[bytes]:
        """Process all records in batches, as a service does; return the values of predictions."""
        config = self.config()
        history = TopicHistory(
            [self.topics["observations"], self.topics["labels"]],
            self.broker.client,
            timeout=PATIENCE,
        )
        tasks = [
            StreamTask(Processor(config.settings()), Checkpoint("abers", number, 0, 0, (0, 0)))
            for number in range(PARTITIONS)
        ]
        deserializer, serializer = (
            Deserializer(config, partitions=PARTITIONS),
            Serializer(max_bytes=1 << 20),
        )
        reads = [*history.read(history.ranges())]
        history.close()
        values: list[bytes] = []
        changelog: list[Message] = []
        ends = [0] * PARTITIONS
        for first in range(0, len(reads), 50):
            part = reads[first : first + 50]
            if first in snapshots_at:
                self.save(tasks)
            for number, task in enumerate(tasks):
                mine = [one for one in part if one.partition == number]
                if not mine:
                    continue
                taken = MergedRecords([one.record for one in mine], [one.which for one in mine])
                work = task.process(taken, deserializer, serializer)
                values += work.output_records["predictions"].values
                parts = encode(work.changelog_record, 2000)
                changelog += [Message(value, None, number) for value in parts]
                ends[number] += len(parts)
                task.changelog_written(ends[number])
        self.broker.produce(self.topics["changelog"], changelog)
        return values

    def save(self, tasks: list[StreamTask]) -> None:
        """Keep a snapshot of each task."""
        snapshots = SnapshotStore(str(self.folder / "state"), "abers")
        for number, task in enumerate(tasks):
            blob = task.processor.snapshot(msgspec.to_builtins(task.checkpoint))
            snapshots.save(number, task.checkpoint.changelog_offset, blob)

    def cut(self, before: dict[int, int]) -> None:
        """Delete the records of the changelog before some offsets, by partition."""
        with self.broker.admin() as admin:
            admin.delete_records(
                {
                    TopicPartition(self.topics["changelog"], n): offset
                    for n, offset in before.items()
                }
            )


@pytest.fixture
def served(broker: Broker, tmp_path: Path, stream: tuple[list[Record], list[Record]]) -> Served:
    """Write a stream into topics, for a service that keeps snapshots."""
    found = Served(broker, tmp_path, *stream)
    found.configure('[state]\npath = "state"')
    return found


def test_the_changelog_gives_the_same_bytes(
    served: Served, stream: tuple[list[Record], list[Record]], invoke: Invoke
) -> None:
    """The outputs of the service are the same bytes, and so is its state."""
    values = served.serve()
    ran = invoke(
        "replay", "abers.toml", "--from", "changelog", "-o", "out.jsonl", "--save-state", "seed"
    )
    assert ran.code == 0, ran.err
    lines = (served.folder / "out.jsonl").read_bytes().splitlines()
    assert sorted(lines) == sorted(values)
    for model in ("m0", "m1", "m2"):
        mine = f'"{model}"'.encode()
        assert [one for one in lines if mine in one] == [one for one in values if mine in one]
    processors, _ = oracle(*stream, served.config().settings(), PARTITIONS)
    for number, processor in enumerate(processors):
        ((_, blob),) = SnapshotStore(str(served.folder / "seed"), "abers").newest(number)
        assert (
            Processor.restore(blob, served.config().settings()).state_bytes()
            == processor.state_bytes()
        )
        next_offsets = tuple(sum(one.partition == number for one in records) for records in stream)
        assert (
            Checkpoint.from_position(Processor.restore(blob).position).next_offsets == next_offsets
        )


def test_what_a_service_said_comes_again(
    stage: Stage,
    broker: Broker,
    invoke: Invoke,
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    """The changelog of a real service has its predictions, partition by partition."""
    stage.configure("[http]\nenabled = false")
    service = start("run", "abers.toml")
    said: list[Any] = []
    while len(said) < 300 and service.poll() is None:
        said = broker.consume(stage.topics["predictions"])
    service.terminate()
    _, err = service.communicate()
    assert service.returncode == 0, err
    broker.await_transactions(*stage.topics.values())
    ran = invoke("replay", "abers.toml", "--from", "changelog", "--output", "out.jsonl")
    assert ran.code == 0, ran.err
    lines = (stage.folder / "out.jsonl").read_bytes().splitlines()
    for number in range(PARTITIONS):
        mine = [one for one in lines if f'"m{number}"'.encode() in one]
        assert mine == [one.value for one in said if one.partition == number]


def test_a_changelog_goes_into_a_topic(served: Served, broker: Broker, invoke: Invoke) -> None:
    """Predictions have the times of events, and no keys and headers, which it lacks."""
    values = served.serve()
    target = broker.create("again", PARTITIONS)
    ran = invoke("replay", "abers.toml", "--from", "changelog", "--output", f"kafka:{target}")
    assert ran.code == 0, ran.err
    found = broker.consume(target)
    assert sorted(one.value for one in found) == sorted(values)
    assert {(one.key, *one.headers) for one in found} == {(None,)}
    assert all(one.timestamp == json.loads(one.value)["time"] for one in found)


def test_a_part_of_the_changelog_begins_at_a_snapshot(served: Served, invoke: Invoke) -> None:
    """Records since the newest snapshot before the part are applied, and not written."""
    values = served.serve(300, 500)
    snapshots = SnapshotStore(str(served.folder / "state"), "abers")
    stored = sorted(snapshots.stored(), key=lambda one: one.offset)
    starts = {one.partition: one.offset for one in stored[:PARTITIONS]}
    since = max(starts.values()) + 2
    assert since < stored[PARTITIONS].offset  # those of the second time are too new for it
    served.cut(starts)
    counts = []
    for words in ([], ["--since", f"@{since}"]):
        ran = invoke("replay", "abers.toml", "--from", "changelog", "-o", "out.jsonl", *words)
        assert ran.code == 0, ran.err
        lines = (served.folder / "out.jsonl").read_bytes().splitlines()
        for model in (b'"m0"', b'"m1"', b'"m2"'):
            mine = [one for one in lines if model in one]
            assert mine
            assert mine == [one for one in values if model in one][-len(mine) :]
        counts.append(len(lines))
    whole, part = counts
    assert 0 < part < whole < len(values)


def test_a_changelog_without_its_beginning_is_refused(served: Served, invoke: Invoke) -> None:
    """Without a snapshot before it, both offsets are named."""
    served.serve()
    served.cut({0: 2})
    ran = invoke("replay", "abers.toml", "--from", "changelog")
    assert ran.code == 78
    assert "[0] begins at @2, and no state is known" in ran.err
    assert "there is no snapshot" in ran.err


def test_a_snapshot_that_is_damaged_is_passed_over(served: Served, invoke: Invoke) -> None:
    """The damage is named if there is no other snapshot."""
    served.serve()
    served.cut({0: 2})
    SnapshotStore(str(served.folder / "state"), "abers").save(0, 2, b"nothing")
    ran = invoke("replay", "abers.toml", "--from", "changelog")
    assert ran.code == 78
    assert "00002.abers cannot be used" in ran.err


def test_the_state_of_a_learner_is_saved_under_a_key(
    stage: Stage, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a key the replay does not start; with one the service restores the learner."""
    stage.configure('[learner]\n[input.fields]\nx = ["score"]')
    monkeypatch.delenv("ABERS_STATE_KEY", raising=False)
    words = ("replay", "abers.toml", "--output", "out.jsonl", "--save-state", "seed")
    ran = invoke(*words)
    assert (ran.code, "ABERS_STATE_KEY" in ran.err) == (78, True)
    assert not (stage.folder / "out.jsonl").exists()
    monkeypatch.setenv("ABERS_STATE_KEY", KEY)
    assert invoke(*words).code == 0
    ((_, blob),) = SnapshotStore(str(stage.folder / "seed"), "abers").newest(0)
    restored = Processor.restore(
        blob, stage.config().settings(), key=read_key(KEY), owner="the seed of abers[0]"
    )
    assert restored.counters["labels"] > 0


def test_a_changelog_that_is_damaged_is_refused(
    served: Served, broker: Broker, invoke: Invoke
) -> None:
    """The error names the record."""
    served.serve()
    broker.produce(served.topics["changelog"], [Message(b"nothing", None, 1)])
    ran = invoke("replay", "abers.toml", "--from", "changelog")
    assert ran.code == 78
    assert re.search(r"changelog-\w+\[1\]@\d+: ", ran.err)


def page_of(process: subprocess.Popen[bytes]) -> Listening:
    """Read the page whose address a command prints."""
    assert process.stderr is not None
    line = next(line for line in process.stderr if b"live page is at" in line)
    return Listening(line.split()[-1].decode().rstrip("/"))


@pytest.mark.parametrize("from_", ["observations", "changelog"])
def test_a_page_shows_what_came_of_it(
    served: Served,
    stream: tuple[list[Record], list[Record]],
    start: Callable[..., subprocess.Popen[bytes]],
    from_: str,
) -> None:
    """The page has the models of all partitions, and stays after the end until Ctrl-C."""
    values = served.serve()
    words = ("--from", served.topics[from_] if from_ != "changelog" else from_)
    process = start("replay", "abers.toml", "--output", "out.jsonl", "--live", *words)
    with page_of(process) as listening:
        page = listening.page()
        while page["phase"] != "ended":
            page = listening.page()
    lines = (served.folder / "out.jsonl").read_bytes().splitlines()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert b"until Ctrl-C" in err
    assert sorted(lines) == sorted(values)
    assert page["title"] == "abers.toml"
    for name in ("m0", "m1", "m2"):
        assert f">{name}</a>" in page["parts"][":models"]
    found = tiles(page)
    assert found["observations; 100 % of the stream"] == "300"
    assert found["wait for a label"] == "0"
    most = max(Counter(one.event.model for one in stream[1]).values())
    assert f"{most} of 200 labels" in page["parts"]["answers"]


def test_a_page_moves_while_time_passes(
    stage: Stage, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """At the speed of the stream each second has its page, long before the end."""
    process = start("replay", "abers.toml", "--speed", "1x", "--output", "out.jsonl", "--live")
    with page_of(process) as listening:
        seen: list[tuple[str, str]] = []
        while len({count for count, _ in seen} - {"0"}) < 3:
            page = listening.page()
            assert page["phase"] != "ended"
            if page["phase"] == "live":
                seen.append(next((one, name) for name, one in tiles(page).items()))
    process.send_signal(signal.SIGINT)
    process.communicate()
    counts = [int(count) for count, _ in seen]
    assert counts == sorted(counts)
    assert counts[-1] < 300
    assert all("100 % of the stream" not in name for _, name in seen)
    assert not (stage.folder / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--compare", "ivap"), "--compare goes with files"),
        (("--report", "x.html"), "--report goes with files"),
        (("--from", "changelog", "--speed", "2x"), "--speed goes with inputs"),
        (("--speed", "fast"), "is not a speed"),
        (("--since", "noon"), "--since: time 'noon'"),
        (("--since", "7", "--until", "6"), "--until is not after --since"),
        (("--from", "nowhere"), "there is no topic nowhere"),
    ],
)
@pytest.mark.usefixtures("stage")
def test_words_that_do_not_go_together(invoke: Invoke, words: tuple[str, ...], said: str) -> None:
    """Each contradiction is reported before anything is read."""
    ran = invoke("replay", "abers.toml", *words)
    assert (ran.code, said in ran.err) == (2, True), ran.err


def test_a_broker_that_is_not_there(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """The error names the address, and the exit code is to try again."""
    (tmp_path / "abers.toml").write_text(
        '[kafka]\nbootstrap_servers = "127.0.0.1:1"\nobservations = "o"\npredictions = "p"\n'
        'stall_timeout = "2s"\ntransaction_timeout = "1s"\n'
    )
    # In a process of its own: a client that reaches nobody leaves its sockets open.
    process = start("replay", "abers.toml")
    _, err = process.communicate()
    assert (process.returncode, b"no answer from a broker at 127.0.0.1:1" in err) == (75, True), err

"""Each fault alone: how a worker handles it, and that nothing is lost or processed twice."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest
from kafka import (
    KafkaAdminClient,
    KafkaConsumer,
    OffsetAndMetadata,
)
from kafka import (
    TopicPartition as KafkaTopicPartition,
)
from kafka.coordinator.assignors.range import RangePartitionAssignor
from tests.connectors.kafka.brokers import PATIENCE, Message
from tests.connectors.kafka.chaos.application import Application
from tests.connectors.kafka.chaos.campaign import SECTIONS, drained
from tests.connectors.kafka.chaos.judge import committed, history, judge, log_of, order, restored
from tests.connectors.kafka.chaos.members import PATIENT, Member
from tests.connectors.kafka.chaos.nemesis import foreign_transaction, spoil
from tests.connectors.kafka.chaos.traffic import Traffic
from tests.connectors.kafka.chaos.workers import Worker
from tests.connectors.kafka.clients import (
    CLIENTS,
    CONSUMER,
    DEFAULT,
    on_each_classic_client,
    on_each_client,
    on_each_client_at_length,
)

from abers.exceptions import BrokerError, StateError
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

DATA, UNAVAILABLE, CONFIG = 65, 75, 78


@pytest.fixture
def client() -> str:
    """Return the client of a test that does not run on each."""
    return DEFAULT


@pytest.fixture
def apply_(broker: Broker, tmp_path: Path, client: str) -> Callable[..., Application]:
    """Create applications on a client."""

    def made(partitions: int = 1, **sections: dict[str, Any]) -> Application:
        kafka = {**CLIENTS[client], **sections.pop("kafka", {})}
        sections = {**SECTIONS, **sections, "kafka": kafka}
        found = Application(broker, tmp_path, partitions, **sections)
        if client == CONSUMER:  # as PATIENT
            broker.set_session_timeout(found.name, 60)
        return found

    return made


@pytest.fixture
def worker() -> Iterator[Callable[..., Worker]]:
    """Start workers that are not restarted."""
    running: list[Worker] = []

    def started(application: Application, instance: str = "0", **kafka: object) -> Worker:
        keys: dict[str, Any] = {**PATIENT, **kafka}
        running.append(Worker(application, instance, **keys))
        running[-1].wanted = False
        return running[-1]

    yield started
    for one in running:
        if one.process.poll() is None:
            one.kill()
        one.process.wait()


@pytest.fixture
def played() -> Iterator[Callable[..., Traffic]]:
    """Write the records of some observations: all at once, or only the first ones."""
    with ExitStack() as stack:

        def made(
            application: Application, observations: int = 300, first: int = 100_000
        ) -> Traffic:
            traffic = Traffic(application, 1, observations)
            stack.callback(traffic.close)
            traffic.play(first)
            return traffic

        yield made


def finish(application: Application, worker: Callable[..., Worker], traffic: Traffic) -> None:
    """Let a worker process the remaining records, and check the result."""
    last = worker(application, "last", leave_group_on_close=True)
    drained(application)
    last.stop()
    judge(application, traffic.ids, traffic.poison)


# A worker that is put aside


class Wrapped:
    """A producer with a commit of its own."""

    def __init__(self, producer: Any, commit: Callable[[], None]) -> None:  # noqa: ANN401 - the client's
        self._producer, self.commit_transaction = producer, commit

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the producer
        """Return a part of the producer."""
        return getattr(self._producer, name)


@pytest.mark.parametrize("late", [False, True])
@on_each_client
def test_a_worker_paused_between_send_offsets_and_commit(
    late: bool,  # noqa: FBT001 - a parameter of the test
    apply_: Callable[..., Application],
    played: Callable[..., Traffic],
) -> None:
    """Its partition moves, it continues, and its open batch is processed by one of the two.

    The new owner waits for the transaction to end before it uses any offset: in time it is
    committed after all; too late the broker has aborted it.
    """
    application = apply_()
    traffic = played(application)
    timeout = "10s" if late else "60s"
    with Member(application, "paused", max_records=100, transaction_timeout=timeout) as paused:
        paused.turn_until(lambda: application.broker.consume(application.topics["changelog"]) != [])
        moved, restoring, restored_there = (threading.Event() for _ in range(3))
        failed: list[BaseException] = []

        def take_over() -> None:
            try:
                with Member(application, "other") as other:
                    other.before_restore = lambda _: restoring.set()
                    other.turn_until(restoring.is_set)
                    moved.set()
                    other.turn_until(other.at_end)
                    restored_there.set()
            except BaseException as error:  # noqa: BLE001 - raised below
                failed.append(error)
                moved.set()

        thread = threading.Thread(target=take_over)
        producer = paused.producer._producer
        commit = producer.commit_transaction

        def pause() -> None:
            paused.producer._producer = producer
            application.leave("paused")
            thread.start()
            assert restoring.wait(PATIENCE)
            if late:
                assert restored_there.wait(PATIENCE)
            commit()

        paused.producer._producer = Wrapped(producer, pause)
        if late:
            with pytest.raises(BrokerError):
                paused.turn_until(lambda: False)
        else:
            paused.turn_until(lambda: paused.producer._producer is producer)
        thread.join()
    assert not failed, failed
    assert moved.is_set()
    judge(application, traffic.ids, traffic.poison)


@on_each_classic_client
def test_a_restarted_self_fences_the_one_before(
    apply_: Callable[..., Application],
    played: Callable[..., Traffic],
    worker: Callable[..., Worker],
) -> None:
    """Of two processes with the same instance the older one ends, and nothing is done twice."""
    application = apply_(partitions=2)
    traffic = played(application, first=300)
    older = worker(application)
    drained(application)
    older.send(signal.SIGSTOP)
    traffic.play(1_000)
    younger = worker(application)
    drained(application)
    older.send(signal.SIGCONT)
    assert older.ended() == UNAVAILABLE
    younger.stop()
    judge(application, traffic.ids, traffic.poison)


def seats(application: Application) -> dict[str, str]:
    """Return the members' ids from the brokers, by instance."""
    group = application.group()
    assert group is not None
    return group[1]


@on_each_classic_client
def test_an_idle_twin_ends(
    apply_: Callable[..., Application], worker: Callable[..., Worker]
) -> None:
    """Of two processes with the same instance the older ends, even if nothing is to be read.

    The older names the cause, and the younger is the member.
    """
    application = apply_()
    older = worker(application, leave_group_on_close=True)
    older.ready()
    before = seats(application)
    younger = worker(application)
    assert older.ended() == UNAVAILABLE
    assert "another process took the place of this one" in older.said()
    assert "a second process with the same kafka.group_instance_id" in older.said()
    younger.ready()
    after = seats(application)
    assert after.keys() == before.keys()
    assert after != before, "it has a new id"
    younger.stop()
    assert younger.exits == [0]


@on_each_client_at_length
def test_a_stranger_in_the_group_is_reported(
    client: str, apply_: Callable[..., Application]
) -> None:
    """A member that reads one input only takes labels away, which is reported."""
    application = apply_(partitions=2)
    stranger = KafkaConsumer(
        application.topics["labels"],
        **application.broker.client,
        group_id=application.name,
        partition_assignment_strategy=(RangePartitionAssignor,),
    )
    with Member(application, "0") as one, closing(stranger):
        if client == CONSUMER:
            group: Any = one.group
            group._assignment._patience = 1.0  # by default minutes

        def meanwhile() -> bool:
            stranger.poll(10)
            return False

        with pytest.raises(StateError, match=r"partition \d of only one input is assigned"):
            one.turn_until(meanwhile)


# A restore


@on_each_client
def test_a_rebalance_during_a_restore(
    apply_: Callable[..., Application], played: Callable[..., Traffic]
) -> None:
    """A worker that loses a partition during its restore drops it, and nothing is lost."""
    application = apply_(partitions=2)
    traffic = played(application)
    with Member(application, "before", max_records=100) as before:
        before.turn_until(lambda: len(history(application)[0]) > 2)
    application.leave("before")
    with ExitStack() as members:
        one = members.enter_context(Member(application, "one"))
        others: list[Member] = []
        given_up: list[str] = []

        def while_restoring(tick: Callable[[], None]) -> None:
            if given_up:
                return
            # It joins now: a member joins at once, and has its partition before the others restore.
            others.append(members.enter_context(Member(application, "two")))
            deadline = time.monotonic() + PATIENCE
            try:
                while time.monotonic() < deadline:
                    others[0].group.poll(0.05, 1)
                    tick()
            except Exception as error:
                given_up.append(type(error).__name__)
                raise

        one.before_restore = while_restoring
        one.turn_until(lambda: bool(given_up), 2 * PATIENCE)
        assert given_up == ["_RebalancedError"]

        def both_at_end() -> bool:
            others[0].service.turn()
            return one.at_end()

        one.turn_until(both_at_end)
    judge(application, traffic.ids, traffic.poison)


@on_each_client
def test_a_restore_stops_no_other_partition(
    apply_: Callable[..., Application], played: Callable[..., Traffic]
) -> None:
    """While a partition is restored, the records of those that are restored are processed."""
    application = apply_(partitions=2)
    traffic = played(application, first=400)
    with Member(application, "before", max_records=100) as before:
        before.turn_until(before.at_end)
    application.leave("before")
    traffic.play(1_000)
    inputs = [TopicPartition(application.topics[one], 0) for one in ("observations", "labels")]
    with Member(application, "after", max_records=100) as after:
        restores: list[list[int]] = []

        def while_restoring(tick: Callable[[], None]) -> None:
            restores.append(after.service.status.view().restored)
            deadline = time.monotonic() + PATIENCE
            while len(restores) == 2 and not after.at_end(inputs):
                assert time.monotonic() < deadline
                tick()

        after.before_restore = while_restoring
        after.turn_until(after.at_end)
        assert restores == [[], [0]]
    judge(application, traffic.ids, traffic.poison)


def test_an_aborted_batch_during_a_restore(
    apply_: Callable[..., Application], played: Callable[..., Traffic]
) -> None:
    """If a batch of another partition is aborted during a restore, all are restored anew."""
    application = apply_(partitions=2)
    traffic = played(application)
    with Member(application, "0", max_records=100) as one:
        restores: list[int] = []
        commit = one.producer.commit

        def refused(offsets: Mapping[TopicPartition, int], group_metadata: Any) -> None:  # noqa: ANN401
            # Only those of kafka-python can be changed.
            commit(offsets, group_metadata._replace(generation_id=group_metadata.generation_id - 1))

        def while_restoring(tick: Callable[[], None]) -> None:
            restores.append(0)
            if len(restores) == 2:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(one.producer, "commit", refused)
                    while True:
                        tick()

        one.before_restore = while_restoring
        one.turn_until(one.at_end)
        assert len(restores) == 4
        assert one.service.status.view().counts.aborts["tasks"] == 1
    judge(application, traffic.ids, traffic.poison)


@on_each_client_at_length
def test_a_restore_waits_for_a_foreign_transaction(
    apply_: Callable[..., Application], played: Callable[..., Traffic]
) -> None:
    """Records behind an open transaction of another producer are restored all the same."""
    application = apply_()
    traffic = played(application, first=200)
    with Member(application, "0") as one:
        one.turn_until(one.at_end)
        foreign = ExitStack()
        foreign.enter_context(foreign_transaction(application))
        traffic.play(1_000)
        one.turn_until(one.at_end)
        ticks: list[None] = []

        def tick() -> None:
            ticks.append(None)
            if len(ticks) == 5:
                foreign.close()

        hidden = restored(application, 0, None, tick=tick)
        assert len(ticks) >= 5
    assert sum(hidden.checkpoint.next_offsets) == traffic.count
    judge(application, traffic.ids, traffic.poison)


@on_each_client_at_length
def test_a_damaged_newest_snapshot_is_passed_over(
    apply_: Callable[..., Application],
    played: Callable[..., Traffic],
    worker: Callable[..., Worker],
) -> None:
    """The one before it is used, with more of the changelog, and a log line says so."""
    application = apply_(state={"snapshot_every": 100}, kafka={"max_records": 50})
    traffic = played(application)
    one = worker(application)
    drained(application)
    one.stop()
    assert spoil(application.snapshots()) == 1
    damaged = max(application.snapshots().glob("*/*/*.abers"))
    said: list[str] = []
    task = restored(application, 0, application.snapshots(), say=said.append)
    (sentence,) = said
    assert f"{damaged} is skipped" in sentence
    assert sum(task.checkpoint.next_offsets) == traffic.count
    judge(application, traffic.ids, traffic.poison)


# A state that must not be used


@on_each_client_at_length
def test_a_changelog_cut_off_past_every_snapshot_is_refused(
    apply_: Callable[..., Application],
    played: Callable[..., Traffic],
    worker: Callable[..., Worker],
) -> None:
    """The worker ends with 78 and names the offsets of the snapshot and of the log."""
    application = apply_(state={"snapshot_every": 100}, kafka={"max_records": 50})
    played(application)
    one = worker(application, leave_group_on_close=True)
    drained(application)
    one.stop()
    newest = max(application.snapshots().glob("*/*/*.abers"))
    log = KafkaTopicPartition(application.topics["changelog"], 0)
    with log_of(application) as reader:
        end = reader.offset_range(TopicPartition(*log)).end
    assert int(newest.stem) < end
    with KafkaAdminClient(**application.broker.client) as admin:
        admin.delete_records({log: end})
    for name in ("0", "without-snapshots"):
        other = worker(application, name, leave_group_on_close=True)
        assert other.ended() == CONFIG
        # One offset is that of the last transaction's end, which each start tells once more.
    assert f"@{end} to @{end + 1}" in other.said()
    assert f"{log.topic}[0]@{int(newest.stem)}" in one.said()


@on_each_client_at_length
def test_inputs_that_were_made_anew_are_refused(
    apply_: Callable[..., Application],
    played: Callable[..., Traffic],
    worker: Callable[..., Worker],
) -> None:
    """The worker ends with 78, although the new topics have records at the offsets of the old."""
    application = apply_(state={"snapshot_every": 100}, kafka={"max_records": 50})
    traffic = played(application)
    one = worker(application, leave_group_on_close=True)
    drained(application)
    one.stop()
    names = [application.topics[role] for role in ("observations", "labels")]
    with application.broker.admin() as admin:
        admin.delete_topics(names)
        admin.create_topics(
            {name: {"num_partitions": 1, "replication_factor": 1} for name in names}
        )
        admin.wait_for_topics(names, timeout_ms=1000 * PATIENCE)
    for name in names:
        application.broker.produce(name, [Message(b"{}", b"k")] * traffic.count)
    other = worker(application)
    assert other.ended() == CONFIG
    assert f"topic {names[0]} is not the topic that the state has read" in other.said()


def moved(application: Application, offsets: dict[TopicPartition, int]) -> None:
    """Move the committed offsets of the group, which has no member."""
    with KafkaConsumer(
        **application.broker.client, group_id=application.name, enable_auto_commit=False
    ) as consumer:
        there = {KafkaTopicPartition(*one): OffsetAndMetadata(at) for one, at in offsets.items()}
        consumer.assign([*there])
        consumer.commit(there)


@on_each_client_at_length
def test_state_and_offsets_that_disagree_are_refused(
    apply_: Callable[..., Application],
    played: Callable[..., Traffic],
    worker: Callable[..., Worker],
) -> None:
    """Offsets that were moved end the worker with 78; both offsets are named."""
    application = apply_()
    played(application)
    one = worker(application, leave_group_on_close=True)
    drained(application)
    one.stop()
    seen = TopicPartition(application.topics["observations"], 0)
    end = committed(application)[seen][1]
    moved(application, {seen: 17})
    other = worker(application)
    assert other.ended() == CONFIG
    said = other.said()
    assert "state and offsets disagree" in said
    assert f"{seen.topic}[0]: the state has applied all before @{end}" in said
    assert "committed @17" in said


@on_each_client_at_length
def test_offsets_without_a_changelog_are_refused(
    apply_: Callable[..., Application],
    played: Callable[..., Traffic],
    worker: Callable[..., Worker],
) -> None:
    """A worker with committed offsets and no state does not start from nothing: 78."""
    application = apply_()
    played(application)
    inputs = [TopicPartition(application.topics[key], 0) for key in ("observations", "labels")]
    moved(application, dict.fromkeys(inputs, 17))
    one = worker(application)
    assert one.ended() == CONFIG
    assert "the group has committed @17, @17" in one.said()
    assert not application.broker.consume(application.topics["predictions"])


# Ends


@on_each_client_at_length
def test_sigterm_under_load(
    apply_: Callable[..., Application],
    played: Callable[..., Traffic],
    worker: Callable[..., Worker],
) -> None:
    """A worker that is stopped amid a backlog ends with 0 within 10 s; nothing is lost."""
    application = apply_(partitions=2)
    traffic = played(application, 6_000)
    one = worker(application, leave_group_on_close=True, max_records=10)  # so the backlog lasts
    while not any(offset for offset, _ in committed(application).values()):
        assert one.process.poll() is None
    assert one.stop() < 10
    assert one.exits == [0]
    assert any(offset < end for offset, end in committed(application).values())
    finish(application, worker, traffic)


@on_each_client_at_length
def test_an_input_of_which_no_record_can_be_decoded(
    apply_: Callable[..., Application],
    worker: Callable[..., Worker],
) -> None:
    """A worker whose input is wrong ends with 65, also if restarted; its outputs are committed."""
    application = apply_()
    application.broker.produce(
        application.topics["observations"], [Message(b"nonsense", b"k")] * 1_500
    )
    one = worker(application)
    assert one.ended() == DATA
    assert "no record was ever decoded, and 1," in one.said()
    dead_letters = application.broker.consume(application.topics["dead_letters"])
    assert len(dead_letters) == committed(application)[application.topics["observations"], 0][0]
    application.broker.produce(application.topics["observations"], [Message(b"nonsense", b"k")])
    assert worker(application).ended() == DATA


@on_each_client
def test_junk_does_not_end_an_application_that_has_decoded_a_record(
    client: str,  # noqa: ARG001 - of `apply_`
    apply_: Callable[..., Application],
    worker: Callable[..., Worker],
    played: Callable[..., Traffic],
) -> None:
    """However much junk comes after one good record, also after a restart, the service goes on."""
    application = apply_()
    traffic = played(application, 300, 40)
    one = worker(application)
    drained(application)
    one.stop()
    junk = [Message(b"nonsense", b"k")] * 3_000
    application.broker.produce(application.topics["observations"], junk)
    two = worker(application)
    drained(application)
    assert two.process.poll() is None
    traffic.play(100)
    drained(application)
    two.stop()
    assert two.exits == [0]


@on_each_client
def test_a_broker_that_is_gone(
    client: str,
    brokers: Callable[..., Broker],
    tmp_path: Path,
    worker: Callable[..., Worker],
) -> None:
    """A worker whose broker is gone for longer than the watchdog allows ends with 75."""
    application = Application(brokers(), tmp_path, 1, **SECTIONS, kafka=CLIENTS[client])
    one = worker(application, stall_timeout="20s", transaction_timeout="10s", session_timeout="3s")
    application.broker.produce(
        application.topics["observations"],
        [Message(b'{"id": "a", "time": 1700000000000, "score": 0.5}', b"k")],
    )
    drained(application)
    one.ready()
    assert application.broker.process is not None
    application.broker.process.kill()
    application.broker.process.wait()
    one.ready(503)
    assert one.ended() == UNAVAILABLE


@on_each_client_at_length
def test_a_broker_that_hangs(
    client: str, brokers: Callable[..., Broker], tmp_path: Path, worker: Callable[..., Worker]
) -> None:
    """A worker whose broker hangs amid its work is soon not ready, and ends with 75."""
    application = Application(brokers(), tmp_path, 1, **SECTIONS, kafka=CLIENTS[client])
    one = worker(application, stall_timeout="30s", transaction_timeout="20s", session_timeout="3s")
    one.ready()
    seen = Message(b'{"id": "a", "time": 1700000000000, "score": 0.5}', b"k")
    application.broker.produce(application.topics["observations"], [seen] * 20_000)
    with application.broker.hanging():
        one.ready(503)
        assert one.ended() == UNAVAILABLE


# The order of both inputs


def merged(observations: list[Any], labels: list[Any]) -> list[tuple[int, int]]:
    """Merge by time, at the same time the label first; return input and offset."""
    found, seen, labelled = [], [*observations], [*labels]
    while seen or labelled:
        label = bool(labelled) and (not seen or labelled[0].timestamp <= seen[0].timestamp)
        found.append((int(label), (labelled if label else seen).pop(0).offset))
    return found


@pytest.mark.parametrize("count", [600, pytest.param(1_500, marks=pytest.mark.long)])
@on_each_client
def test_a_backlog_is_taken_in_the_order_of_its_times(
    apply_: Callable[..., Application], played: Callable[..., Traffic], count: int
) -> None:
    """For any batch size, predictions are the same bytes, and no label comes early.

    The order is that of a plain merge of both topics by the times of their records.
    """
    said = []
    for most in (7, count // 3, 100_000):
        application = apply_(partitions=2)
        traffic = played(application, count)
        with Member(application, "0", max_records=most) as one:
            one.turn_until(one.at_end)
        judge(application, traffic.ids, traffic.poison)
        read = [
            application.broker.consume(application.topics[key])
            for key in ("observations", "labels", "predictions")
        ]
        for number, changelog in history(application).items():
            seen, labels = ([r for r in rs if r.partition == number] for rs in read[:2])
            assert order(changelog) == merged(seen, labels)
        said.append([(one.partition, one.key, one.value) for one in read[2]])
    assert said[0] == said[1] == said[2]

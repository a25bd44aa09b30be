"""Records on which abers fails: they are found, and are dead letters; all others are processed."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.connectors.kafka.chaos.application import Application
from tests.connectors.kafka.chaos.judge import history, restored
from tests.connectors.kafka.chaos.members import Member
from tests.connectors.kafka.clients import CLIENTS, DEFAULT, on_each_client
from tests.connectors.kafka.streams import labels_of, observations, oracle, written

from abers.exceptions import BrokerError, StateError
from abers.stream import Events, Processor
from abers_connectors.kafka.topic_history import TopicHistory
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.reprocessor import InputReprocessor
from abers_connectors.runtime.serializer import Serializer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

COUNT, PARTITIONS, BATCH = 200, 2, 64
MOST = 9  # failures that find one record of a batch: its size is halved 6 times, and it fails twice


class Faulty:
    """A fault on some observations, in a function that gets them."""

    def __init__(self, whose: type, name: str, patch: pytest.MonkeyPatch) -> None:
        """Replace the function."""
        self.bad: set[str] = set()
        self.error: Callable[[], Exception] = lambda: ValueError("a bug")
        self.together = 1  # of the records that must be in a batch
        self.times = 10**9
        real = getattr(whose, name)

        def faulty(me: Any, *given: Any) -> Any:  # noqa: ANN401 - anything it is
            found = real(me, *given)  # after what it does, so that the state is spoilt
            if self.times and len(self.bad & _ids(*given)) >= self.together:
                self.times -= 1
                raise self.error()
            return found

        patch.setattr(whose, name, faulty)


def _ids(*given: Any) -> set[str]:  # noqa: ANN401 - anything it is
    """Return the ids of observations among the arguments of a function."""
    if given[0] is None:  # no outputs, as of a dead letter
        return set()
    for one in given:
        if isinstance(one, Events):
            return {id_ for id_, label in zip(one.ids, one.labels, strict=True) if not label}
    (records,) = (one for one in given if isinstance(one, list) and hasattr(one[0], "value"))
    events = [json.loads(one.value) for one in records]
    return {one["id"] for one in events if "score" in one}


PLACES = {
    "prepare": (Deserializer, "prepare"),
    "decode": (Deserializer, "decode"),
    "process": (Processor, "process_logged"),
    "serialize": (Serializer, "serialize"),
    "reprocess": (Processor, "process_batch"),
}
SERVED = ["prepare", "decode", "process", "serialize"]


@pytest.fixture
def place() -> str:
    """Return where the fault is, in a test that does not choose."""
    return "process"


@pytest.fixture
def fault(place: str, monkeypatch: pytest.MonkeyPatch) -> Faulty:
    """Return a fault that hits no record yet."""
    return Faulty(*PLACES[place], monkeypatch)


@pytest.fixture
def served(broker: Broker, tmp_path: Path) -> Application:
    """Return an application whose topics have records."""
    return filled(broker, tmp_path, DEFAULT)


def filled(broker: Broker, folder: Path, client: str) -> Application:
    """Return an application on a client whose topics have records."""
    application = Application(broker, folder, PARTITIONS, kafka=CLIENTS[client])
    seen = observations(COUNT, PARTITIONS)
    broker.produce(application.topics["observations"], written(seen))
    broker.produce(application.topics["labels"], written(labels_of(seen)))
    return application


def run(application: Application) -> int:
    """Process all records, and return the number of transactions that were aborted."""
    with Member(application, "0", max_records=BATCH) as member:
        member.turn_until(member.at_end)
        return member.service.status.view().counts.aborts["tasks"]


def require_only(application: Application, bad: set[str], reason: str = "internal-error") -> None:
    """Assert that only these observations are dead letters, and the others are as without them."""
    seen = observations(COUNT, PARTITIONS)
    good = [one for one in seen if one.event.id not in bad]
    _, lines = oracle(good, labels_of(seen), application.config().settings(), PARTITIONS)
    consume = application.broker.consume
    found = [one.value for one in consume(application.topics["predictions"])]
    assert sorted(found) == sorted(line for _, line in lines)
    rows = {
        json.loads(one.value)["id"]: f"{one.topic}[{one.partition}]@{one.offset}"
        for one in consume(application.topics["observations"])
    }
    dead = [json.loads(one.value) for one in consume(application.topics["dead_letters"])]
    dead = [one for one in dead if one["reason"] != "unknown-id"]
    assert sorted(one["where"] for one in dead) == sorted(rows[one] for one in bad)
    assert {one["reason"] for one in dead} == ({reason} if bad else set())
    changelog = history(application)
    in_changelog = [why for part in changelog.values() for one in part for _, why in one.dead]
    assert in_changelog == [reason] * len(bad)
    predicted = sum(
        restored(application, number, None).processor.counters["predictions"]
        for number in range(PARTITIONS)
    )
    assert predicted == COUNT - len(bad)


@pytest.mark.parametrize("place", SERVED)
def test_a_record_that_always_raises_is_a_dead_letter(
    served: Application, fault: Faulty, caplog: pytest.LogCaptureFixture
) -> None:
    """It is found in a few attempts, wherever it raises, and its traceback is in the log once."""
    fault.bad = {"o77"}
    with caplog.at_level(logging.ERROR, "abers_connectors.runtime.batches"):
        assert run(served) <= MOST
    require_only(served, {"o77"})
    (said,) = [one for one in caplog.records if one.name == "abers_connectors.runtime.batches"]
    assert said.exc_info is not None
    assert "abers failed twice on this record alone" in said.getMessage()
    assert said.topic == served.topics["observations"]  # type: ignore[attr-defined] # from `extra`


@on_each_client
def test_several_records_that_raise(
    client: str, broker: Broker, tmp_path: Path, fault: Faulty
) -> None:
    """Each is found, on each client; those of one batch, of its ends, and of two partitions."""
    fault.bad = {"o0", "o1", "o2", "o63", "o64", "o100", "o199"}
    application = filled(broker, tmp_path, client)
    assert run(application) <= len(fault.bad) * MOST
    require_only(application, fault.bad)


def test_records_in_a_row_that_raise_cost_little_each(served: Application, fault: Faulty) -> None:
    """Batches stay small for a while after a record that raised."""
    fault.bad = {f"o{number}" for number in range(60, 80)}
    assert run(served) <= 2 * MOST + 4 * len(fault.bad)
    require_only(served, fault.bad)


@pytest.mark.parametrize("times", [1, 4])
def test_a_transient_error_makes_no_dead_letter(
    served: Application, fault: Faulty, times: int
) -> None:
    """What is raised once or a few times, and not twice by a single record, costs only time."""
    fault.bad, fault.times = {"o77"}, times
    assert run(served) == times
    require_only(served, set())


def test_what_only_records_together_raise_passes(
    served: Application, fault: Faulty, caplog: pytest.LogCaptureFixture
) -> None:
    """No single record is to blame, so none is a dead letter, and the log says so."""
    fault.bad, fault.together = {f"o{number}" for number in range(60, 100)}, 3
    run(served)
    require_only(served, set())
    assert "no single record repeats the error of its batch" in caplog.text


@pytest.mark.parametrize("error", [OSError, MemoryError, ImportError, BrokerError, StateError])
def test_what_is_no_fault_of_a_record_ends_the_process(
    served: Application, fault: Faulty, error: type[Exception]
) -> None:
    """It is raised as it is at the first time, and a restarted process goes on."""
    fault.bad, fault.times, fault.error = {"o77"}, 1, lambda: error("not the record")
    with pytest.raises(error, match="not the record"):
        run(served)
    served.leave("0")
    assert run(served) == 0
    require_only(served, set())


def test_a_process_that_is_replaced_searches_again(served: Application, fault: Faulty) -> None:
    """The search is in memory, so another process begins it anew, and ends it the same way."""
    fault.bad = {"o77"}
    with Member(served, "0", max_records=BATCH) as member:
        member.turn_until(lambda: member.service.status.view().counts.aborts["tasks"] == 4)
    served.leave("0")
    assert run(served) <= MOST
    require_only(served, {"o77"})


def test_an_error_that_does_not_depend_on_the_record_is_raised(
    served: Application, fault: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the dead letter itself cannot be written, the process ends with the error."""

    def broken(*_: object) -> None:
        msg = "no dead letters today"
        raise RuntimeError(msg)

    fault.bad = {"o77"}
    monkeypatch.setattr(Serializer, "dead_letters", broken)
    monkeypatch.setattr(Serializer, "serialize", _serialize_all)
    with pytest.raises(RuntimeError, match="no dead letters today"):
        run(served)


def _serialize_all(me: Serializer, outputs: Any, decoded: Any, records: Any) -> Any:  # noqa: ANN401
    return me.dead_letters(outputs, decoded, records) if decoded.dead else []


@pytest.mark.parametrize("place", ["reprocess"])
@pytest.mark.parametrize("times", [1, 10**9])
def test_inputs_that_are_processed_anew(served: Application, fault: Faulty, times: int) -> None:
    """A replay and a rebuild of the state reject the same records as the service."""
    config, topics = served.config(max_records=BATCH), served.topics
    history = TopicHistory(
        [topics["observations"], topics["labels"]], served.broker.client, timeout=60
    )
    reprocessor = InputReprocessor(config, history, history.ranges())
    fault.bad, fault.times = {"o0", "o77", "o78", "o199"}, times
    batches = [*reprocessor.batches()]
    history.close()
    parts = [part for one in batches for part in one.parts]
    bad = fault.bad if times > 1 else set()
    seen = observations(COUNT, PARTITIONS)
    good = [one for one in seen if one.event.id not in bad]
    processors, lines = oracle(good, labels_of(seen), config.settings(), PARTITIONS)
    found = [
        msgspec.json.encode(row)
        for part in parts
        if part.outputs is not None
        for row in part.outputs.predictions
    ]
    assert sorted(found) == sorted(line for _, line in lines)
    dead = [
        (json.loads(part.records[row].value or b"")["id"], why)
        for part in parts
        if part.decoded is not None
        for row, why, _ in part.decoded.dead
    ]
    assert sorted(dead) == sorted((one, "internal-error") for one in bad)
    assert sum(one.records for one in batches) == 2 * COUNT
    assert reprocessor.fraction() == 1
    for processor, expected in zip(reprocessor.processors, processors, strict=True):
        assert processor.counters == expected.counters

"""Outputs become records that keep the key of their cause, and fit their topic."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka.reads import TIME, TOPICS, Read, turning
from tests.connectors.kafka.works import Sent, sent

from abers.stream import Processor, Settings
from abers.stream.outputs import DeadLetterRecord
from abers_connectors.config.model import load
from abers_connectors.runtime.deserializer import DecodedBatch, Deserializer
from abers_connectors.runtime.serializer import Serializer

if TYPE_CHECKING:
    from abers.stream import Outputs
    from abers_connectors.runtime.transport import Headers

MOST = 1_000_000


def serialized(
    *records: Read,
    processor: Processor | None = None,
    max_bytes: int = MOST,
    publish_from: int | None = None,
    **fields: Any,  # noqa: ANN401
) -> tuple[list[Sent], Outputs | None]:
    """Decode, process and serialize records of one topic."""
    flags = {f"input.fields.{name}": path for name, path in fields.items()}
    config = load(flags=TOPICS | flags, environ={})
    decoded = Deserializer(config, partitions=1).decode(records, [0] * len(records))
    processor = processor or Processor(config.settings())
    outputs = processor.process_batch(decoded.events) if len(decoded.events) else None
    serializer = Serializer(max_bytes=max_bytes, publish_from=publish_from)
    return sent(serializer.serialize(outputs, decoded, records)), outputs


def observed(id_: str, time: int = 5, **more: Any) -> Read:  # noqa: ANN401
    """Return the record of an observation, with key and timestamp by its time."""
    value = json.dumps({"id": id_, "time": time, "score": 0.5, **more}).encode()
    return Read(value, time, f"k{time}".encode(), [("trace", id_.encode())], TIME + time)


def settled(id_: str, time: int = 7) -> Read:
    """Return the record of a label."""
    value = json.dumps({"id": id_, "time": time, "label": 1}).encode()
    return Read(value, time, f"k{time}".encode(), [("trace", b"label")], TIME + time)


def value_of(one: Sent) -> Any:  # noqa: ANN401 - JSON
    """Decode the value of a record."""
    return json.loads(one.value)


def test_outputs_keep_key_headers_and_timestamp() -> None:
    """A prediction has those of its observation, an outcome those of its label."""
    first, last = observed("a"), settled("a")
    (prediction, outcome), _ = serialized(first, last)
    assert prediction[:2] == ("predictions", b"k5")
    assert prediction[3:] == ([("trace", b"a")], TIME + 5, None)
    assert outcome[:2] == ("outcomes", b"k7")
    assert outcome[3:] == ([("trace", b"label")], TIME + 7, None)
    assert value_of(prediction)["v"] == value_of(outcome)["v"] == 1
    assert value_of(outcome)["label"] == 1


def test_of_an_early_label_the_observation_is_the_cause() -> None:
    """An early label's outcome has the key of the observation that settles it."""
    (prediction, outcome), _ = serialized(settled("a", 3), observed("a"))
    assert prediction.key == outcome.key == b"k5"


def test_an_assumed_label_has_no_record_and_no_key() -> None:
    """Its outcome has the timestamp of the record that showed the wait to be over."""
    settings = Settings(label_timeout=10, unlabelled=0, max_jump=1 << 53)
    (_, other, outcome), _ = serialized(
        observed("a"), observed("b", 16), processor=Processor(settings)
    )
    assert (other.key, outcome.sink) == (b"k16", "outcomes")
    assert outcome[1:2] + outcome[3:] == (None, (), TIME + 16, None)
    assert value_of(outcome) | {"id": "a", "label": 0, "assumed": True} == value_of(outcome)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.integers(0, 9)), max_size=9))
def test_each_output_is_the_encoded_row(events: list[tuple[bool, str, int]]) -> None:
    """Values are the rows of the processor, one each, in its order."""
    records = [settled(id_, time) if label else observed(id_, time) for label, id_, time in events]
    found, outputs = serialized(*records)
    rows = [] if outputs is None else [*outputs.predictions, *(outputs.outcomes or ())]
    assert [one.value for one in found] == [msgspec.json.encode(row) for row in rows]


def test_a_processor_without_outcomes() -> None:
    """Without outcomes there are only predictions."""
    found, _ = serialized(observed("a"), settled("a"), processor=Processor(outcomes=False))
    assert [one.sink for one in found] == ["predictions"]


def test_a_record_without_a_timestamp_gives_an_output_without_one() -> None:
    """The broker sets its own time then."""
    (one,), _ = serialized(observed("a")._replace(timestamp=-1))
    assert one.timestamp is None


def test_a_dead_letter_names_its_record() -> None:
    """Topic, partition, offset, reason and detail are in the value and in the headers."""
    bad = Read(b"{caf\xc3\xa9", 41, b"key", [("trace", b"t")], TIME, "scores", 3)
    (one,), _ = serialized(bad)
    assert one[:2] == ("dead_letters", b"key")
    assert (one.timestamp, one.reason) == (TIME, "bad-json")
    dead = value_of(one)
    assert dead.pop("detail").endswith("(JSON has no NaN and no Infinity)")
    origin = {"where": "scores[3]@41", "topic": "scores", "partition": 3, "offset": 41}
    assert dead == {"v": 1, "reason": "bad-json", **origin, "raw": "{café"}
    assert one.headers[0] == ("trace", b"t")
    headers = dict(one.headers[1:])
    assert (headers.pop("abers.detail") or b"").decode() == value_of(one)["detail"]
    origin = {"abers.topic": b"scores", "abers.partition": b"3", "abers.offset": b"41"}
    assert headers == {"abers.reason": b"bad-json", **origin}


def test_bytes_that_are_not_utf8() -> None:
    """A value that is not UTF-8 is in base 64."""
    (one,), _ = serialized(Read(b"\0\xff\x01"))
    assert base64.b64decode(value_of(one)["base64"]) == b"\0\xff\x01"
    assert "raw" not in value_of(one)


def test_dead_letters_come_in_the_order_of_the_records() -> None:
    """Those of the deserializer and of the processor are one sequence."""
    future = observed("f", 10**13)._replace(timestamp=TIME)
    found, _ = serialized(future, Read(b"{", 1), observed("b", score=""), future._replace(offset=3))
    assert [(one.reason, value_of(one)["offset"]) for one in found] == [
        ("time-in-future", 10**13),
        ("bad-json", 1),
        ("missing-field", 5),
        ("time-in-future", 3),
    ]
    assert value_of(found[0])["raw"] == (future.value or b"").decode()


def test_a_label_that_timed_out_has_no_record() -> None:
    """Its dead letter does not name the record that only advanced the clock."""
    processor = Processor(Settings(label_timeout=10, max_jump=2**53))
    serialized(settled("lost", 1), processor=processor)
    prediction, dead = serialized(observed("a", 100), processor=processor)[0]
    assert prediction.sink == "predictions"
    assert (dead.key, dead.reason, dead.timestamp) == (None, "unknown-id", TIME + 100)
    assert {"topic", "partition", "offset"}.isdisjoint(value_of(dead))
    assert json.loads(value_of(dead)["raw"])["id"] == "lost"
    assert [name for name, _ in dead.headers] == ["abers.reason", "abers.detail"]


def test_an_output_that_is_too_large_is_a_dead_letter() -> None:
    """It is cut, has its size, and other outputs are written."""
    extra = "é" * 3000
    found, outputs = serialized(
        observed("a", more=extra), observed("b", more="x"), max_bytes=4000, passthrough=["more"]
    )
    assert outputs is not None
    fine, dead = found
    whole = msgspec.json.encode(outputs.predictions[0])
    assert (fine.sink, value_of(fine)["id"]) == ("predictions", "b")
    assert (dead.sink, dead.reason) == ("dead_letters", "output-too-large")
    assert value_of(dead)["size"] == len(whole)
    assert whole.startswith(value_of(dead)["raw"].encode())
    assert 990 < len(value_of(dead)["raw"].encode()) <= 1000
    assert "the record for predictions has" in value_of(dead)["detail"]
    assert (value_of(dead)["topic"], value_of(dead)["offset"]) == ("scores", 5)


@pytest.mark.parametrize("raw", [b"\1", b"\xff", "aé€".encode(), b"{"])
@pytest.mark.parametrize("beside", [0, 3000, 12_000])
def test_every_dead_letter_fits(raw: bytes, beside: int) -> None:
    """A dead letter of a large record omits what does not fit, and says so."""
    record = Read(raw * 8000, 7, b"k" * beside, [("h", b"h" * beside)])
    (one,), _ = serialized(record, max_bytes=12_000)
    size = (
        len(one.value) + len(one.key or b"") + sum(len(n) + len(v or b"") for n, v in one.headers)
    )
    assert size <= 12_000
    dead = msgspec.json.decode(one.value, type=DeadLetterRecord)
    assert (dead.reason, dead.offset) == ("bad-json" if raw != b"\xff" else "not-utf8", 7)
    head = base64.b64decode(dead.base64) if dead.base64 else (dead.raw or "").encode()
    assert (raw * 8000).startswith(head)
    assert dead.size == len(raw) * 8000 or len(head) == len(raw) * 8000
    assert (("h", b"h" * beside) in one.headers) == (dead.size is None)
    assert (one.key is None) == (beside == 12_000)


def test_publish_from() -> None:
    """Predictions and outcomes of earlier events are left out; dead letters are not."""
    found, _ = serialized(
        observed("a", 5),
        settled("a", 6),
        observed("b", 7),
        settled("b", 8),
        Read(b"{"),
        publish_from=7,
    )
    assert [one.sink for one in found] == ["predictions", "outcomes", "dead_letters"]
    assert [value_of(one)["id"] for one in found[:2]] == ["b", "b"]


def test_an_alarm_names_its_record() -> None:
    """Each alarm is a record with its test, and origin, key and time of its cause."""
    records = turning()
    found, outputs = serialized(*records)
    assert outputs is not None
    ((row, alarm),) = outputs.alarms
    (one,) = (each for each in found if each.sink == "alerts")
    cause = records[row]
    assert one[1:2] + one[3:] == (cause.key, cause.headers, cause.timestamp, None)
    origin = {"topic": "scores", "partition": 0, "offset": row}
    named = {"model": "m", "view": "calibrated", "test": "change-tolerance"}
    alarm_fields = named | {"episode": 1, "time": alarm.time}
    evidence = {
        "log_wealth": alarm.log_wealth,
        "log_threshold": alarm.log_threshold,
        "message": alarm.message,
    }
    names = ("fault", "since", "labels", "outcome", "promised", "came")
    size = {name: getattr(alarm, name) for name in names}
    assert value_of(one) == {"v": 1} | alarm_fields | evidence | size | origin
    assert (size["fault"], size["outcome"]) == ("too high", "labels 1")
    assert row >= 400


def test_alarms_of_earlier_events_are_left_out() -> None:
    """Alarms before the time from which on outputs are published are left out."""
    _, outputs = serialized(*turning())
    assert outputs is not None
    ((_, alarm),) = outputs.alarms
    for since, count in ((alarm.time, 1), (alarm.time + 1, 0)):
        found, _ = serialized(*turning(), publish_from=since)
        assert sum(one.sink == "alerts" for one in found) == count


def test_an_alarm_that_is_too_large() -> None:
    """An alarm that does not fit its topic is a dead letter, like every other output."""
    found, _ = serialized(*turning("m" * 250), max_bytes=750)
    assert not any(one.sink == "alerts" for one in found)
    assert any("the record for alerts has" in str(value_of(one).get("detail")) for one in found)


def test_a_record_on_which_abers_fails_leaves_its_headers_out() -> None:
    """They may be why, so the dead letter has only those of its own."""
    record = observed("a")
    decoded = DecodedBatch.rejected("abers failed on it")
    (one,) = sent(Serializer(max_bytes=MOST).serialize(None, decoded, [record]))
    assert (one.sink, one.key, one.reason) == ("dead_letters", record.key, "internal-error")
    assert [name for name, _ in one.headers] == [
        f"abers.{name}" for name in ("reason", "detail", "topic", "partition", "offset")
    ]
    assert value_of(one)["raw"] == (record.value or b"").decode()


def test_headers_without_a_value() -> None:
    """Outputs and dead letters keep them as they are."""
    headers: Headers = [("null", None), ("", None), ("null", b"")]
    bad = observed("b", score="x")._replace(headers=headers)
    (prediction, dead), _ = serialized(observed("a")._replace(headers=headers), bad)
    assert prediction.headers == headers
    assert [*dead.headers[:3]] == headers

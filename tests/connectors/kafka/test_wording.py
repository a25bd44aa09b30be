"""From outputs to records: whole, joined with what caused them, and never too large."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka.reads import TIME, TOPICS, Read, turning

from abers.stream import Processor, Settings
from abers_connectors.config import load
from abers_connectors.kafka.decoding import Decoder
from abers_connectors.kafka.wording import DeadRecord, Outgoing, Wording

if TYPE_CHECKING:
    from abers.stream import Outputs

MOST = 1_000_000


def worded(
    *records: Read,
    processor: Processor | None = None,
    max_bytes: int = MOST,
    publish_from: int | None = None,
    **fields: Any,  # noqa: ANN401
) -> tuple[list[Outgoing], Outputs | None]:
    """Decode, process and word some records of one topic."""
    flags = {f"input.fields.{name}": path for name, path in fields.items()}
    config = load(flags=TOPICS | flags, environ={})
    decoded = Decoder(config, partitions=1).decode(records, [0] * len(records))
    processor = processor or Processor(config.settings())
    outputs = processor.take(decoded.events) if len(decoded.events) else None
    wording = Wording(max_bytes=max_bytes, publish_from=publish_from)
    return wording.outgoing(outputs, decoded, records), outputs


def observed(id_: str, time: int = 5, **more: Any) -> Read:  # noqa: ANN401
    """Make the record of an observation, its key and timestamp by its time."""
    value = json.dumps({"id": id_, "time": time, "score": 0.5, **more}).encode()
    return Read(value, time, f"k{time}".encode(), [("trace", id_.encode())], TIME + time)


def settled(id_: str, time: int = 7) -> Read:
    """Make the record of a label."""
    value = json.dumps({"id": id_, "time": time, "label": 1}).encode()
    return Read(value, time, f"k{time}".encode(), [("trace", b"label")], TIME + time)


def told(one: Outgoing) -> Any:  # noqa: ANN401 - JSON
    """Read the value of a record."""
    return json.loads(one.value)


def test_outputs_keep_key_headers_and_timestamp() -> None:
    """Those of the observation stand on its prediction, those of the label on its outcome."""
    first, last = observed("a"), settled("a")
    (prediction, outcome), _ = worded(first, last)
    assert prediction[:2] == ("predictions", b"k5")
    assert prediction[3:] == ([("trace", b"a")], TIME + 5, None)
    assert outcome[:2] == ("outcomes", b"k7")
    assert outcome[3:] == ([("trace", b"label")], TIME + 7, None)
    assert told(prediction)["v"] == told(outcome)["v"] == 1
    assert told(outcome)["label"] == 1


def test_of_an_early_label_the_observation_is_the_cause() -> None:
    """What settles a prediction is the later of the two records."""
    (prediction, outcome), _ = worded(settled("a", 3), observed("a"))
    assert prediction.key == outcome.key == b"k5"


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.integers(0, 9)), max_size=9))
def test_each_output_is_the_encoded_row(events: list[tuple[bool, str, int]]) -> None:
    """Values are the rows as the processor gives them, one each, in its order."""
    records = [settled(id_, time) if label else observed(id_, time) for label, id_, time in events]
    found, outputs = worded(*records)
    rows = [] if outputs is None else [*outputs.predictions, *(outputs.outcomes or ())]
    assert [one.value for one in found] == [msgspec.json.encode(row) for row in rows]


def test_a_processor_without_outcomes_words_none() -> None:
    """Where nobody wants outcomes there are predictions alone."""
    found, _ = worded(observed("a"), settled("a"), processor=Processor(outcomes=False))
    assert [one.sink for one in found] == ["predictions"]


def test_a_record_without_a_timestamp_gives_an_output_without_one() -> None:
    """Then the broker's own time stands there."""
    (one,), _ = worded(observed("a")._replace(timestamp=-1))
    assert one.timestamp is None


def test_a_dead_letter_tells_its_record() -> None:
    """Topic, partition, offset, reason and sentence stand in the value and in the headers."""
    bad = Read(b"{caf\xc3\xa9", 41, b"key", [("trace", b"t")], TIME, "scores", 3)
    (one,), _ = worded(bad)
    assert one[:2] == ("dead_letters", b"key")
    assert (one.timestamp, one.reason) == (TIME, "bad-json")
    dead = told(one)
    assert dead.pop("detail").endswith("(JSON has no NaN and no Infinity)")
    place = {"topic": "scores", "partition": 3, "offset": 41}
    assert dead == {"v": 1, "reason": "bad-json", **place, "raw": "{café"}
    assert one.headers[0] == ("trace", b"t")
    headers = dict(one.headers[1:])
    assert headers.pop("abers.detail").decode() == told(one)["detail"]
    place = {"abers.topic": b"scores", "abers.partition": b"3", "abers.offset": b"41"}
    assert headers == {"abers.reason": b"bad-json", **place}


def test_bytes_that_are_no_text_are_packed() -> None:
    """What is not UTF-8 stands there in base 64, whole."""
    (one,), _ = worded(Read(b"\0\xff\x01"))
    assert base64.b64decode(told(one)["base64"]) == b"\0\xff\x01"
    assert "raw" not in told(one)


def test_dead_letters_come_in_the_order_of_the_records() -> None:
    """Those of the decoder and those of the processor are one sequence."""
    future = observed("f", 10**13)._replace(timestamp=TIME)
    found, _ = worded(future, Read(b"{", 1), observed("b", score=""), future._replace(offset=3))
    assert [(one.reason, told(one)["offset"]) for one in found] == [
        ("time-in-future", 10**13),
        ("bad-json", 1),
        ("missing-field", 5),
        ("time-in-future", 3),
    ]
    assert told(found[0])["raw"] == (future.value or b"").decode()


def test_a_label_that_waited_in_vain_has_no_record() -> None:
    """It is told as it is known, without the place of the record that only brought the time."""
    processor = Processor(Settings(label_wait=10, max_jump=2**53))
    worded(settled("lost", 1), processor=processor)
    prediction, dead = worded(observed("a", 100), processor=processor)[0]
    assert prediction.sink == "predictions"
    assert (dead.key, dead.reason, dead.timestamp) == (None, "unknown-id", TIME + 100)
    assert {"topic", "partition", "offset"}.isdisjoint(told(dead))
    assert json.loads(told(dead)["raw"])["id"] == "lost"
    assert [name for name, _ in dead.headers] == ["abers.reason", "abers.detail"]


def test_an_output_that_is_too_large_is_a_dead_letter() -> None:
    """It is cut, its length is told, and the others go their way."""
    extra = "é" * 3000
    found, outputs = worded(
        observed("a", more=extra), observed("b", more="x"), max_bytes=4000, extra=["more"]
    )
    assert outputs is not None
    dead, fine = found
    whole = msgspec.json.encode(outputs.predictions[0])
    assert (fine.sink, told(fine)["id"]) == ("predictions", "b")
    assert (dead.sink, dead.reason) == ("dead_letters", "output-too-large")
    assert told(dead)["size"] == len(whole)
    assert whole.startswith(told(dead)["raw"].encode())
    assert 990 < len(told(dead)["raw"].encode()) <= 1000
    assert "what goes to predictions has" in told(dead)["detail"]
    assert (told(dead)["topic"], told(dead)["offset"]) == ("scores", 5)


@pytest.mark.parametrize("raw", [b"\1", b"\xff", "aé€".encode(), b"{"])
@pytest.mark.parametrize("beside", [0, 3000, 12_000])
def test_whatever_is_written_fits(raw: bytes, beside: int) -> None:
    """However large its record, a dead letter leaves out what does not fit, and says so."""
    record = Read(raw * 8000, 7, b"k" * beside, [("h", b"h" * beside)])
    (one,), _ = worded(record, max_bytes=12_000)
    size = len(one.value) + len(one.key or b"") + sum(len(n) + len(v) for n, v in one.headers)
    assert size <= 12_000
    dead = msgspec.json.decode(one.value, type=DeadRecord)
    assert (dead.reason, dead.offset) == ("bad-json" if raw != b"\xff" else "not-utf8", 7)
    head = base64.b64decode(dead.base64) if dead.base64 else (dead.raw or "").encode()
    assert (raw * 8000).startswith(head)
    assert dead.size == len(raw) * 8000 or len(head) == len(raw) * 8000
    assert (("h", b"h" * beside) in one.headers) == (dead.size is None)
    assert (one.key is None) == (beside == 12_000)


def test_nothing_is_published_before_its_time() -> None:
    """Predictions and outcomes of earlier events are left out; dead letters never are."""
    found, _ = worded(
        observed("a", 5),
        settled("a", 6),
        observed("b", 7),
        settled("b", 8),
        Read(b"{"),
        publish_from=7,
    )
    assert [one.sink for one in found] == ["predictions", "outcomes", "dead_letters"]
    assert [told(one)["id"] for one in found[:2]] == ["b", "b"]


def test_an_alarm_tells_its_record() -> None:
    """Each alarm is a record with what rang, and the place, key and time of what brought it."""
    records = turning()
    found, outputs = worded(*records)
    assert outputs is not None
    ((row, alarm),) = outputs.alarms
    (one,) = (each for each in found if each.sink == "alerts")
    cause = records[row]
    assert one[1:2] + one[3:] == (cause.key, cause.headers, cause.timestamp, None)
    place = {"topic": "scores", "partition": 0, "offset": row}
    rang = {"model": "m", "test": "change", "number": 1, "time": alarm.time}
    evidence = {"log_wealth": alarm.log_wealth, "line": alarm.line, "sentence": alarm.sentence}
    assert told(one) == {"v": 1} | rang | evidence | place
    assert row >= 400


def test_alarms_of_earlier_events_are_not_told() -> None:
    """What rang before the time from which on is published is left out."""
    _, outputs = worded(*turning())
    assert outputs is not None
    ((_, alarm),) = outputs.alarms
    for since, count in ((alarm.time, 1), (alarm.time + 1, 0)):
        found, _ = worded(*turning(), publish_from=since)
        assert sum(one.sink == "alerts" for one in found) == count


def test_an_alarm_that_is_too_large() -> None:
    """An alarm that does not fit its topic is a dead letter, as every other output."""
    found, _ = worded(*turning("m" * 250), max_bytes=750)
    assert not any(one.sink == "alerts" for one in found)
    assert any("what goes to alerts has" in str(told(one).get("detail")) for one in found)

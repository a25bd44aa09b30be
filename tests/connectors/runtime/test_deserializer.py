"""Records become events; a bad record costs only itself, in a batch as alone."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.kafka.reads import TIME, TOPICS, Read
from tests.connectors.poison import POISON
from tests.connectors.schemas import registries

from abers.exceptions import BrokerError, StateError
from abers.stream import Label, Observation
from abers_connectors.config.model import load
from abers_connectors.mapping import JsonColumns
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.transport import BadHeaders

if TYPE_CHECKING:
    from abers_connectors.config.model import Config
    from abers_connectors.runtime.deserializer import DecodedBatch

GOOD = b'{"id": "a", "time": 5, "score": 0.5}'


def configured(**more: Any) -> Config:  # noqa: ANN401
    """Return a configuration with further keys of [input]."""
    flags = {f"input.{name.replace('__', '.')}": value for name, value in more.items()}
    return load(flags=TOPICS | flags, environ={})


def decoded(
    *records: Read,
    inputs: list[int] | None = None,
    partitions: int = 1,
    **more: Any,  # noqa: ANN401
) -> DecodedBatch:
    """Decode records, by default all of them observations."""
    deserializer = Deserializer(configured(**more), partitions=partitions)
    return deserializer.decode(records, inputs or [0] * len(records))


def written(**fields: Any) -> bytes:  # noqa: ANN401
    """Return a JSON object."""
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        *POISON,
        (b"", "bad-json", "write one JSON object a record"),
        (GOOD + b"\n" + GOOD, "bad-json", "trailing characters"),
        (GOOD + b" " * 200, "too-large", "236 bytes, but input.max_record_bytes = 200"),
    ],
)
def test_a_bad_record_costs_only_itself(value: bytes, reason: str, detail: str) -> None:
    """The other records are decoded; a bad one is listed with row, reason and sentence."""
    found = decoded(
        Read(GOOD),
        Read(value),
        Read(GOOD),
        max_record_bytes=200 if reason == "too-large" else 1 << 20,
    )
    assert [event.id for event in found.events] == ["a", "a"]
    assert list(found.rows) == [0, 2]
    ((row, why, sentence),) = found.dead
    assert (row, why) == (1, reason)
    assert detail in sentence


def test_a_record_with_a_score_and_a_label() -> None:
    """It is an observation if labels have a topic of their own, and refused if they have not."""
    both = Read(written(id="a", time=5, score=0.5, label=1))
    assert not decoded(both).dead
    alone = load(flags={k: v for k, v in TOPICS.items() if k != "kafka.labels"}, environ={})
    found = Deserializer(alone, partitions=1).decode([both, Read(GOOD)], [0, 0])
    ((row, why, sentence),) = found.dead
    assert (row, why) == (0, "bad-label")
    assert "labels have records of their own here" in sentence
    assert list(found.rows) == [1]


def test_a_record_may_be_as_large_as_allowed() -> None:
    """A record of exactly the limit is accepted."""
    assert not decoded(Read(GOOD), max_record_bytes=len(GOOD)).dead
    assert decoded(Read(GOOD), max_record_bytes=len(GOOD) - 1).dead


def test_records_of_any_size_come_in_their_order() -> None:
    """What is too much to be decoded together is decoded in parts, each record once."""
    sizes = [1 << 19, 10, 1 << 18, 1 << 18, 1 << 18, 900_000, 10, 10]
    values = [written(id=str(n), time=n, score=0.5) + b" " * size for n, size in enumerate(sizes)]
    values[4] = b"{" + values[4]
    found = decoded(*map(Read, values))
    assert list(found.rows) == [0, 1, 2, 3, 5, 6, 7]
    assert [event.id for event in found.events] == [str(row) for row in found.rows]
    assert [(row, reason) for row, reason, _ in found.dead] == [(4, "bad-json")]


def test_a_bad_label() -> None:
    """A record of the topic of labels is a label, or a dead letter."""
    label = written(id="a", time=7, label="maybe")
    found = decoded(Read(label), Read(label), inputs=[1, 0])
    assert [(row, reason) for row, reason, _ in found.dead] == [(0, "bad-label"), (1, "bad-label")]
    found = decoded(Read(GOOD), inputs=[1])
    ((_, reason, detail),) = found.dead
    assert reason == "missing-field"
    assert detail.startswith('the record has no "label"; fill it in')
    assert not len(found.events)


def test_both_inputs_stay_in_the_order_of_the_records() -> None:
    """Events have the order of the records, each with the timestamp of its record."""
    records = [
        Read(written(id="a", time=7, label=1), timestamp=1),
        Read(GOOD, timestamp=2),
        Read(None, timestamp=3),
        Read(written(id="b", time=8, label=True), timestamp=4),
        Read(written(id="c", time=9, score=1), timestamp=5),
    ]
    found = decoded(*records, inputs=[1, 0, 1, 0, 0])
    assert list(found.events) == [
        Label("a", 7, value=1, recorded=1),
        Observation("a", 5, score=0.5, recorded=2),
        Label("b", 8, value=1, recorded=4),
        Observation("c", 9, score=1.0, recorded=5),
    ]
    assert list(found.rows) == [0, 1, 3, 4]
    assert list(found.tombstones) == [2]
    assert found.events.recorded is not None
    assert found.events.recorded.dtype == np.int64


def test_no_events() -> None:
    """Records of which none is an event are decoded to no events."""
    found = decoded(Read(None), Read(b"{"))
    assert (len(found.events), list(found.rows), list(found.tombstones)) == (0, [], [0])


def test_a_record_without_a_timestamp_has_none() -> None:
    """A timestamp of -1 is none, and other timestamps are kept."""
    old = decoded(Read(GOOD, timestamp=-1), Read(GOOD, timestamp=0))
    assert [event.recorded for event in old.events] == [None, 0]
    assert [event.recorded for event in decoded(Read(GOOD, timestamp=-1)).events] == [None]


def test_arrival_bounds_the_time_of_a_record() -> None:
    """The time of a record is at most that of its arrival, whatever its producer says."""
    deserializer = Deserializer(configured(), partitions=1, now=lambda: 100)
    records = [Read(GOOD, timestamp=stamp) for stamp in (-1, 99, 4_070_908_800_000)]
    found = deserializer.decode(records, [0, 0, 0])
    assert [event.recorded for event in found.events] == [100, 99, 100]


def test_a_key_is_needed_where_partitions_are_many() -> None:
    """A record needs a key, which brings a label to its observation; a tombstone needs none."""
    records = [Read(GOOD, key=None), Read(GOOD), Read(None, key=None)]
    assert len(decoded(*records).events) == 2
    found = decoded(*records, partitions=2)
    assert (list(found.rows), list(found.tombstones)) == ([1], [2])
    assert found.dead[0][:2] == (0, "null-key")
    assert "write observations and labels with the same key" in found.dead[0][2]


def test_key_headers_and_timestamp_as_fields() -> None:
    """Key, headers and timestamp can be any field, also of labels alone."""
    headers = [("model", b"old"), ("model", b"fraud"), ("p.q", b" 0.25 ")]
    found = decoded(
        Read(b"{}", key=b"a1", headers=headers),
        Read(written(id="a1", label=0), key=b"churn", timestamp=TIME + 5),
        inputs=[0, 1],
        fields__id="record:key",
        fields__time="record:timestamp",
        fields__model="record:header:model",
        fields__score="record:header:p.q",
        label_fields__id="id",
        label_fields__model="record:key",
    )
    assert list(found.events) == [
        Observation("a1", TIME, "fraud", 0.25, recorded=TIME),
        Label("a1", TIME + 5, "churn", 0, recorded=TIME + 5),
    ]
    assert not found.dead


@pytest.mark.parametrize("extra", [(), ("record:header:trace",)])
def test_no_field_of_the_value_passes_for_a_header(extra: tuple[str, ...]) -> None:
    """A field that is named like a path is not that path, in a batch as alone."""
    spoof = written(
        **{"record:key": "spoof", "record:header:m": "spoof", "record:header:m.n": 1},
        **{"record:header:deep": {"er": "spoof"}},
        id="a",
        time=5,
        score=1,
    )
    found = decoded(
        Read(spoof, key=None),
        Read(spoof, key=b"true", headers=[("trace", b"t")]),
        fields__id="record:key",
        fields__model="record:header:m",
        fields__segment="record:header:deep.er",
        fields__passthrough=extra,
    )
    passed = {"record:header:trace": "t"} if extra else None
    assert list(found.events) == [
        Observation("true", 5, "default", 1.0, recorded=TIME, extra=passed)
    ]
    assert [one[:2] for one in found.dead] == [(0, "missing-field")]


def test_a_key_that_is_not_utf8() -> None:
    """A key or header that is not UTF-8 makes its record a dead letter."""
    found = decoded(Read(GOOD, key=b"a\xff"), Read(GOOD), fields__id="record:key")
    assert [event.id for event in found.events] == ["k"]
    assert found.dead[0] == (
        0,
        "not-utf8",
        "byte 0xff at position 2 of the key is not UTF-8; write it as UTF-8",
    )
    headers = [("m", b"\xff")]
    found = decoded(Read(GOOD, headers=headers), fields__model="record:header:m")
    assert "byte 0xff at position 1 of the header m" in found.dead[0][2]


SCORED = b'{"id": "b", "time": 5, "score": %s}'
ODD = [  # each with its id, or with the reason for which it is refused
    (GOOD + GOOD, "bad-json"),
    (GOOD + b" " + GOOD, "bad-json"),
    (GOOD + b"," + GOOD, "bad-json"),
    (GOOD + b"\n" + GOOD, "bad-json"),
    (b"{}" + GOOD, "bad-json"),
    (GOOD + b"}", "bad-json"),
    (GOOD + b"// a comment", "bad-json"),
    (b"[" + GOOD + b"," + GOOD + b"]", "bad-record"),
    (b"\xef\xbb\xbf" + GOOD, "bad-json"),  # a byte order mark
    (b" " + GOOD + b" \t\r\n", "a"),
    (b" ", "bad-json"),
    (b"null", "bad-record"),
    (SCORED % b"NaN", "bad-json"),
    (SCORED % b"-Infinity", "bad-json"),
    (SCORED % b"1e999", "bad-record"),
    (SCORED % b"01", "bad-json"),
    (SCORED % b"1,", "bad-json"),
    (SCORED % (b"9" * 30), "b"),
    (b'{"id": 123456789012345678901, "time": 5, "score": 1}', "123456789012345678901"),
    (b'{"id": "b", "id": "c", "time": 5, "score": 1}', "c"),
    (b'{"\\u0069d": "b", "time": 5, "score": 1}', "b"),
    (b'{"id": "b",\n"time": 5,\r\n"score": 1}\n', "b"),
    (b'{"id": "b\nc", "time": 5, "score": 1}', "bad-json"),
    (b'{"id": "b\0c", "time": 5, "score": 1}', "bad-json"),
    (b'{"id": "b\\ud800", "time": 5, "score": 1}', "bad-json"),
    (b'{"id": "\xf0\x9f\x98\x80", "time": 5, "score": 1}', "\U0001f600"),
    (SCORED % b'1, "other": "\xff"', "not-utf8"),
    (SCORED % b'1, "other": "\\ud800"', "bad-json"),
    (SCORED % b'1, "other": 1e999', "b"),
    (SCORED % b'1, "other": {"id": "deep"}', "b"),
]


@pytest.mark.parametrize(("value", "expected"), ODD)
def test_an_odd_record_is_one_record(value: bytes, expected: str) -> None:
    """It becomes one event or one dead letter, and those around it are decoded."""
    records = [Read(one, offset) for offset, one in enumerate([GOOD, value, GOOD, value])]
    found = decoded(*records)
    reasons = [(row, reason) for row, reason, _ in found.dead]
    if expected.startswith(("bad-", "not-")):
        assert reasons == [(1, expected), (3, expected)]
        assert [event.id for event in found.events] == ["a", "a"]
    else:
        assert not reasons
        assert [event.id for event in found.events] == ["a", expected] * 2


def test_fields_whose_names_need_escapes() -> None:
    """Any name of JSON is the name of a field."""
    record = json.dumps({'my "id"': "a", "ti\\me": 5, "scöre": 0.5}).encode()
    names: dict[str, Any] = {
        "fields__id": 'my "id"',
        "fields__time": "ti\\me",
        "fields__score": "scöre",
    }
    found = decoded(Read(record), Read(b"[]"), **names)
    assert [(event.id, event.time) for event in found.events] == [("a", 5)]
    assert [reason for _, reason, _ in found.dead] == ["bad-record"]


def test_a_time_in_text_costs_no_other_record_its_column() -> None:
    """Times of any form, and observations next to labels, are one batch."""
    records = [
        Read(written(id="a", time="2026-01-31T12:00:00Z", score=0.5)),
        Read(written(id="b", time=1_769_860_800_000, label=1)),
        Read(written(id="c", time="2026-01-31T13:00:00+01:00", score="0.5")),
        Read(written(id="d", time="noon", score=0.5)),
    ]
    found = decoded(*records)
    assert {event.time for event in found.events} == {1_769_860_800_000}
    assert list(found.rows) == [0, 1, 2]
    assert [one[:2] for one in found.dead] == [(3, "bad-time")]


def test_an_object_may_span_lines() -> None:
    """Records separate values; line breaks within a value do not."""
    pretty = json.dumps(json.loads(GOOD), indent=1).encode()
    found = decoded(Read(pretty), Read(pretty))
    assert len(found.events) == 2
    # Joined as lines these would be three objects, as many as there are records.
    found = decoded(
        Read(GOOD + b"\n" + GOOD), Read(b'{"id": "c",'), Read(b'"time": 5, "score": 1}')
    )
    assert not len(found.events)
    assert [row for row, _, _ in found.dead] == [0, 1, 2]


VALUES = st.sampled_from(
    [
        GOOD,
        None,
        b"",
        b"[]",
        b"{",
        b'{"id": "x", "time": 5, "score": 1e999}',
        b'{"id": "\xff", "time": 5, "score": 1}',
        b'{"id": "o", "time": 5, "score": 1, "other": "\xff"}',
        GOOD + b"\n" + GOOD,
        b"\0\0\0\0\x11\x02b",
        b'{"id": 7, "time": "2026-01-31T12:00:00Z", "score": "0.5", "model": "m"}',
        b'{"id": "x", "time": 1700000000000, "score": -1, "segment": "s", "more": [1, {"a": 2}]}',
        b' {"id": "x",\n"time": 6, "score": 0.25}\r',
        b'{"id": "l", "time": 7, "label": 1}',
        b'{"id": "l", "time": 7, "label": true, "model": "m"}',
        b'{"id": "l", "time": 7, "label": "1"}',
        b'{"id": "l", "time": 7, "label": 2}',
        b'{"id": "", "time": 7, "label": 0}',
        b'{"id": "n", "time": 1e3, "score": null, "label": 0}',
        b'{"id": "both", "time": 7, "score": 0.5, "label": 0}',
    ]
)
RECORDS = st.lists(
    st.builds(
        Read,
        VALUES,
        st.integers(0, 9),
        st.sampled_from([b"k", b"k2", None, b"\xff"]),
        st.sampled_from([[], [("h", b"1")], [("h", b"\xff")], [("g", b""), ("h", b"x")]]),
        st.sampled_from([TIME, 0, -1]),
    ).flatmap(lambda record: st.tuples(st.just(record), st.integers(0, 1))),
    max_size=12,
)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"segment": "segment"},
        {"model": "record:key"},
        {"model": "record:header:h", "time": "record:timestamp"},
        {"passthrough": ["record:header:h", "score"]},
        {"model": "const:m", "segment": "const:s"},
    ],
)
@given(records=RECORDS, partitions=st.integers(1, 2))
def test_at_once_is_as_one_by_one(
    fields: dict[str, Any], records: list[tuple[Read, int]], partitions: int
) -> None:
    """A batch is decoded to the results of its records alone, in their order."""
    deserializer = Deserializer(
        configured(**{f"fields__{name}": path for name, path in fields.items()}),
        partitions=partitions,
    )
    found = deserializer.decode(
        [record for record, _ in records], [number for _, number in records]
    )
    alone = [deserializer.decode([record], [number]) for record, number in records]
    assert list(found.events) == [event for one in alone for event in one.events]
    assert list(found.rows) == [row for row, one in enumerate(alone) if len(one.events)]
    assert list(found.dead) == [
        (row, *one.dead[0][1:]) for row, one in enumerate(alone) if one.dead
    ]
    assert list(found.tombstones) == [row for row, one in enumerate(alone) if one.tombstones]
    assert len(found.events) + len(found.dead) + len(found.tombstones) == len(records)


def test_each_schema_is_progress() -> None:
    """In a batch of many schemas, which a registry may send slowly, each counts as progress."""
    answer = b'HTTP/1.1 404 Not Found\r\n\r\n{"error_code": 40403}'
    with registries.misbehaving(answer) as (url, asked):
        deserializer = Deserializer(registries.configured(url), partitions=1, environ={})
        ids = [1, 2, 3, 2, 1]
        records = [Read(b"\0" + one.to_bytes(4) + b"x", row) for row, one in enumerate(ids)]
        ticks: list[int] = []
        deserializer.prepare(records, [0] * len(ids), lambda: ticks.append(len(asked)))
    assert ticks == [1, 2, 3]


def failing(patch: pytest.MonkeyPatch, error: Exception, times: int = 1 << 30) -> None:
    """Let the reader of JSON fail on texts with the id "x", for a number of times."""
    left = [times]

    def broken(real: Any) -> Any:  # noqa: ANN401 - a method
        def read(me: JsonColumns, raws: Any) -> Any:  # noqa: ANN401 - as the method
            if b'"x"' in (raws if isinstance(raws, bytes) else b"".join(raws)) and left[0]:
                left[0] -= 1
                raise error
            return real(me, raws)

        return read

    for name in ("many", "one"):
        patch.setattr(JsonColumns, name, broken(getattr(JsonColumns, name)))


@pytest.mark.parametrize("error", [KeyError("x"), ZeroDivisionError(), RecursionError()])
def test_a_record_on_which_abers_fails(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is a dead letter, and the log has the traceback once, with the place of the record."""
    failing(monkeypatch, error)
    bad = GOOD.replace(b'"a"', b'"x"')
    records = [Read(bad if n in {3, 8} else GOOD, offset=n) for n in range(10)]
    found = decoded(*records)
    assert list(found.rows) == [0, 1, 2, 4, 5, 6, 7, 9]
    assert [(row, why) for row, why, _ in found.dead] == [
        (3, "internal-error"),
        (8, "internal-error"),
    ]
    assert (
        f"abers failed on it ({type(error).__name__} in test_deserializer.py:" in found.dead[0][2]
    )
    assert f": {error!r}; the log" in found.dead[0][2]
    said = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert [one.offset for one in said] == [3, 8]  # type: ignore[attr-defined] # from `extra`
    assert all(one.exc_info and one.exc_info[1] is error for one in said)


def test_a_transient_error_while_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails only a few times changes nothing."""
    records = [Read(GOOD.replace(b'"a"', b'"x"'), offset=n) for n in range(5)]
    expected = decoded(*records)
    for times in (1, 2, 3):
        failing(monkeypatch, ValueError("once"), times)
        found = decoded(*records)
        assert [*found.events] == [*expected.events]
        assert not found.dead


@pytest.mark.parametrize(
    "error", [OSError(), MemoryError(), ImportError(), BrokerError("away"), StateError("broken")]
)
def test_what_is_no_fault_of_a_record_is_raised(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record is a dead letter for it."""
    failing(monkeypatch, error)
    for count in (1, 3):
        with pytest.raises(type(error)):
            decoded(*[Read(GOOD.replace(b'"a"', b'"x"'))] * count)


def test_headers_that_cannot_be_decoded() -> None:
    """Such a record is a dead letter, unless it is a tombstone."""
    records = [Read(GOOD), *(Read(one, headers=BadHeaders()) for one in (GOOD, None))]
    found = decoded(*records)
    ((row, why, detail),) = found.dead
    assert (row, why) == (1, "not-utf8")
    assert "the name of a header is not UTF-8" in detail
    assert list(found.tombstones) == [2]


def test_a_header_without_a_value() -> None:
    """It is as if the record had no such header."""
    found = decoded(
        Read(GOOD, headers=[("v", b"m"), ("v", None)]),  # the last one counts
        Read(GOOD, headers=[("v", None), ("v", b"m")]),
        fields__model="record:header:v",
    )
    assert [event.model for event in found.events] == ["default", "m"]

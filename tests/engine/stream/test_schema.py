"""Records to events: paths, kinds of records, and what is refused."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.stream import Event, Label, Observation
from abers.stream.cells import BadRecordError, Cells, Fields, RawColumns, objects
from abers.stream.columns import Reading, Schema
from abers.stream.schema_columns import Kind, Readers

TIME = 1_700_000_000_000
OWN = {"id": "a1", "time": TIME, "model": "fraud", "score": 0.83}
OBSERVED = Observation("a1", TIME, "fraud", 0.83)
CLASSES = ("cat", "7")
PATHS = {"cat": "p_cat", "7": "p_7"}
MULTICLASS = Readers.multiclass(CLASSES)


class Row(NamedTuple):
    """What a record becomes."""

    event: Event
    label: Any = None  # that is awaited
    due: int | None = None


def decoded(records: list[dict[str, Any]]) -> RawColumns:
    """Return the columns of records, as a decoder of objects has them."""
    names = {name for record in records for name in record}
    return {name: Cells(objects([one.get(name) for one in records])) for name in names}


def outcomes(reading: Reading) -> list[Row | BadRecordError]:
    """Return what each record becomes, or its error."""
    events, rows, refused, _ = reading
    labels, due = events.awaited, events.awaited_times
    found: dict[int, Row | BadRecordError] = {
        row: BadRecordError(reason, detail) for row, reason, detail in refused
    }
    for at, (row, event) in enumerate(zip(rows.tolist(), events, strict=True)):
        label = None if labels is None else labels.tolist()[at]
        found[row] = Row(event, label, None if due is None else due.tolist()[at])
    return [found[row] for row in sorted(found)]


def read_row(
    record: dict[str, Any],
    kind: Kind = "mixed",
    readers: Readers | None = None,
    *,
    text: bool = False,
    **fields: Any,  # noqa: ANN401
) -> Row:
    """Return what a record, the 17th, becomes, or raise its error."""
    schema = Schema(Fields(**fields), readers, kind, text=text)
    (found,) = outcomes(schema.read(decoded([record]), [17]))
    if isinstance(found, BadRecordError):
        raise found
    return found


def read(record: dict[str, Any], kind: Kind = "mixed", *given: Any, **more: Any) -> Any:  # noqa: ANN401
    """Return the event of a record, or raise its error."""
    return read_row(record, kind, *given, **more).event


def refused(record: dict[str, Any], kind: Kind = "mixed", **fields: Any) -> tuple[str, str]:  # noqa: ANN401
    """Return reason and detail of the error of a record."""
    with pytest.raises(BadRecordError) as caught:
        read(record, kind, **fields)
    return caught.value.reason, str(caught.value)


def test_our_own_names_are_the_default() -> None:
    """Records with the default names need no fields."""
    assert read(OWN) == OBSERVED
    label = {"id": "a1", "time": TIME, "model": "fraud", "label": 1}
    assert read(label) == read(label, "labels") == Label("a1", TIME, "fraud", 1)


def test_a_missing_model_is_the_default_one() -> None:
    """Without a model, or with an empty one, it is "default"."""
    for model in ({}, {"model": None}, {"model": ""}):
        observed = read({**OWN, "model": None, **model})
        label = read({"id": "a", "time": 5, "label": 0, **model}, "labels")
        assert observed.model == label.model == "default"


def test_fields_of_other_names_deep_paths_and_constants() -> None:
    """A field may have another name, be nested, or be a constant."""
    record = {"payload": {"txn": {"id": 17}, "country": "CH"}, "ts": "1700000000000", "p": "0.5"}
    inner = {"id": "payload.txn.id", "segment": "payload.country"}
    fields: dict[str, Any] = {**inner, "time": "ts", "score": "p", "model": "const:m"}
    found = read(record, **fields)
    assert found == Observation("17", TIME, "m", 0.5, segment="CH")


def test_a_column_may_have_a_dot_in_its_name() -> None:
    """A field named by the whole path goes before nested fields."""
    assert read({**OWN, "user.id": "u", "user": {"id": "v"}}, id="user.id").id == "u"


def test_a_path_that_ends_early_finds_nothing() -> None:
    """A path through a value without fields finds nothing."""
    for payload in (5, None, ["id"], {"other": 1}):
        assert refused({**OWN, "payload": payload}, id="payload.id")[0] == "missing-field"


def test_the_number_of_the_record_as_id_and_time() -> None:
    """Without ids and times, the number of the record is both."""
    event = read({"score": 0.5}, id="row", time="row")
    assert (event.id, event.time) == ("17", 17)


def test_features_in_one_field_or_in_many() -> None:
    """Features are an object, or listed fields."""
    record = {**OWN, "x": {"a": 1}, "n": {"b": "2"}, "c": "3"}
    assert read(record, x="x").x == {"a": 1}
    assert read(record, x=["n.b", "c"]).x == {"n.b": "2", "c": "3"}
    assert read(record, x=["n.b", "c"], text=True).x == {"n.b": 2, "c": 3}


def test_features_without_a_score_make_an_observation() -> None:
    """With a learner no score is needed; a record without features is a label."""
    record = {"id": "a1", "time": 5, "a": 1, "b": 2, "label": 1}
    assert read(record, x=["a", "b"]) == Observation("a1", 5, x={"a": 1, "b": 2})
    bare = {"id": "a1", "time": 5, "a": None, "b": "", "label": 1}
    assert read(bare, x=["a", "b"]) == Label("a1", 5, value=1)
    assert refused({**record, "b": None}, x=["a", "b"])[0] == "missing-field"


def test_extra_fields_pass_through() -> None:
    """Fields with a value are passed through unchanged; without any the result is None."""
    passed = ["amount", "n.b", "none"]
    event = read({**OWN, "amount": 12.5, "n": {"b": [1]}}, passthrough=passed)
    assert event.extra == {"amount": 12.5, "n.b": [1]}
    assert read(OWN, passthrough=passed).extra is None


def test_a_record_with_score_and_label_is_an_observation() -> None:
    """A label in the same record is ignored, unless records are labelled observations."""
    record = {**OWN, "label": "1"}
    assert read_row(record) == Row(OBSERVED)
    assert read_row(record, "labelled") == Row(OBSERVED, 1)


def test_a_label_has_a_time_of_its_own() -> None:
    """The time of a label is read like any other, and is not before its observation."""
    record = {**OWN, "label": 0, "seen": "2023-11-14T22:13:25Z"}
    assert read_row(record, "labelled", label_time="seen") == Row(OBSERVED, 0, TIME + 5000)
    reason, detail = refused({**record, "seen": TIME - 1}, "labelled", label_time="seen")
    assert reason == "bad-time"
    assert detail.startswith("seen, the label's time, is 0.001 seconds before time, that")


@pytest.mark.parametrize(
    ("kind", "record", "detail"),
    [
        ("mixed", {"id": "a", "time": 5}, 'no "score" and no "label"'),
        ("mixed", {"id": "a", "time": 5, "score": None, "label": ""}, 'no "score" and no "label"'),
        ("mixed", {"id": "", "time": 5, "score": 1}, 'no "id"'),
        ("mixed", {"id": "a", "score": 1.0}, 'no "time"'),
        ("labels", {"time": 5, "label": 1}, 'no "id"'),
        ("labelled", {"id": "a", "time": 5, "label": 1}, 'no "score"'),
    ],
)
def test_what_is_missing_is_named(kind: Kind, record: dict[str, Any], detail: str) -> None:
    """The message names the missing field, and the section that maps it."""
    reason, message = refused(record, kind)
    assert reason == "missing-field"
    remedy = "fill it in, drop the record, or name its field in fields"
    assert message == f"the record has {detail}; {remedy}"


@pytest.mark.parametrize("label", [{}, {"label": None}, {"label": ""}, {"label": math.nan}])
def test_a_row_of_labels_without_a_label(label: dict[str, Any]) -> None:
    """It has its own reason, by which a table is read on."""
    assert refused({"id": "a", "time": 5} | label, "labels") == ("unlabelled", "no label yet")


@pytest.mark.parametrize("empty", [None, "", math.nan])
def test_a_label_that_is_not_known_yet_is_awaited(empty: object) -> None:
    """A record without a label is an observation, whatever stands for the time of the label."""
    record = {**OWN, "label": empty}
    assert read_row(record, "labelled") == Row(OBSERVED, None)
    for seen in (None, "", TIME + 5, "tomorrow"):
        found = read_row({**record, "seen": seen}, "labelled", label_time="seen")
        assert found == Row(OBSERVED, None, TIME)


def test_a_record_of_a_log_is_an_observation_or_a_label() -> None:
    """One that is both is refused, since its label would count for nothing."""
    label = {"id": "a1", "time": TIME, "model": "fraud", "label": 1}
    assert read(label, "log") == Label("a1", TIME, "fraud", 1)
    for unknown in ({}, {"label": None}, {"label": ""}, {"label": math.nan}, {"label": "N/A"}):
        assert read({**OWN, **unknown}, "log") == OBSERVED
    reason, detail = refused({**OWN, "label": 0}, "log")
    assert reason == "bad-label"
    assert detail == (
        'the record has "score" and "label", but labels have records of their own here; write '
        "the label in a later record with the same id, or name in fields the column of the label's "
        "time as label_time"
    )
    assert read({**label, "score": math.nan}, "log") == Label("a1", TIME, "fraud", 1)
    assert read(OWN, "log", label="const:1") == OBSERVED, "each record without a score is a label"
    named = read_row({**OWN, "label": "NA"}, "log", Readers.binary(["yes"])).event
    assert named == OBSERVED
    with pytest.raises(BadRecordError, match="labels have records of their own"):
        read({**OWN, "label": "NA"}, "log", Readers.binary(["NA"]))
    two = {**OWN, "a": 1, "label": 0}
    assert 'has "score" and "a" and "label"' in refused(two, "log", x=["a", "b"])[1]
    assert read({**OWN, "label": 0}) == OBSERVED, "its labels come from elsewhere"


def test_a_label_without_its_time_is_refused() -> None:
    """The message names both fields."""
    reason, detail = refused({**OWN, "label": 1, "seen": ""}, "labelled", label_time="seen")
    assert reason == "missing-field"
    assert detail == (
        'the record has a "label", but no "seen"; fill it in, or leave "label" empty until it is '
        "known"
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": 1.5}, "bad-id"),
        ({"time": 1_700_000_000}, "bad-time"),
        ({"model": ["m"]}, "bad-model"),
        ({"segment": 1.5}, "bad-model"),
        ({"score": "high"}, "bad-score"),
        ({"score": True}, "bad-score"),
        ({"x": [1]}, "bad-features"),
        ({"score": None, "x": None, "label": 2}, "bad-label"),
    ],
)
def test_what_is_wrong_has_a_reason(change: dict[str, Any], reason: str) -> None:
    """Each field has its own reader."""
    assert refused({**OWN, **change}, x="x", segment="segment")[0] == reason


def test_positive_values_mean_one() -> None:
    """Labels are read by the positive values."""
    records = [{"id": "a", "time": 5, "class": value} for value in ("fraud", "no", 1)]
    fraud = Readers.binary(["fraud"])
    assert [read(one, "labels", fraud, label="class").value for one in records] == [1, 0, 0]


def test_scores_in_one_field_or_in_one_each() -> None:
    """The scores of an observation are an object, or have a field each."""
    expected = Observation("a", 5, score={"cat": 0.75, "7": 0.25})
    head = {"id": "a", "time": 5}
    assert read({**head, "score": {"cat": 0.75, "7": "0.25"}}, "mixed", MULTICLASS) == expected
    many = {**head, "p_cat": "0.75", "p_7": 0.25}
    assert read(many, "mixed", MULTICLASS, score=PATHS) == expected
    deep = {**head, "p": {"cat": 0.75, "seven": 0.25}}
    paths = {"cat": "p.cat", "7": "p.seven"}
    assert read(deep, "mixed", MULTICLASS, score=paths) == expected


def test_a_score_that_is_missing_is_named() -> None:
    """With a field for each class all are needed; without any the record is a label."""
    with pytest.raises(BadRecordError, match='no "p_7"'):
        read({"id": "a", "time": 5, "p_cat": 0.5}, "mixed", MULTICLASS, score=PATHS)
    label = {"id": "a", "time": 5, "label": "cat", "p_cat": None}
    found = read(label, "mixed", MULTICLASS, score=PATHS)
    assert found == Label("a", 5, value="cat")


def test_a_schema_says_what_it_reads() -> None:
    """A schema has its top-level fields, those that are needed, and those of model and segment."""
    fields = Fields(
        id="p.id",
        time="row",
        model="const:m",
        segment="s",
        x=["a", "b.c"],
        passthrough=["e"],
    )
    schema = Schema(fields)
    assert schema.reads == {"p", "p.id", "s", "score", "a", "b", "b.c", "label", "e"}
    assert schema.needs == [("p.id",), ("row",), ("score", "a", "b.c", "label")]
    assert schema.names == ["const:m", "s"]
    labels = Schema(fields, kind="labels")
    assert labels.reads == {"p", "p.id", "label"}
    assert labels.names == ["const:m"]


@pytest.mark.parametrize("values", [[3, 4], [2.5, 3.0], ["3", "2.5"]])
def test_labels_of_numbers_are_a_column_of_numbers(values: list[Any]) -> None:
    """Numeric labels, also whole ones and texts, become a column of floats."""
    raw = decoded([{"id": "a", "time": 5, "label": one} for one in values])
    found = Schema(Fields(), Readers.regression(), "labels").read(raw, [1, 2]).events
    assert found.values is not None
    assert found.values.dtype == np.float64
    assert found.values.tolist() == [*map(float, values)]


READERS = {
    "binary": Readers.binary(),
    "multiclass": MULTICLASS,
    "regression": Readers.regression(),
}
VALUES: Any = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=2),
    st.floats(),
    st.integers(),
    st.sampled_from([0, 1, "1", TIME, 10**9, 5, "2023-11-14T22:13:20Z", 0.5, "0.5"]),
    st.sampled_from(["cat", "7", 7, 7.0]),
    st.lists(st.integers(), max_size=1),
    st.dictionaries(st.sampled_from(CLASSES), st.floats() | st.none() | st.just("0.5"), max_size=2),
    st.just({"cat": 0.5, "7": 0.5}),
)
GOOD = st.fixed_dictionaries(
    {"id": st.sampled_from(["a", 5]), "time": st.sampled_from([5, TIME, "1700000000000"])},
    optional={
        "model": st.just("m"),
        "segment": st.just("s"),
        "score": st.sampled_from([0.5, "0.25", {"cat": 0.5, "7": 0.5}, None]),
        "label": st.sampled_from([0, "1", "cat", "7", None, math.nan]),
        "seen": st.sampled_from([TIME, 10, None]),
    },
)
NAMES = st.sampled_from(["id", "time", "model", "score", "label", "segment", "seen"])
RECORDS = st.lists(st.one_of(GOOD, st.dictionaries(NAMES, VALUES)), max_size=5)
KINDS = st.sampled_from(["mixed", "log", "labels", "labelled"])
FIELDS = st.builds(
    Fields,
    segment=st.sampled_from([None, "segment", "const:s"]),
    model=st.sampled_from(["model", "const:m", "const:"]),
    label_time=st.sampled_from([None, "seen"]),
)


def shown(found: list[Row | BadRecordError]) -> list[str]:
    """Return outcomes as texts, because NaN does not equal itself."""
    return [
        f"{one.reason}: {one}" if isinstance(one, BadRecordError) else repr(one) for one in found
    ]


@pytest.mark.parametrize("task", READERS)
@given(records=RECORDS, fields=FIELDS, kind=KINDS)
def test_many_records_say_what_each_says(
    task: str, records: list[dict[str, Any]], fields: Fields, kind: Kind
) -> None:
    """A record among others becomes what it becomes alone, however its cells are kept."""
    schema = Schema(fields, READERS[task], kind)
    alone = [schema.read(decoded([one]), [n]) for n, one in enumerate(records)]
    expected = [text for one in alone for text in shown(outcomes(one))]
    numbers, raw = range(len(records)), decoded(records)
    assert shown(outcomes(schema.read(raw, numbers))) == expected
    typed = {name: Cells.of(cells.values.tolist()) for name, cells in raw.items()}
    assert shown(outcomes(schema.read(typed, numbers))) == expected


@pytest.mark.parametrize("task", READERS)
@given(record=st.dictionaries(NAMES, VALUES), kind=KINDS)
def test_nested_records_say_the_same(task: str, record: dict[str, Any], kind: Kind) -> None:
    """Top-level fields, nested ones, and columns named by a path are read alike."""
    rest = {name: value for name, value in record.items() if name != "id"}
    dotted = {"i.d": record["id"], **rest} if "id" in record else rest
    deep = {"i": {"d": record["id"]}, **rest} if "id" in record else rest
    plain, nested = (
        Schema(Fields(), READERS[task], kind),
        Schema(Fields(id="i.d"), READERS[task], kind),
    )
    expected = shown(outcomes(plain.read(decoded([record]), [1])))
    for one in (dotted, deep):
        found = shown(outcomes(nested.read(decoded([one]), [1])))
        assert [text.replace("i.d", "id") for text in found] == expected

"""Records to events: paths, kinds of input, and the fast paths beside the general one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.stream import Events, Label, Observation
from abers.stream.schema_columns import Readers
from abers_connectors.mapping.bad_record import BadRecordError
from abers_connectors.mapping.columns import FieldColumn
from abers_connectors.mapping.fields import Fields
from abers_connectors.mapping.mapper import labelled, labels, mixed
from abers_connectors.mapping.rows import LabelledObservation, events_of

TIME = 1_700_000_000_000
OWN = {"id": "a1", "time": TIME, "model": "fraud", "score": 0.83}


def refused(kind: Any, record: dict[str, Any], **fields: Any) -> tuple[str, str]:  # noqa: ANN401
    """Return reason and detail of the error that a record raises."""
    with pytest.raises(BadRecordError) as caught:
        kind(Fields(**fields)).row(record, 1)
    return caught.value.reason, caught.value.detail


def test_our_own_names_are_the_default() -> None:
    """Records with the default names need no mapping."""
    row: Any = mixed(Fields()).row
    assert row(OWN, 1) == Observation("a1", TIME, "fraud", 0.83)
    label = {"id": "a1", "time": TIME, "model": "fraud", "label": 1}
    assert row(label, 2) == labels(Fields()).row(label, 2) == Label("a1", TIME, "fraud", 1)


def test_a_missing_model_is_the_default_one() -> None:
    """Without a model, or with an empty one, it is "default"."""
    for model in ({}, {"model": None}, {"model": ""}):
        observed: Any = mixed(Fields()).row({**OWN, "model": None, **model}, 1)
        label: Any = labels(Fields()).row({"id": "a", "time": 5, "label": 0, **model}, 1)
        assert observed.model == label.model == "default"


def test_fields_of_other_names_deep_paths_and_constants() -> None:
    """A field may have another name, be nested, or be a constant."""
    fields = Fields(
        id="payload.txn.id", time="ts", model="const:m", segment="payload.country", score="p"
    )
    record = {"payload": {"txn": {"id": 17}, "country": "CH"}, "ts": "1700000000000", "p": "0.5"}
    assert mixed(fields).row(record, 1) == Observation("17", TIME, "m", 0.5, segment="CH")


def test_a_column_may_have_a_dot_in_its_name() -> None:
    """A field named by the whole path goes before nested fields."""
    row: Any = mixed(Fields(id="user.id")).row
    assert row({**OWN, "user.id": "u"}, 1).id == "u"


def test_a_path_that_ends_early_finds_nothing() -> None:
    """A path through a value without fields finds nothing."""
    for payload in (5, None, ["id"], {"other": 1}):
        assert refused(mixed, {**OWN, "payload": payload}, id="payload.id")[0] == "missing-field"


def test_the_number_of_the_record_as_id_and_time() -> None:
    """Without ids and times, the number of the record is both."""
    event: Any = mixed(Fields(id="row", time="row")).row({"score": 0.5}, 17)
    assert (event.id, event.time) == ("17", 17)


def test_features_in_one_field_or_in_many() -> None:
    """Features are an object, or listed fields."""
    record = {**OWN, "x": {"a": 1}, "n": {"b": "2"}, "c": "3"}
    assert mixed(Fields(x="x")).row(record, 1).x == {"a": 1}  # type: ignore[union-attr]
    many = Fields(x=["n.b", "c"])
    assert mixed(many).row(record, 1).x == {"n.b": "2", "c": "3"}  # type: ignore[union-attr]
    text = mixed(many, text=True).row(record, 1)
    assert text.x == {"n.b": 2, "c": 3}  # type: ignore[union-attr]


def test_features_without_a_score_make_an_observation() -> None:
    """With a learner no score is needed; a record without features is a label."""
    fields = Fields(x=["a", "b"])
    record = {"id": "a1", "time": 5, "a": 1, "b": 2, "label": 1}
    assert mixed(fields).row(record, 1) == Observation("a1", 5, x={"a": 1, "b": 2})
    bare = {"id": "a1", "time": 5, "a": None, "b": "", "label": 1}
    assert mixed(fields).row(bare, 1) == Label("a1", 5, value=1)
    assert refused(mixed, {**record, "b": None}, x=["a", "b"])[0] == "missing-field"


def test_extra_fields_pass_through() -> None:
    """Fields with a value are passed through unchanged; without any the result is None."""
    fields = Fields(passthrough=["amount", "n.b", "none"])
    event: Any = mixed(fields).row({**OWN, "amount": 12.5, "n": {"b": [1]}}, 1)
    assert event.extra == {"amount": 12.5, "n.b": [1]}
    assert mixed(fields).row(OWN, 1).extra is None  # type: ignore[union-attr]


def test_a_record_with_score_and_label_is_an_observation() -> None:
    """A label beside a score is ignored, unless records are labelled observations."""
    record = {**OWN, "label": "1"}
    observation = Observation("a1", TIME, "fraud", 0.83)
    assert mixed(Fields()).row(record, 1) == observation
    assert labelled(Fields()).row(record, 1) == LabelledObservation(observation, 1)


@pytest.mark.parametrize(
    ("kind", "record", "detail"),
    [
        (mixed, {"id": "a", "time": 5}, 'no "score" and no "label"'),
        (mixed, {"id": "a", "time": 5, "score": None, "label": ""}, 'no "score" and no "label"'),
        (mixed, {"id": "", "time": 5, "score": 1}, 'no "id"'),
        (mixed, {"id": "a", "score": 1.0}, 'no "time"'),
        (labels, {"id": "a", "time": 5, "score": 1.0}, 'no "label"'),
        (labels, {"time": 5, "label": 1}, 'no "id"'),
        (labelled, {"id": "a", "time": 5, "label": 1}, 'no "score"'),
    ],
)
def test_what_is_missing_is_named(kind: Any, record: dict[str, Any], detail: str) -> None:  # noqa: ANN401
    """The message names the missing field, and the section that maps it."""
    reason, message = refused(kind, record)
    assert reason == "missing-field"
    remedy = "fill it in, drop the record, or name the field that holds it in [input.fields]"
    assert message == f"the record has {detail}; {remedy}"


@pytest.mark.parametrize("empty", [None, "", math.nan])
def test_a_label_that_is_not_known_yet_is_awaited(empty: object) -> None:
    """A record without a label is an observation, whatever stands for the time of the label."""
    record = {**OWN, "label": empty}
    observation = Observation("a1", TIME, "fraud", 0.83)
    assert labelled(Fields()).row(record, 1) == LabelledObservation(observation, None)
    row = labelled(Fields(label_time="seen")).row
    for seen in (None, "", TIME + 5, "tomorrow"):
        awaited = LabelledObservation(observation, None, TIME)
        assert row({**record, "seen": seen}, 1) == awaited


def test_a_label_without_its_time_is_refused() -> None:
    """The message names both fields."""
    reason, detail = refused(labelled, {**OWN, "label": 1, "seen": ""}, label_time="seen")
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
    assert refused(mixed, {**OWN, **change}, x="x", segment="segment")[0] == reason


def test_positive_values_mean_one() -> None:
    """Labels are read by the positive values."""
    row: Any = labels(Fields(label="class"), Readers.binary(["fraud"])).row
    found = [row({"id": "a", "time": 5, "class": value}, 1).value for value in ("fraud", "no", 1)]
    assert found == [1, 0, 0]


def test_a_mapping_says_what_it_looks_at() -> None:
    """A mapper has the top-level fields that it reads, and those of which one is needed."""
    mapper = mixed(
        Fields(id="p.id", time="row", model="const:m", x=["a", "b.c"], passthrough=["e"])
    )
    assert mapper.reads == {"p", "p.id", "score", "a", "b", "b.c", "label", "e"}
    assert mapper.needs == (("p.id",), ("row",), ("score", "a", "b.c", "label"))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=2),
    st.floats(),
    st.integers(),
    st.sampled_from([0, 1, "1", TIME, 10**9, 5, "2023-11-14T22:13:20Z", 0.5]),
    st.lists(st.integers(), max_size=1),
)
NAMES = st.sampled_from(["id", "time", "model", "score", "label", "segment"])


@given(st.dictionaries(NAMES, VALUES), st.sampled_from([mixed, labels, labelled]), st.booleans())
def test_the_quick_ways_say_what_the_general_one_says(
    record: dict[str, Any],
    kind: Any,  # noqa: ANN401
    segmented: bool,  # noqa: FBT001
) -> None:
    """The fast and the general path read any record alike."""
    segment = "segment" if segmented else None
    quick, general = Fields(segment=segment), Fields(segment=segment, passthrough=["not there"])

    def read(fields: Fields, names: dict[str, str]) -> object:
        try:
            renamed = {names.get(name, name): value for name, value in record.items()}
            return kind(fields).row(renamed, 1)
        except BadRecordError as error:
            return error.reason

    nested = Fields(segment=segment, id="i.d")
    assert read(quick, {}) == read(general, {}) == read(nested, {"id": "i.d"})


def any_there(values: list[Any]) -> bool:
    """Return whether a column has any value."""
    return any(value is not None for value in values)


def given_column(values: list[Any]) -> FieldColumn:
    """Return a column as a file has it, in which None is a missing value."""
    valid = np.array([value is not None for value in values])
    plain = [value for value in values if value is not None]
    whole = np.zeros(len(values), object if isinstance(plain[0], str) else None)
    whole = whole.astype(np.array(plain).dtype) if whole.dtype != object else whole
    whole[valid] = plain
    return FieldColumn(whole, None if valid.all() else valid)


def awaited(events: Events) -> list[Any]:
    """Return the labels that are not released."""
    return [] if events.awaited is None else events.awaited.tolist()


COLUMNS = st.fixed_dictionaries(
    {
        "id": st.lists(st.sampled_from(["a", "b", "", "c"]), min_size=3, max_size=3),
        "time": st.lists(st.sampled_from([5, TIME, TIME + 1, 10**9]), min_size=3, max_size=3)
        | st.lists(st.sampled_from(["5", str(TIME), "1_0", "", "x"]), min_size=3, max_size=3),
    },
    optional={
        "model": st.lists(st.sampled_from(["m", ""]), min_size=3, max_size=3),
        "segment": st.lists(st.sampled_from(["s", ""]), min_size=3, max_size=3),
        "score": st.lists(st.floats() | st.none(), min_size=3, max_size=3).filter(any_there)
        | st.lists(st.sampled_from(["0.5", "1", "nan", "1_0", "", "x"]), min_size=3, max_size=3),
        "label": st.lists(st.sampled_from([0, 1, 2, None]), min_size=3, max_size=3).filter(
            any_there
        )
        | st.lists(st.sampled_from(["1", "no", ""]), min_size=3, max_size=3)
        | st.lists(st.booleans(), min_size=3, max_size=3),
    },
)


@given(
    COLUMNS,
    st.sampled_from([mixed, labels, labelled]),
    st.sampled_from([None, "segment", "const:s"]),
    st.sampled_from(["model", "const:m", "const:"]),
)
def test_columns_say_what_rows_say(
    columns: dict[str, list[Any]],
    kind: Any,  # noqa: ANN401
    segment: str | None,
    model: str,
) -> None:
    """Columns become the events of their rows, or None."""
    mapper = kind(Fields(segment=segment, model=model))
    found = mapper.columns({name: given_column(values) for name, values in columns.items()})
    if found is not None:
        rows = [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]
        expected = events_of([mapper.row(row, 1) for row in rows])
        assert list(found) == list(expected)
        assert awaited(found) == awaited(expected)


def test_plain_columns_are_taken() -> None:
    """Columns of strings and finite numbers are converted, with nulls where allowed."""
    head = {"id": given_column(["a", "b"]), "time": given_column([5, TIME])}
    found = mixed(Fields()).columns({**head, "score": given_column([0.5, 1.0])})
    expected = [Observation("a", 5, "default", 0.5), Observation("b", TIME, "default", 1.0)]
    assert found is not None
    assert list(found) == expected
    texts = {"time": given_column(["5", str(TIME)]), "score": given_column(["0.5", "1"])}
    found = mixed(Fields(model="const:default")).columns({**head, **texts})
    assert found is not None
    assert list(found) == expected
    both = {"score": given_column([0.5, None]), "label": given_column([None, True])}
    found = mixed(Fields()).columns({**head, **both})
    assert found is not None
    assert list(found) == [expected[0], Label("b", TIME, "default", 1)]


@pytest.mark.parametrize(
    "fields", [{"x": "x"}, {"passthrough": ["e"]}, {"id": "row"}, {"time": "a.b"}]
)
def test_columns_of_anything_else_are_left_to_the_rows(fields: dict[str, Any]) -> None:
    """Columns of a mapping that is not plain are not converted."""
    columns: dict[str, list[Any]] = {"id": ["a"], "time": [5], "score": [0.5]}
    given = {name: given_column(values) for name, values in columns.items()}
    assert mixed(Fields(**fields)).columns(given) is None


def test_metadata_is_not_part_of_the_typed_record() -> None:
    """The typed record has no metadata fields and no constants."""
    typed = mixed(Fields(id="record:header:a.b", time="record:timestamp", model="const:m")).typed
    assert typed is not None
    assert typed.record.__struct_fields__ == ("score", "label")

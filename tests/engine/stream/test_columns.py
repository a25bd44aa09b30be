"""Events and outputs by columns, `abers.stream.columns`: what goes in comes out again.

Columns are one more way to hold a list, so both give the same values of the same types.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import ParameterError
from abers.stream import Event, Events, Label, Observation, Outcome, Prediction, Processor, Rows
from abers.stream.cells import column, objects

VALUES: Any = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5) | st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=2),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=1), st.floats(allow_nan=False), max_size=2),
    st.just(np.float64(0.5)),
    st.just(np.array([1.0])[0]),
)
USUAL: Any = st.floats(0, 1)
OBSERVATIONS = st.builds(
    Observation,
    id=st.text(max_size=2) | VALUES,
    time=st.integers(0, 9) | VALUES,
    model=st.sampled_from(("m", "n")) | VALUES,
    score=USUAL | VALUES,
    x=st.none() | st.none() | VALUES,
    segment=st.just("") | VALUES,
    recorded=st.none() | st.none() | VALUES,
    extra=st.none() | st.none() | VALUES,
)
LABELS = st.builds(
    Label,
    id=st.text(max_size=2) | VALUES,
    time=st.integers(0, 9) | VALUES,
    model=st.sampled_from(("m", "n")) | VALUES,
    value=st.integers(0, 1) | VALUES,
    recorded=st.none() | st.none() | VALUES,
)
BATCHES = st.lists(OBSERVATIONS | LABELS, max_size=8)
SLICES = st.slices(8)


def typed(events: Any) -> list[Any]:  # noqa: ANN401
    """Return the plain fields of events with their types, as 1, 1.0 and True are equal."""
    rows = [(type(e), [*map(plain, msgspec.structs.astuple(e))]) for e in events]
    return [(kind, [(type(value), value) for value in values]) for kind, values in rows]


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return a number of NumPy as one of Python."""
    return value.item() if isinstance(value, np.generic) else value


@given(BATCHES)
def test_events_come_back(made: list[Event]) -> None:
    """Any events, of fields of any types, come back as they were, one by one too."""
    events = Events.of(made)
    assert len(events) == len(made)
    assert typed(events) == typed(made)
    assert typed(events[i] for i in range(len(made))) == typed(made)
    assert typed(events[i] for i in range(-len(made), 0)) == typed(made)


@given(BATCHES, SLICES)
def test_slices(made: list[Event], part: slice) -> None:
    """A slice of the columns is the slice of the list, forwards and backwards."""
    assert typed(Events.of(made)[part]) == typed(made[part])


@given(BATCHES, st.data())
def test_rows_are_taken_in_any_order(made: list[Event], data: st.DataObject) -> None:
    """Rows are taken by their numbers, repeated ones too, and by a mask."""
    events = Events.of(made)
    rows = data.draw(st.lists(st.sampled_from(range(len(made))))) if made else []
    assert typed(events.take(np.array(rows, int))) == typed([made[row] for row in rows])
    mask = data.draw(st.lists(st.booleans(), min_size=len(made), max_size=len(made)))
    kept = [one for one, there in zip(made, mask, strict=True) if there]
    assert typed(events.take(np.array(mask, bool))) == typed(kept)


@given(st.lists(BATCHES, min_size=1, max_size=4))
def test_batches_behind_each_other(parts: list[list[Event]]) -> None:
    """Joined, batches are one list, whatever the columns of each are made of."""
    joined = Events.joined([Events.of(part) for part in parts])
    assert typed(joined) == typed([one for part in parts for one in part])


def test_rows_without_fields_among_others() -> None:
    """Joined, a row has no features and extra fields where it had none, whatever others have."""
    odd: Any = {"x": 0.5, "extra": False}
    parts = [[Observation("a", 1, score=0.5)], [Observation("b", 1, score=0.5, **odd)]]
    joined = Events.joined([Events.of(part) for part in parts])
    assert typed(joined) == typed([one for part in parts for one in part])


def test_rows_that_were_recorded_among_others() -> None:
    """Times of writing are numbers where all rows have one; joined with others they stay apart."""
    seen = Events.of([Observation("a", 1, score=0.5, recorded=0)])
    other = Events.of([Observation("b", 1, score=0.5)])
    assert seen.recorded is not None
    assert seen.recorded.dtype == np.int64
    assert [one.recorded for one in Events.joined([seen, other, seen])] == [0, None, 0]


@given(BATCHES)
def test_heads(made: list[Event]) -> None:
    """Heads are what an output repeats of its event, and nothing else."""
    heads = Events.of(made).heads()
    assert heads.scores is heads.values is heads.x is heads.recorded is heads.awaited is None
    for head, one in zip(heads, made, strict=True):
        names = ["id", "time", "model"]
        names += [] if isinstance(one, Label) else ["segment", "extra"]
        assert type(head) is type(one)
        assert all(getattr(head, name) == getattr(one, name) for name in names)


def test_no_such_row() -> None:
    """A row beyond the end raises an IndexError, as with a list."""
    events = Events.of([Observation("a", 1, score=0.5)])
    for index in (1, -2):
        with pytest.raises(IndexError):
            events[index]


@given(st.lists(VALUES, max_size=5))
def test_a_column_gives_its_values_back(values: list[Any]) -> None:
    """A column of any values returns the same values, of the same types."""
    for made in (column(values), objects(values)):
        found = made.tolist()
        assert found == values
        assert [*map(type, found)] == [*map(type, values)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], np.int64),
        ([1.0, 2.5], np.float64),
        ([True, False], np.bool_),
        ([1, 2.5], np.object_),
        ([1, True], np.object_),
        ([2**63 - 1, -(2**63)], np.int64),
        ([2**63, 1], np.object_),
        ([None], np.object_),
        (["a"], np.object_),
        ([[1], [2]], np.object_),
        ([], np.object_),
    ],
)
def test_what_a_column_is_of(values: list[Any], kind: type) -> None:
    """Values of one plain type make a column of numbers; numbers of more than 64 bits do not."""
    assert column(values).dtype == kind


ROWS = st.lists(
    st.builds(
        Prediction,
        id=st.text(max_size=2),
        time=st.integers(0, 9),
        model=st.just("m"),
        score=USUAL,
        p0=USUAL,
        p1=USUAL,
        p=USUAL,
        n_labels=st.integers(0, 5),
        segment=st.sampled_from(("", "s")),
        extra=st.none() | st.just({"a": [1]}),
    ),
    max_size=6,
)


@given(ROWS, SLICES, st.booleans())
def test_outputs_come_back(made: list[Prediction], part: slice, extra: bool) -> None:  # noqa: FBT001
    """Outputs by columns are the objects; fields at the end that are left out have defaults."""
    names = Prediction.__struct_fields__[: None if extra else -1]
    kept = made if extra else [msgspec.structs.replace(one, extra=None) for one in made]
    rows = Rows(Prediction, {name: column([getattr(p, name) for p in kept]) for name in names})
    assert len(rows) == len(kept)
    assert list(rows) == kept
    assert [rows[i] for i in range(len(kept))] == kept
    assert list(rows[part]) == kept[part]
    assert list(rows.take(np.arange(len(kept))[part])) == kept[part]


def test_values_of_other_libraries_become_plain() -> None:
    """Numbers, texts and times of NumPy, pandas and decimal are read as those of Python."""
    pd = pytest.importorskip("pandas")
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    extra = {"a": np.float32(0.5), "b": [np.int8(3)], "c": pd.Timestamp(moment), "d": pd.NaT}
    given_: list[Event] = [
        Observation(
            np.str_("a"),
            np.int64(5),  # type: ignore[arg-type]
            np.str_("m"),
            Decimal("0.1"),
            {"f": np.float64(2.5)},
            np.str_("s"),
            np.uint16(7),  # type: ignore[arg-type]
            extra,
        ),
        Label("a", np.int32(9), "m", value=np.True_),  # type: ignore[arg-type]
    ]
    plain_extra = {"a": 0.5, "b": [3], "c": moment, "d": None}
    expected: list[Event] = [
        Observation("a", 5, "m", 0.1, {"f": 2.5}, "s", 7, plain_extra),
        Label("a", 9, "m", value=True),
    ]
    assert typed(Events.of(given_)) == typed(expected)
    processor, one_by_one = Processor(), Processor()
    outputs = processor.process_many(given_)
    assert [type(one) for one in outputs] == [Prediction, Outcome]
    assert [out for event in given_ for out in one_by_one.process(event)] == outputs
    assert msgspec.json.decode(msgspec.json.encode(outputs[0]))["extra"]["a"] == 0.5


def test_an_extra_field_that_json_cannot_hold_changes_nothing() -> None:
    """An extra field without a form in JSON is an error, and the state is as before."""
    pd = pytest.importorskip("pandas")
    processor = Processor()
    before = processor.state_bytes()
    for value in (object(), np.timedelta64(5, "s"), pd.NA):
        event = Observation("a", 5, score=0.5, extra={"a": value})
        for call in (processor.process, lambda one: processor.process_many([one])):
            with pytest.raises(ParameterError, match="cannot be encoded"):
                call(event)
    assert processor.state_bytes() == before

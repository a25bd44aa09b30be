"""Events from tables of Arrow, `Events.from_arrow`."""

from __future__ import annotations

import copy
import importlib.util
import pickle
from dataclasses import fields
from datetime import date
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import Scorer

from abers import ParameterError
from abers.stream import Events, Label, Observation, Processor, Settings
from abers.stream.arrow_columns import models_and_times, needed_columns

pa: Any = pytest.importorskip("pyarrow")

OBSERVATIONS = st.builds(
    Observation,
    id=st.sampled_from("abcd"),
    time=st.integers(0, 50),
    model=st.sampled_from(("default", "m")),
    score=st.floats(0, 1),
    segment=st.sampled_from(("", "s")),
)
LABELS = st.builds(
    Label,
    id=st.sampled_from("abcd"),
    time=st.integers(0, 50),
    model=st.sampled_from(("default", "m")),
    value=st.integers(0, 1),
)


def table_of(events: list[Any]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return a table with a row for each event."""
    return pa.table(
        {
            "id": pa.array([one.id for one in events], pa.string()),
            "time": pa.array([one.time for one in events], pa.int64()),
            "model": pa.array([one.model for one in events], pa.string()).dictionary_encode(),
            "segment": pa.array([getattr(one, "segment", None) for one in events], pa.string()),
            "score": pa.array([getattr(one, "score", None) for one in events], pa.float64()),
            "label": pa.array([getattr(one, "value", None) for one in events], pa.int8()),
        }
    )


@given(st.lists(OBSERVATIONS | LABELS, min_size=1, max_size=12), st.integers(1, 5))
def test_rows_become_the_events(events: list[Any], size: int) -> None:
    """A row with a score is an observation and one with a label a label, in chunks or in one."""
    table = table_of(events)
    chunked = pa.Table.from_batches(table.to_batches(max_chunksize=size))
    for given_ in (table, chunked, table.combine_chunks().to_batches()[0]):
        found = Events.from_arrow(given_)
        assert list(found) == events
    settings = Settings(monitors=False)
    assert Processor(settings).process_batch(Events.from_arrow(chunked)).in_order() == Processor(
        settings
    ).process_many(events)


def test_columns_are_typed() -> None:
    """Times, scores and labels are numbers, so that a batch is not checked event by event."""
    found = Events.from_arrow(table_of([Observation("a", 1, score=0.5), Label("a", 2, value=1)]))
    columns: list[Any] = [found.times, found.scores, found.values]
    assert [one.dtype for one in columns] == [np.int64, np.float64, np.int64]


def test_names_of_columns() -> None:
    """Fields name the columns, dotted ones in structs; what has no column is the default."""
    payloads = [{"key": 7, "in": {"p": 0.5}}, {"key": 8, "in": None}]
    table = pa.table({"payload": payloads, "ts": [5, 6], "y": [None, True], "segment": ["s", None]})
    names: dict[str, Any] = {"id": "payload.key", "score": "payload.in.p"}
    names |= {"time": "ts", "label": "y", "segment": None, "model": "const:m"}
    found = list(Events.from_arrow(table, names))
    assert found == [Observation("7", 5, "m", 0.5), Label("8", 6, "m", value=True)]


def test_features_and_extra_fields() -> None:
    """Features are a struct or columns; nulls among them and among extra fields are left out."""
    columns = {
        "id": ["a", "b"],
        "time": [1, 2],
        "f": [1.5, None],
        "g": ["u", None],
        "label": [None, 0],
    }
    listed = Events.from_arrow(pa.table(columns), {"x": ["f", "g"], "extra": ["g"]})
    assert list(listed) == [
        Observation("a", 1, x={"f": 1.5, "g": "u"}, extra={"g": "u"}),
        Label("b", 2, value=0),
    ]
    struct = {"id": ["a"], "time": [1], "x": [{"f": 1.5, "deep": {"g": [1]}}]}
    (event,) = Events.from_arrow(pa.table(struct))
    assert event == Observation("a", 1, x={"f": 1.5, "deep": {"g": [1]}})


def test_scores_of_several_classes() -> None:
    """Scores by class are a struct, or a column for each class."""
    struct = pa.table({"id": ["a"], "time": [1], "score": [{"cat": 0.25, "dog": 0.75}]})
    columns = pa.table({"id": ["a"], "time": [1], "c": [0.25], "d": [0.75]})
    named = {"score": {"cat": "c", "dog": "d"}}
    for found in (Events.from_arrow(struct), Events.from_arrow(columns, named)):
        assert list(found) == [Observation("a", 1, score={"cat": 0.25, "dog": 0.75})]


def test_a_row_that_is_no_event_is_a_dead_letter() -> None:
    """Nulls and values that cannot be used neither disappear nor stop the others."""
    invalid = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    table = pa.table(
        {
            "id": pa.chunked_array([invalid, pa.array([None, "", "c", "d", "s", "e"])]),
            "time": [1, 1, 1, None, 1, 1_700_000_000, 1],
            "score": [0.5, 0.5, 0.5, 0.5, None, 0.5, 0.5],
        }
    )
    first, second = Processor(), Processor()
    outputs = first.process_batch(table)
    assert [(row, one.reason) for row, one in outputs.dead_letters] == [
        (0, "not-utf8"),
        (1, "missing-field"),
        (2, "missing-field"),
        (3, "missing-field"),
        (4, "missing-field"),
        (5, "bad-time"),
    ]
    assert "seems to be in seconds" in outputs.dead_letters[-1][1].detail
    assert outputs.predictions.columns["id"].tolist() == ["e"]
    assert outputs.predicted.tolist() == [6]
    assert outputs.to_arrow().dead_letters.num_rows == 6
    replayed = second.apply(Processor().process_logged(table)[1])
    assert replayed.predictions.columns["id"].tolist() == ["e"]
    assert first.state_bytes() == second.state_bytes()
    assert first.counters["dead:missing-field"] == 4
    assert Processor.restore(first.snapshot()).counters == first.counters


def test_refused_rows_are_pickled_and_copied() -> None:
    """A copy of events, such as one for another process, has the same dead letters."""
    table = pa.table({"id": ["a", None], "time": [1, 2], "score": [0.5, 0.5]})
    events = Events.from_arrow(table)
    refused = Processor().process_batch(events).dead_letters
    assert [row for row, _ in refused] == [1]
    for twin in (pickle.loads(pickle.dumps(events)), copy.deepcopy(events)):  # noqa: S301 - own
        assert Processor().process_batch(twin).dead_letters == refused


def test_what_is_missing_is_a_column_that_there_could_be() -> None:
    """The error for a row without a value names columns, also where the table has no labels."""
    columns = {"id": ["a", "b"], "time": [1, 2], "score": [0.5, None]}
    labels = {"id": ["a", "b"], "time": [1, 2], "label": [1, None]}
    for table, name in ((columns, "score"), (labels, "label")):
        ((_, refused),) = Processor().process_batch(pa.table(table)).dead_letters
        assert refused.detail.startswith(f'the record has no "{name}"; ')


def test_refused_rows_with_a_learner() -> None:
    """A learner sees no row that is refused, such as one with a part of its features."""
    columns = {"id": ["a", "b", "c"], "time": [1, 2, 3], "f": [1.5, None, 0.5], "g": [1, 2, 3]}
    events = Events.from_arrow(pa.table(columns), {"x": ["f", "g"]})
    learner = Scorer()
    outputs = Processor(learner=learner).process_batch(events)
    assert [(row, one.reason) for row, one in outputs.dead_letters] == [(1, "missing-field")]
    assert outputs.predictions.columns["id"].tolist() == ["a", "c"]


def test_texts_are_read_as_from_files() -> None:
    """Texts that parse as times, scores and labels are these, and other values of the task too."""
    columns = {
        "id": ["a", "b", "a", "b"],
        "time": ["1970-01-01T00:00:01+00:00", "2000", "1970-01-01 00:00:03Z", "4000"],
        "score": ["0.5", "0.25", None, ""],
        "label": [None, None, "true", "0"],
    }
    table = pa.table(columns)
    expected: list[Observation | Label] = [
        Observation("a", 1000, score=0.5),
        Observation("b", 2000, score=0.25),
        Label("a", 3000, value=1),
        Label("b", 4000, value=0),
    ]
    assert list(Events.from_arrow(table, settings=Settings())) == expected
    assert Processor().process_batch(table).in_order() == Processor().process_many(expected)


def test_values_of_the_task() -> None:
    """Scores and labels are read as the task of the processor has them."""
    several = pa.table({"id": ["a", "a"], "time": [1, 2], "c": ["0.25", None], "l": [None, 7]})
    names: Any = {"score": {"7": "c"}, "label": "l"}
    settings = Settings(task="multiclass", classes=("7", "dog"))
    assert list(Events.from_arrow(several, names, settings)) == [
        Observation("a", 1, score={"7": 0.25}),
        Label("a", 2, value="7"),
    ]
    numbers = pa.table({"id": ["a"], "time": [1], "label": ["2.5"]})
    found = Events.from_arrow(numbers, settings=Settings(task="regression"))
    assert list(found) == [Label("a", 1, value=2.5)]
    folds = pa.table({"id": ["a"], "time": [1], "score": [[0.25, 0.5]]})
    (event,) = Events.from_arrow(folds, settings=Settings(calibrator="cvap"))
    assert event == Observation("a", 1, score=[0.25, 0.5])


@pytest.mark.parametrize("frame", [True, False])
def test_labels_that_are_not_known_yet(frame: bool) -> None:  # noqa: FBT001
    """NaN, NaT and None of a data frame, and NaN of a table, are labels that are not known yet."""
    columns: Any = {
        "id": ["a", "b"],
        "time": [1, 2],
        "score": [0.5, 0.25],
        "label": [1.0, np.nan],
        "known": np.array([5, "NaT"], "datetime64[ms]"),
    }
    if frame:
        data = pytest.importorskip("pandas").DataFrame(columns)
        data["known"] = data["known"].dt.tz_localize("UTC")
    else:
        known = pa.array(columns["known"], pa.timestamp("ms", "UTC"))
        data = pa.table({**columns, "label": pa.array([1.0, np.nan]), "known": known})
    assert list(Events.from_arrow(data, {"label_time": "known"})) == [
        Observation("a", 1, score=0.5),
        Observation("b", 2, score=0.25),
        Label("a", 5, value=1.0),
    ]


def test_rows_with_their_labels() -> None:
    """With label times a row is an observation and a label, released in the order of time."""
    table = pa.table(
        {
            "id": ["b", "a", "c"],
            "time": [5, 1, 5],
            "score": [0.5, 0.25, 0.75],
            "label": [1, 0, None],
            "known": [5, 5, None],
        }
    )
    assert list(Events.from_arrow(table, {"label_time": "known"})) == [
        Observation("a", 1, score=0.25),
        Label("a", 5, value=0),
        Observation("b", 5, score=0.5),
        Label("b", 5, value=1),
        Observation("c", 5, score=0.75),
    ]


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        (
            {"time": [1], "score": [0.5]},
            {},
            "there is no column id for id; the columns are time, sc",
        ),
        ({"id": ["a"], "time": [1]}, {}, "no column is a score, features or a label"),
        (
            {"id": ["a"], "time": [1], "score": [1.0]},
            {"score": "p"},
            "there is no column p for sco",
        ),
        (
            {"id": ["a"], "time": [1], "score": [1.0]},
            {"scores": "p"},
            "'scores', which no event has",
        ),
        ({"id": ["a"], "time": [1], "score": [1.0]}, {"id": None}, "fields has None for id; name"),
        ({"id": ["a"], "time": [1], "score": [1.0]}, {"time": ["t"]}, "fields has .'t'. for time"),
        ({"id": ["a"], "time": [1], "y": [1]}, {"score": None}, "no column is a score, features"),
        (
            {"id": ["a"], "time": [date(2026, 1, 1)], "score": [1.0]},
            {},
            r"column time for time is of type date32\[day\]; make it int64",
        ),
    ],
)
def test_a_table_that_cannot_be_meant(
    columns: dict[str, Any], names: dict[str, Any], message: str
) -> None:
    """An error names the column or row, and what to do."""
    with pytest.raises(ParameterError, match=message):
        Events.from_arrow(pa.table(columns), names)


@pytest.mark.parametrize("given", ["id", ["id"]])
def test_fields_that_are_no_dict(given: Any) -> None:  # noqa: ANN401
    """Fields that do not say which column is which are refused, wherever they are given."""
    table = pa.table({"id": ["a"], "time": [1], "score": [0.5]})
    for call in (Events.from_arrow, models_and_times, lambda _, one: needed_columns(["id"], one)):
        with pytest.raises(ParameterError, match=r"^fields=.*id.* must be a dict; name columns "):
            call(table, given)


def test_rows_whose_labels_cannot_be_released() -> None:
    """A row whose label has no time, or one before its own, is refused; others stay in order."""
    table = pa.table(
        {
            "id": ["a", "b", "c", "d", "e"],
            "time": [5, None, 3, 4, 1],
            "score": [0.5, 0.5, 0.5, 0.5, 0.5],
            "label": [1, 1, 0, 1, 1],
            "known": [6, 9, 2, None, 2],
        }
    )
    events = Events.from_arrow(table, {"label_time": "known"})
    assert [(type(one).__name__, one.id) for one in events] == [
        ("Observation", "e"),
        ("Label", "e"),
        ("Observation", "c"),
        ("Observation", "d"),
        ("Observation", "a"),
        ("Observation", "b"),
        ("Label", "a"),
    ]
    outputs = Processor().process_batch(events)
    assert [(one.event.id, one.reason) for _, one in outputs.dead_letters] == [
        ("c", "bad-time"),
        ("d", "missing-field"),
        ("b", "missing-field"),
    ]
    assert "known, the label's time, is 0.001 sec" in outputs.dead_letters[0][1].detail
    assert outputs.outcomes is not None
    assert outputs.outcomes.columns["id"].tolist() == ["e", "a"]


def test_refused_rows_by_time() -> None:
    """A row without a time follows the row before it, wherever events are sorted."""
    table = pa.table({"id": ["a", "b", "c"], "time": [5, None, 1], "score": [0.5, 0.5, 0.5]})
    events = Events.from_arrow(table)
    assert events.by_time().ids.tolist() == ["c", "a", "b"]
    again = Events.joined([events[1:], events[:1]])
    assert [one is None for one in again.refused] == [False, True, True]  # type: ignore[union-attr]
    assert Processor().process_batch(again[1:]).dead_letters == []


def test_moments_before_1973() -> None:
    """Timestamps mean what they say, also where their milliseconds would be taken for seconds."""
    moments = pa.array([10**10, None], pa.timestamp("ms", "UTC"))
    table = pa.table({"id": ["a", "b"], "time": moments, "score": [0.5, 0.5], "at": moments})
    events = Events.from_arrow(table, {"extra": ["at"], "recorded": "at"})
    assert events[0] == Observation("a", 10**10, score=0.5, recorded=10**10, extra={"at": 10**10})
    assert Processor().process_batch(events).dead_letters[0][1].reason == "missing-field"


def test_what_is_no_table() -> None:
    """Anything but a table is refused."""
    with pytest.raises(ParameterError, match="int is not a table of Arrow"):
        Events.from_arrow(3)


def test_a_column_of_several_types() -> None:
    """A frame whose column has several types is refused, by the name of the column and a remedy."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["a", 2], "time": [1, 2], "score": [0.5, 0.5]})
    processor = Processor()
    with pytest.raises(ParameterError, match=r"column id .* values of one type in each column"):
        processor.process_batch(frame)
    assert processor.state_bytes() == Processor().state_bytes()


def test_two_columns_of_one_name() -> None:
    """Two columns of one name are an error, also in a frame of pandas; case makes two names."""
    table = pa.table([["a"], [1], [0.25], [0.75]], names=["id", "time", "score", "score"])
    tables: list[Any] = [table, table.to_batches()[0]]
    if (pandas := importlib.util.find_spec("pandas")) is not None and pandas.loader:
        frame = table.rename_columns(["id", "time", "score", "other"]).to_pandas()
        frame.columns = table.column_names
        tables.append(frame)
    for one in tables:
        with pytest.raises(ParameterError, match="two columns have the name score; rename one"):
            Events.from_arrow(one)
    (event,) = Events.from_arrow(table.rename_columns(["id", "time", "score", "Score"]))
    assert event.score == 0.25  # type: ignore[union-attr]


def test_no_rows() -> None:
    """A table without rows has no events."""
    found = Events.from_arrow(table_of([]))
    assert len(found) == 0
    assert {
        len(getattr(found, one.name))
        for one in fields(found)
        if getattr(found, one.name) is not None
    } == {0}


def test_times_without_a_zone() -> None:
    """Times that could be of any time zone are refused, with the cast that says which."""
    table = pa.table({"id": ["a"], "time": pa.array([1], pa.timestamp("ms")), "score": [0.5]})
    with pytest.raises(ParameterError, match=r'cast\(pa.timestamp\("ms", "UTC"\)\)'):
        Events.from_arrow(table)
    (event,) = Events.from_arrow(
        table.set_column(1, "time", table["time"].cast(pa.timestamp("us", "UTC")))
    )
    assert msgspec.structs.asdict(event)["time"] == 1


def test_needed_columns_are_those_of_the_fields() -> None:
    """Columns by any kind of name are needed, in the order of the table; others are not."""
    names = ["note", "a", "b", "id", "user", "x1", "x2", "model", "time"]
    given: dict[str, Any] = {"score": {"no": "a", "yes": "b"}, "x": ["x1"], "segment": "user.land"}
    assert needed_columns(names, given) == ["a", "b", "id", "user", "x1", "model", "time"]
    assert needed_columns(names, {**given, "model": None}, ("model", "time")) == ["time"]


def test_models_and_times_of_rows() -> None:
    """Integers are models by their digits, a null is the default model, and no time is None."""
    table = pa.table({"m": [7, None], "at": [None, 5], "score": [0.5, 0.5]})
    models, times = models_and_times(table, {"model": "m", "time": "at", "score": "nothing"})
    assert models.tolist() == ["7", "default"]
    assert times.tolist() == [None, 5]


def test_ids_and_times_in_dictionaries() -> None:
    """Integers and moments may be in dictionaries, as some writers have them."""
    times = pa.array([5, 6], pa.timestamp("ms", "UTC"))
    for column in (pa.array([5, 6]), times):
        table = pa.table(
            {
                "id": pa.array([17, 18]).dictionary_encode(),
                "time": column.dictionary_encode(),
                "score": [0.5, 0.25],
            }
        )
        assert list(Events.from_arrow(table)) == [
            Observation("17", 5, score=0.5),
            Observation("18", 6, score=0.25),
        ]

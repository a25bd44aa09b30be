"""What all engines share: each model by itself, however its rows are cut."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.engines.histories import by_model, by_one_processor, history

from abers.engines import process_history
from abers.exceptions import ParameterError, RecordError
from abers.stream import Events, Processor, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers.stream import ArrowOutputs

SETTINGS = Settings(average_run_length=20, grace_period=0, cooldown=5, label_timeout=8)
MODELS = ("m", "n", "other", None)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Draw a history by time: labels early, late, twice or never, and rows that are no events."""
    rows = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "id": st.sampled_from(["a", "b", "c", "d", "e", None]),
                    "time": st.integers(0, 12),
                    "model": st.sampled_from(MODELS),
                    "score": st.sampled_from([0.1, 0.5, 0.9, float("nan"), None]),
                    "label": st.sampled_from([0, 1, 7, None]),
                }
            ),
            max_size=25,
        )
    )
    return table_of(sorted(rows, key=lambda row: row["time"]))


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows of events as a table."""
    fields = [("id", pa.string()), ("time", pa.int64()), ("model", pa.string())]
    fields += [("score", pa.float64()), ("label", pa.int64()), ("known", pa.int64())]
    return pa.Table.from_pylist(rows, pa.schema(fields))


def cut(draw: st.DrawFn, table: pa.Table) -> list[pa.Table]:
    """Cut a table somewhere."""
    cuts = draw(st.lists(st.integers(0, table.num_rows), max_size=2))
    places = [0, *sorted(cuts), table.num_rows]
    return [table.slice(start, end - start) for start, end in pairwise(places)]


def of_models(table: pa.Table, chosen: Iterable[object]) -> pa.Table:
    """Return the rows of some models."""
    kept = {*chosen}
    mask = [one in kept for one in table.column("model").to_pylist()]
    return table.filter(pa.array(mask, pa.bool_()))


@given(data=st.data())
def test_any_shards_give_the_outputs_of_one_processor(data: st.DataObject) -> None:
    """However models are spread and rows cut, each has the outputs of one processor."""
    table = data.draw(tables())
    expected = by_one_processor(table, SETTINGS)
    places = data.draw(st.lists(st.integers(0, 2), min_size=len(MODELS), max_size=len(MODELS)))
    outputs: list[ArrowOutputs] = []
    for place in {*places}:
        chosen = [model for model, at in zip(MODELS, places, strict=True) if at == place]
        parts = data.draw(st.composite(cut)(of_models(table, chosen)))
        rows = data.draw(st.integers(2, 20))
        outputs += process_history(parts, SETTINGS, chunk_rows=rows)
    assert by_model(outputs) == expected


@given(data=st.data())
def test_models_behind_each_other_give_the_same(data: st.DataObject) -> None:
    """A history sorted by model gives the same outputs, though models that ended are dropped."""
    table = data.draw(tables())
    expected = by_one_processor(table, SETTINGS)
    models = data.draw(st.permutations(MODELS))
    whole = pa.concat_tables([of_models(table, [model]) for model in models])
    # Rows without a model are of "default".
    parts = data.draw(st.composite(cut)(whole))
    rows = data.draw(st.integers(2, 20))
    assert by_model(process_history(parts, SETTINGS, consecutive=True, chunk_rows=rows)) == expected


@given(data=st.data())
def test_labels_beside_their_observations_wait_for_their_time(data: st.DataObject) -> None:
    """Rows with a time of the label give the outputs of one table, however they are cut."""
    times = sorted(data.draw(st.lists(st.integers(0, 30), max_size=25)))
    labels = [data.draw(st.sampled_from([0, 1, None])) for _ in times]
    delays = [data.draw(st.integers(0, 12)) for _ in times]
    rows = [
        {"id": f"a{n}", "time": time, "model": "m", "score": n / 30, "label": y, "known": time + d}
        for n, (time, y, d) in enumerate(zip(times, labels, delays, strict=True))
    ]
    fields = {"label_time": "known"}
    table = table_of(rows)
    expected: dict[str, Any] = by_model([])
    if rows:
        one = Processor(SETTINGS).process_batch(Events.from_arrow(table, fields, SETTINGS))
        expected = by_model([one.to_arrow()])
    parts = data.draw(st.composite(cut)(table))
    size = data.draw(st.integers(1, 10))
    assert by_model(process_history(parts, SETTINGS, fields, chunk_rows=size)) == expected


def test_labels_come_first_at_equal_times() -> None:
    """A label is learned before an observation of its time, also if it comes in a later chunk."""
    rows = [
        {"id": "a", "time": 1, "model": "m", "score": 0.5},
        {"id": "b", "time": 5, "model": "m", "score": 0.5},
        {"id": "a", "time": 5, "model": "m", "label": 1},
    ]
    for size in (1, 2, 9):
        outputs = process_history(table_of(rows).to_batches(1), chunk_rows=size)
        found = [n for one in outputs for n in one.predictions.column("n_labels").to_pylist()]
        assert found == [0, 1]


def test_dead_letters_are_located_by_model() -> None:
    """A dead letter has its model and the number of its event, whatever the chunks."""
    rows = [{"id": "a", "time": n, "model": "m", "score": 0.5} for n in range(3)]
    rows[2] = {"id": None, "time": 2, "model": "m", "score": 0.5}
    for size in (1, 2, 9):
        outputs = [*process_history(table_of(rows).to_batches(1), chunk_rows=size)]
        found = [where for one in outputs for where in one.dead_letters.column("where").to_pylist()]
        assert found == ["event 3 of model 'm'"]


def test_a_row_without_a_time_is_a_dead_letter() -> None:
    """Rows without times, also the first one, are dead letters in the place where they are."""
    rows: list[dict[str, Any]] = [
        {"id": "a", "time": None, "model": "m", "score": 0.5},
        {"id": "b", "time": 5, "model": "m", "score": 0.5},
        {"id": "c", "time": None, "model": "m", "score": 0.5},
        {"id": "d", "time": 6, "model": "m", "score": 0.5},
    ]
    for size in (1, 2, 9):
        outputs = by_model(process_history(table_of(rows).to_batches(1), chunk_rows=size))
        assert len(outputs["predictions"]["m"]) == 2
        assert len(outputs["dead_letters"]["m"]) == 2


@pytest.mark.parametrize("size", [1, 2, 9])
def test_rows_out_of_order_are_refused(size: int) -> None:
    """A row before another of its model is an error that names both, in one chunk or several."""
    rows = [{"id": f"a{n}", "time": n, "model": "m", "score": 0.5} for n in (3, 4, 2)]
    others = [{"id": "a", "time": 1, "model": "n", "score": 0.5}]  # which matters to no other model
    message = r"model 'm': its row 3 is at 2, after a row at 4; sort the events of each model by"
    with pytest.raises(RecordError, match=message):
        [*process_history(table_of(rows[:2] + others + rows[2:]).to_batches(1), chunk_rows=size)]


def test_a_model_that_comes_back_is_refused() -> None:
    """If models are to be consecutive, one that comes back after its end is an error."""
    rows = [{"id": "a", "time": 1, "model": model, "score": 0.5} for model in ("m", "n", "m")]
    with pytest.raises(RecordError, match="model 'm' comes back after other models; sort by model"):
        [*process_history(table_of(rows).to_batches(1), consecutive=True, chunk_rows=1)]


def test_rows_that_are_no_events_stop_no_model() -> None:
    """A label before its observation, and a row without a time, are dead letters with the model."""
    rows: list[dict[str, Any]] = [
        {"id": "a", "time": 5, "model": "m", "score": 0.5, "label": 1, "known": 3},
        {"id": "b", "time": None, "model": "m", "score": 0.5, "label": 1, "known": 9},
        {"id": "c", "time": 6, "model": "m", "score": 0.5, "label": 1, "known": 7},
    ]
    (found,) = process_history([table_of(rows)], fields={"label_time": "known"})
    dead = found.dead_letters.select(["reason", "where"]).to_pylist()
    assert dead == [
        {"reason": "bad-time", "where": "event 1 of model 'm'"},
        {"reason": "missing-field", "where": "event 2 of model 'm'"},
    ]
    assert found.predictions.column("id").to_pylist() == ["c"]
    assert found.outcomes is not None
    assert found.outcomes.column("id").to_pylist() == ["c"]


def test_mistakes_in_fields_name_the_model() -> None:
    """Fields that no column has are an error."""
    row = {"id": "a", "time": 5, "model": "m", "score": 0.5}
    with pytest.raises(ParameterError, match="model 'm', in its rows up to 1: there is no column"):
        [*process_history([table_of([row])], fields={"score": "p"})]


def test_memory_of_models_that_ended_is_freed() -> None:
    """Consecutive models are finished as soon as the next one begins."""
    table = history(200, 5).sort_by([("model", "ascending"), ("time", "ascending")])
    alone = process_history(table.to_batches(50), consecutive=True, chunk_rows=50)
    first = next(alone)
    assert first.predictions.num_rows > 0
    rows = [first, *alone]
    assert sum(one.predictions.num_rows for one in rows) == 196

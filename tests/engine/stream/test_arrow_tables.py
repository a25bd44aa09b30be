"""Outputs as Arrow tables, `Outputs.to_arrow`."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from abers.stream import Alarm, Event, Events, Label, Observation, Processor, Settings
from abers.stream.outputs import TIMED_OUT

pa: Any = pytest.importorskip("pyarrow")

SETTINGS = {
    "binary": Settings(),
    "multiclass": Settings(task="multiclass", classes=("cat", "dog")),
    "regression": Settings(task="regression", distributions="full"),
}
EVENTS: dict[str, list[Event]] = {
    "binary": [Observation("a", 1, score=0.5, extra={"k": [1]}), Label("a", 2, value=1)],
    "multiclass": [Observation("a", 1, score={"cat": 0.5, "dog": 0.5}), Label("a", 2, value="cat")],
    "regression": [Observation("a", 1, score=3.0), Label("a", 2, value=2.5)],
}


@pytest.mark.parametrize("task", SETTINGS)
def test_tables_are_the_outputs(task: str) -> None:
    """A row has the values of the record on the wire, nested ones as JSON."""
    outputs = Processor(SETTINGS[task]).process_batch(Events.of(EVENTS[task]))
    tables = outputs.to_arrow()
    for table, rows in (
        (tables.predictions, outputs.predictions),
        (tables.outcomes, outputs.outcomes),
    ):
        assert table is not None
        assert rows is not None
        (found,), (row,) = table.to_pylist(), rows
        written = json.loads(msgspec.json.encode(row))
        for name, value in found.items():
            nested = isinstance(written.get(name), dict)
            if isinstance(value, float) and not math.isfinite(value):
                value = None  # noqa: PLW2901 - as on the wire
            default = getattr(row, name, None) if name not in written else written[name]
            expected = None if default != default else default  # noqa: PLR0124 - NaN
            assert (json.loads(value) if nested else value) == expected
        assert found["v"] == 1


@pytest.mark.parametrize("task", SETTINGS)
def test_schemas_do_not_depend_on_the_batch(task: str) -> None:
    """A batch without a row of a kind has the table with the same schema."""
    processor = Processor(SETTINGS[task])
    several = [processor.process_batch(Events.of([one])).to_arrow() for one in EVENTS[task]]
    for one, other in zip(*several, strict=True):
        assert one.schema == other.schema


def test_dead_letters_say_where() -> None:
    """A dead letter has its row, counted from 1, and the event; an unmatched label has none."""
    processor = Processor(Settings(max_early=1))
    events: list[Event] = [
        Label("gone", 0, value=1),
        Observation("", 1, score=0.5),
        Label("b", 2, value=1),
    ]
    found = processor.process_batch(Events.of(events)).to_arrow().dead_letters.to_pylist()
    assert [(one["reason"], one["where"]) for one in found] == [
        ("bad-id", "row 2"),
        ("unknown-id", TIMED_OUT),
    ]
    assert json.loads(found[1]["raw"])["id"] == "gone"


def test_alarms_have_their_fields() -> None:
    """Alarms are a table with the fields of `Alarm`."""
    outputs = Processor().process_batch(Events.of([Observation("a", 1, score=0.5)]))
    alarm = Alarm("m", "", "raw", "loss", 1, 5, float("inf"), 3.0, "text")
    table = outputs._replace(alarms=[(0, alarm)]).to_arrow().alarms
    assert table.to_pylist() == [msgspec.structs.asdict(alarm)]


def test_no_outcomes() -> None:
    """Outcomes that are switched off are no table."""
    processor = Processor(outcomes=False)
    assert processor.process_batch(Events.of(EVENTS["binary"])).to_arrow().outcomes is None

"""The outputs of all kinds as one table."""

from __future__ import annotations

import pytest
from tests.engine.engines.histories import history

from abers.engines import one_table, table_schema
from abers.stream import Event, Events, Label, Observation, Processor, Settings

CLASSES = ("a", "b", "c")
KINDS = {
    "prediction": "predictions",
    "outcome": "outcomes",
    "dead_letter": "dead_letters",
    "alarm": "alarms",
}


def test_it_has_all_rows_of_all_kinds() -> None:
    """Each output is a row of its kind with its columns, and the others are null."""
    settings = Settings(average_run_length=20, grace_period=0, cooldown=5, scores="any")
    events = Events.from_arrow(history(4_000, 3)).by_time()
    outputs = Processor(settings).process_batch(events).to_arrow()
    table = one_table(outputs)
    assert table.schema == table_schema(settings)
    for kind, name in KINDS.items():
        own = getattr(outputs, name)
        rows = [row for row in table.to_pylist() if row["kind"] == kind]
        assert rows
        assert [{column: row[column] for column in own.column_names} for row in rows] == [
            *own.to_pylist()
        ]
        others = {*table.column_names} - {*own.column_names, "kind"}
        assert {row[column] for row in rows for column in others} == {None}


@pytest.mark.parametrize(
    "settings",
    [
        Settings(task="multiclass", classes=CLASSES),
        Settings(task="regression"),
        Settings(task="regression", calibrator="protected", support=(0, 1)),
    ],
    ids=["classes", "numbers", "protected numbers"],
)
def test_its_schema_is_known_beforehand(settings: Settings) -> None:
    """For each task the table of some outputs has the schema that was given beforehand."""
    score = (0.2, 0.3, 0.5) if settings.task == "multiclass" else 0.5
    label = "a" if settings.task == "multiclass" else 0.4
    observation, wrong = Observation("a", 1, score=score), Observation("b", 1)
    events: list[Event] = [observation, Label("a", 2, value=label), wrong]
    outputs = Processor(settings).process_batch(Events.of(events)).to_arrow()
    assert one_table(outputs).schema == table_schema(settings)

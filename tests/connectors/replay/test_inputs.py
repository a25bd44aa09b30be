"""The sources of a configuration: one input, two, or one with delayed labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from abers.stream import Label, Observation
from abers_connectors.config.model import load
from abers_connectors.replay.job import open_inputs

if TYPE_CHECKING:
    from abers.stream import Event

START = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory."""
    monkeypatch.chdir(tmp_path)


def events(**flags: Any) -> list[Event]:  # noqa: ANN401
    """Read all events of the inputs; a double underscore is a dot."""
    named = {f"input.{name}".replace("__", "."): value for name, value in flags.items()}
    source = open_inputs(load(flags=named, environ={}))
    return [event for batch in source.batches() for event in batch.events]


def test_one_input() -> None:
    """The records of a single input are observations and labels, as they came."""
    Path("stream.jsonl").write_text(
        f'{{"txn": "a", "time": {START}, "score": 0.5}}\n'
        f'{{"txn": "a", "time": {START + 1}, "label": "fraud"}}\n'
    )
    assert events(observations="stream.jsonl", fields__id="txn", pos_label=["fraud"]) == [
        Observation("a", START, score=0.5),
        Label("a", START + 1, value=1),
    ]


def test_two_inputs() -> None:
    """A second input has labels, with its own field names, merged by event time."""
    Path("scores.csv").write_text(f"id,time,score\na,{START},0.5\nb,{START + 10},0.7\n")
    Path("labels.jsonl").write_text(f'{{"txn": "a", "time": {START + 5}, "label": 1}}\n')
    found = events(observations="scores.csv", labels="labels.jsonl", label_fields__id="txn")
    assert found == [
        Observation("a", START, score=0.5),
        Label("a", START + 5, value=1),
        Observation("b", START + 10, score=0.7),
    ]


@pytest.mark.parametrize(("delay", "released"), [(1, START + 10), ("15ms", START + 15)])
def test_delayed_labels(delay: object, released: int) -> None:
    """Labels in the records of observations are released some records, or a time, later."""
    rows = "".join(f"{name},{START + 10 * row},0.5,1\n" for row, name in enumerate("abc"))
    Path("history.csv").write_text(f"id,time,score,label\n{rows}")
    found = events(observations="history.csv", delay=delay)
    assert [event.id for event in found][:4] == ["a", "b", "a", "c"]
    assert found[2] == Label("a", released, value=1)


def test_a_format_that_the_name_does_not_say() -> None:
    """The format of the configuration is for inputs whose names have none."""
    Path("scores").write_text(f"id,time,score\na,{START},0.5\n")
    Path("labels.jsonl").write_text(f'{{"id": "a", "time": {START + 5}, "label": 1}}\n')
    found = events(observations="scores", labels="labels.jsonl", format="csv")
    assert [type(event) for event in found] == [Observation, Label]


def test_the_limit_of_a_record() -> None:
    """A record over the limit of the configuration is a bad one."""
    Path("stream.jsonl").write_text(f'{{"id": "a", "time": {START}, "score": 0.5}}\n')
    flags = {"input.observations": "stream.jsonl", "input.max_record_bytes": 20}
    (batch,) = open_inputs(load(flags=flags, environ={})).batches()
    assert [one.reason for one in batch.bad] == ["too-large"]

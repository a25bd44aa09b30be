"""The job of a configuration: its checks, its outputs and its state."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from abers import ParameterError, StateError
from abers.exceptions import ConfigError
from abers_connectors.config.model import load
from abers_connectors.replay.job import Job, job_of_config, unchecked_job

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = (
    b'{"id": "a", "time": 1, "score": 0.5}\n'
    b'{"id": "a", "time": 2, "label": 1}\n'
    b'{"id": "b", "time": 3, "score": "high"}\n'
)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with an input."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_bytes(RECORDS)


def job(**flags: object) -> Job:
    """Return the job of a configuration, its keys with two underscores for a dot."""
    given: dict[str, object] = {"input.observations": "in.jsonl"}
    given["output.predictions"] = "out.jsonl"
    named = {name.replace("__", "."): value for name, value in flags.items()}
    return job_of_config(load(flags=given | named, environ={}), "abers.toml")


def run(given: Job) -> None:
    """Run a job to its end."""
    with given.start() as running:
        for _ in running.run():
            pass


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file."""
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def test_each_output_gets_its_rows(tmp_path: Path) -> None:
    """Predictions, outcomes and dead letters go where the configuration says."""
    run(job(output__outcomes="met.jsonl", output__dead_letters="dead.csv"))
    (prediction,), (outcome,) = rows(tmp_path / "out.jsonl"), rows(tmp_path / "met.jsonl")
    assert (prediction["id"], outcome["id"], outcome["label"]) == ("a", "a", 1)
    header, dead_letter = (tmp_path / "dead.csv").read_text().splitlines()
    assert header == "v,reason,detail,where,topic,partition,offset,raw,base64,size"
    assert dead_letter.startswith("1,bad-score,")


def test_outcomes_only_if_they_are_wanted(tmp_path: Path) -> None:
    """By default there are predictions, and next to them dead letters if there are any."""
    given = job()
    assert given.outputs == {"predictions": "out.jsonl", "dead_letters": "out.jsonl.dead.jsonl"}
    run(given)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"in.jsonl", "out.jsonl", "out.jsonl.dead.jsonl"}


def test_where_bad_records_stop_there_are_no_dead_letters(tmp_path: Path) -> None:
    """A run that stops at the first writes no dead letters, and keeps those of another run."""
    (tmp_path / "out.jsonl.dead.jsonl").write_text("of another run")
    (tmp_path / "in.jsonl").write_bytes(RECORDS[:37])
    given = job(output__on_bad_record="stop")
    assert given.limit.stop
    run(given)
    assert (tmp_path / "out.jsonl.dead.jsonl").read_text() == "of another run"


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    """Mistakes are found before anything is written, and name the configuration."""
    flags = {"input__observations": "inn.jsonl", "state__path": "no/abers.state"}
    with pytest.raises(ConfigError) as error:
        job(**flags)
    assert error.value.problems == (
        "abers.toml: input.observations: inn.jsonl: no such file; did you mean in.jsonl?",
        "abers.toml: state.path: there is no directory no; create it first",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_an_output_that_cannot_be_opened(tmp_path: Path) -> None:
    """An output that cannot be opened leaves no partial file of the others."""
    (tmp_path / "met.jsonl").mkdir()
    flags = {
        "input.observations": "in.jsonl",
        "output.predictions": "out.jsonl",
        "output.outcomes": "met.jsonl",
    }
    with pytest.raises(ParameterError, match=r"met\.jsonl is a directory"):
        run(unchecked_job(load(flags=flags, environ={})))
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "met.jsonl"}


def test_a_state_is_bound_to_its_files(tmp_path: Path) -> None:
    """A state belongs to its inputs, its delay and its outputs; other settings may change."""
    run(job(state__path="abers.state"))
    before = (tmp_path / "out.jsonl").read_bytes()
    config = {"input.observations": "in.jsonl", "output.predictions": "out.jsonl"}
    config["state.path"] = "abers.state"
    for name, value in (
        ("input.delay", 5),
        ("input.delay", "5ms"),
        ("input.labels", "labels.jsonl"),
        ("output.outcomes", "met.jsonl"),
        ("output.dead_letters", "other.jsonl"),
    ):
        with pytest.raises(StateError, match=re.escape(f"{name} was ")):
            run(unchecked_job(load(flags={**config, name: value}, environ={})))
    assert (tmp_path / "out.jsonl").read_bytes() == before
    run(job(state__path="abers.state", state__snapshot_every=7, output__on_bad_record="stop"))
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_an_output_that_was_cut(tmp_path: Path) -> None:
    """An output that is shorter than the state expects is an error."""
    run(job(state__path="abers.state"))
    (tmp_path / "out.jsonl").write_bytes(b"")
    with pytest.raises(StateError, match=r"output out\.jsonl has 0 bytes, but .* were committed"):
        run(job(state__path="abers.state"))


def test_pipes_are_live(tmp_path: Path) -> None:
    """Rows can be read from a pipe during the run."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    reader = os.open(tmp_path / "pipe.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    with job(output__predictions="pipe.jsonl").start() as running:
        next(running.run())
        assert os.read(reader, 1000).startswith(b'{"v":1,"id":"a"')
    os.close(reader)

"""A run that is killed at any moment and restarted.

Its final outputs and state equal those of a run that was never stopped, to the byte.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest
import zstandard
from tests.connectors.conftest import COMMAND
from tests.connectors.processes import killed_after, until

from abers.stream import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

CONFIG = """
[input]
observations = "../scores.jsonl"
labels = "../labels.csv.gz"
[calibrator]
window = 500
[limits]
label_timeout = "20m"
[output]
predictions = "predictions.jsonl"
outcomes = "outcomes.{suffix}"
dead_letters = "dead.jsonl.gz"
[state]
path = "abers.state"
snapshot_every = 1000
"""
SIZE = 15_000


def write_inputs(folder: Path) -> None:
    """Write scores and labels, some of them bad, some without the other."""
    draw = random.Random(7)  # noqa: S311 - no secret
    with (
        (folder / "scores.jsonl").open("w") as scores,
        gzip.open(folder / "labels.csv.gz", "wt") as labels,
    ):
        labels.write("id,time,model,label\n")
        for i in range(SIZE):
            time, model, score = 1_700_000_000_000 + 1000 * i, draw.choice("ab"), draw.random()
            scores.write(json.dumps({"id": f"a{i}", "time": time, "model": model, "score": score}))
            scores.write("\n" + '{"id": oops\n' * (draw.random() < 0.002))
            if draw.random() < 0.99:
                label = int(draw.random() < score)
                labels.write(f"a{i},{time + 300_000},{model},{label}\n")
            if draw.random() < 0.002:
                labels.write(f"unknown{i},{time + 300_000},{model},1\n")


def lines_of_zstd(path: Path) -> list[bytes]:
    """Read a file of several zstd frames."""
    with path.open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        return reader.read().splitlines()


READ: dict[str, Callable[[Path], list[Any]]] = {
    "csv.zst": lines_of_zstd,
    "parquet": lambda path: pyarrow.parquet.read_table(path).to_pylist(),
}


def started(folder: Path) -> subprocess.Popen[bytes]:
    """Start the command."""
    return subprocess.Popen([COMMAND, "run", "abers.toml", "--json"], cwd=folder, stderr=-1)


def run_to_the_end(folder: Path) -> None:
    """Run the command until everything is read."""
    process = started(folder)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err


def kill_after(folder: Path, more: int) -> bool:
    """Run until so many more bytes are predicted, then kill it; False if it ended before."""
    output = folder / "predictions.jsonl"
    size = output.stat().st_size if output.exists() else 0
    return killed_after(started(folder), output, size + more)


@pytest.mark.parametrize("suffix", ["csv.zst", pytest.param("parquet", marks=pytest.mark.long)])
def test_killed_again_and_again(tmp_path: Path, suffix: str) -> None:
    """Outputs of every kind, and the state, are equal to those of a run that was never killed."""
    write_inputs(tmp_path)
    folders = tmp_path / "whole", tmp_path / "killed"
    for folder in folders:
        folder.mkdir()
        (folder / "abers.toml").write_text(CONFIG.format(suffix=suffix))
    draw = random.Random(suffix)  # noqa: S311 - no secret
    kills = sum(kill_after(folders[1], draw.randrange(600_000)) for _ in range(5))
    assert kills >= 2
    for folder in folders:
        run_to_the_end(folder)

    def written(folder: Path) -> list[Any]:
        dead = gzip.decompress((folder / "dead.jsonl.gz").read_bytes())
        state = snapshot.read((folder / "abers.state").read_bytes()).components
        return [
            (folder / "predictions.jsonl").read_bytes(),
            READ[suffix](folder / f"outcomes.{suffix}"),
            dead,
            {name: bytes(one.payload) for name, one in state.items() if name != "history"},
        ]

    whole, killed = map(written, folders)
    assert len(whole[0].splitlines()) == SIZE
    assert whole == killed


def lines(ids: Iterable[str]) -> str:
    """Return observations as lines."""
    rows = ({"id": one, "time": n, "score": 0.5} for n, one in enumerate(ids, 1))
    return "".join(json.dumps(row) + "\n" for row in rows)


def ran(folder: Path, stdin: str = "") -> tuple[int, str]:
    """Run the command, and return its exit code and its messages."""
    done = subprocess.run(
        [COMMAND, "run", "abers.toml", "--json"],
        cwd=folder,
        input=stdin.encode(),
        capture_output=True,
        timeout=240,
        check=False,
    )
    return done.returncode, done.stderr.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory where a run has read three records, and has a state."""
    (tmp_path / "in.jsonl").write_text(lines("abc"))
    (tmp_path / "abers.toml").write_text(SMALL.format(input="in.jsonl"))
    run_to_the_end(tmp_path)
    return tmp_path


SMALL = """
[input]
observations = "{input}"
format = "jsonl"
[output]
predictions = "out.jsonl"
[state]
path = "abers.state"
"""


def test_an_input_that_was_replaced(folder: Path) -> None:
    """A changed input is never skipped silently: the run ends with 78, and changes nothing."""
    before = (folder / "abers.state").read_bytes(), (folder / "out.jsonl").read_bytes()
    (folder / "in.jsonl").write_text(lines("xyzuvw"))
    code, err = ran(folder)
    assert code == 78
    assert "error: input in.jsonl is not what was read before: its first 3 records differ\n" in err
    assert before == ((folder / "abers.state").read_bytes(), (folder / "out.jsonl").read_bytes())
    (folder / "in.jsonl").write_text(lines("abcd"))
    run_to_the_end(folder)
    ids = [json.loads(line)["id"] for line in (folder / "out.jsonl").read_bytes().splitlines()]
    assert ids == ["a", "b", "c", "d"]


def test_a_state_that_was_lost(folder: Path) -> None:
    """The outputs of an earlier run are not overwritten, and `abers check` says so too."""
    (folder / "abers.state").unlink()
    before = (folder / "out.jsonl").read_bytes()
    code, err = ran(folder)
    assert code == 78
    problem = (
        "state.path: abers.state: there is no state, but output.predictions out.jsonl is there"
    )
    assert problem in err
    check = [str(COMMAND), "check", "abers.toml"]
    checked = subprocess.run(check, cwd=folder, capture_output=True, timeout=240, check=False)
    assert checked.returncode == 78
    assert problem.encode() in checked.stderr
    assert (folder / "out.jsonl").read_bytes() == before
    (folder / "out.jsonl").unlink()
    run_to_the_end(folder)
    assert (folder / "out.jsonl").read_bytes() == before


def test_standard_input_begins_where_it_began(folder: Path) -> None:
    """A pipe must start from the beginning again; other content is refused."""
    for name in ("abers.state", "out.jsonl"):
        (folder / name).unlink()
    (folder / "abers.toml").write_text(SMALL.format(input="-"))
    assert ran(folder, lines("abc"))[0] == 0
    code, err = ran(folder, lines("def"))
    assert code == 78
    assert "input standard input is not what was read before: its first 3 records differ" in err
    assert ran(folder, lines("abcd"))[0] == 0
    assert len((folder / "out.jsonl").read_bytes().splitlines()) == 4


def test_a_run_that_was_killed_before_its_first_state(folder: Path) -> None:
    """A run killed at its start leaves an initial state, so that its outputs are its own."""
    (folder / "abers.state").unlink()
    (folder / "out.jsonl").unlink()
    (folder / "abers.toml").write_text(SMALL.format(input="-"))
    process = subprocess.Popen([COMMAND, "run", "abers.toml"], cwd=folder, stdin=-1, stderr=-1)
    assert until(process, (folder / "out.jsonl").exists)
    process.kill()
    process.communicate(timeout=240)
    (folder / "out.jsonl").write_text("something that came before the first state")
    assert ran(folder, lines("abcd"))[0] == 0
    assert len((folder / "out.jsonl").read_bytes().splitlines()) == 4


def test_again_without_news(tmp_path: Path) -> None:
    """A second run changes nothing; if the inputs have grown it processes the new records."""
    write_inputs(tmp_path)
    folder = tmp_path / "whole"
    folder.mkdir()
    (folder / "abers.toml").write_text(CONFIG.format(suffix="jsonl"))
    run_to_the_end(folder)
    names = "predictions.jsonl", "outcomes.jsonl", "dead.jsonl.gz"
    before = {name: (folder / name).read_bytes() for name in names}
    run_to_the_end(folder)
    assert {name: (folder / name).read_bytes() for name in names} == before
    with (tmp_path / "scores.jsonl").open("a") as scores:
        scores.write('{"id": "new", "time": 1700015000000, "model": "a", "score": 0.5}\n')
    run_to_the_end(folder)
    after = (folder / "predictions.jsonl").read_bytes()
    assert after.startswith(before["predictions.jsonl"])
    assert json.loads(after.splitlines()[-1])["id"] == "new"

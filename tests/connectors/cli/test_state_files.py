"""A run with a saved state, from outside: where it continues, and what it refuses.

An unusable state ends in exit code 78 and a sentence that says what differs and what to do, before
anything is read or written.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.connectors.conftest import COMMAND, in_a_line
from tests.connectors.keys import KEY, OTHER
from tests.connectors.processes import killed_after

from abers_connectors.cli.inspection import inspected

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran

    Run = Callable[..., tuple[int, str]]

CONFIG = """
[input]
observations = "in.jsonl"
[output]
predictions = "out.jsonl"
outcomes = "met.csv.gz"
[state]
path = "abers.state"
snapshot_every = 1
"""
OUTPUTS = "out.jsonl", "met.csv.gz", "out.jsonl.dead.jsonl"


def lines(first: int, last: int) -> str:
    """Return observations with features and a score, their labels, and a bad line."""
    found = ["oops"]
    for n in range(first, last):
        x = {"a": n % 7 / 7, "b": n % 11 / 11}
        found.append(json.dumps({"id": f"a{n}", "time": 1000 * n, "score": x["a"], "x": x}))
        found.append(json.dumps({"id": f"a{n}", "time": 1000 * n + 5, "label": int(n % 3 == 0)}))
    return "\n".join(found) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with a configuration and an input."""
    made = tmp_path / "parts"
    made.mkdir()
    (made / "abers.toml").write_text(CONFIG)
    (made / "in.jsonl").write_text(lines(0, 200))
    return made


@pytest.fixture
def run(invoke: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the configuration in a directory, under a key; return exit code and standard error."""

    def ran(folder: Path, key: str = "") -> tuple[int, str]:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("ABERS_STATE_KEY", key)
        code, _, err = invoke("run", "abers.toml")
        return code, err

    return ran


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files of a directory."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def set_in_config(folder: Path, old: str, new: str) -> None:
    """Change the configuration."""
    (folder / "abers.toml").write_text(CONFIG.replace(old, new))


def damage(folder: Path) -> None:
    """Change a byte of the state."""
    state = bytearray((folder / "abers.state").read_bytes())
    state[len(state) // 2] ^= 1
    (folder / "abers.state").write_bytes(state)


def cut(folder: Path) -> None:
    """Cut the state off."""
    (folder / "abers.state").write_bytes((folder / "abers.state").read_bytes()[:-7])


def take_another(folder: Path) -> None:
    """Put something else in place of the state."""
    (folder / "abers.state").write_text(CONFIG)


def shorten(folder: Path) -> None:
    """Cut off what was written."""
    (folder / "out.jsonl").write_bytes((folder / "out.jsonl").read_bytes()[:-7])


def shrink(folder: Path) -> None:
    """Put a shorter file in place of the input."""
    (folder / "in.jsonl").write_text(lines(0, 100))


def lose(folder: Path) -> None:
    """Remove what was written."""
    (folder / "met.csv.gz").unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (damage, "abers.state: a snapshot of a processor has a wrong checksum; "),
        (cut, "abers.state: a snapshot of a processor has a wrong checksum; "),
        (take_another, "abers.state: not a snapshot of a processor; "),
        (shrink, "input in.jsonl has 201 records, but 401 were read before; "),
        (shorten, "output out.jsonl has "),
        (lose, "output met.csv.gz has 0 bytes, but "),
        (
            lambda folder: set_in_config(folder, "[output]", "[calibrator]\nwindow = 7\n[output]"),
            "abers.state: the snapshot was made with other settings: window was None and is 7; ",
        ),
        (
            lambda folder: set_in_config(folder, "[output]", "delay = 5\n[output]"),
            "abers.state: the state was made with other files: input.delay was None and is '5'; ",
        ),
        (
            lambda folder: set_in_config(folder, "out.jsonl", "out.parquet"),
            "abers.state: the state was made with other files: output.predictions was ",
        ),
    ],
)
def test_what_must_not_be_used(
    run: Run, folder: Path, change: Callable[[Path], None], message: str
) -> None:
    """The file is named with the remedy; inputs, outputs and state stay as they are."""
    assert run(folder)[0] == 0
    with (folder / "in.jsonl").open("a") as file:
        file.write(lines(200, 300))
    change(folder)
    before = contents(folder)
    code, err = run(folder)
    assert code == 78
    err = in_a_line(err)
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
    assert "; " in err
    assert contents(folder) == before


def test_a_learner_without_a_key(run: Run, folder: Path) -> None:
    """A missing secret is reported before anything is read or written."""
    set_in_config(folder, "[input]", "[learner]\n[input]")
    before = contents(folder)
    code, err = run(folder)
    assert code == 78
    assert in_a_line(err) == (
        "error: abers.toml: state.path: the saved state of a learner needs a secret key; set "
        "ABERS_STATE_KEY in the environment, or state.key_file (`abers state new-key` creates "
        "one), or remove state.path\n"
    )
    assert contents(folder) == before


def test_a_learner_under_another_key(run: Run, folder: Path) -> None:
    """A state that was sealed with another secret is not opened."""
    set_in_config(folder, "[input]", "[learner]\n[input]")
    assert run(folder, KEY)[0] == 0
    before = contents(folder)
    code, err = run(folder, OTHER)
    assert code == 78
    assert "sealed under another key" in err
    assert contents(folder) == before


@pytest.mark.parametrize("learner", ["", "[learner]\n"])
def test_grown_inputs_are_read_on(run: Run, folder: Path, learner: str) -> None:
    """In parts or at once, scored by a learner or not, the same is written."""
    whole = folder.with_name("whole")
    whole.mkdir()
    parts = [lines(0, 200), lines(200, 201), "", lines(201, 500)]
    for one in (folder, whole):
        set_in_config(one, "[input]", f"{learner}[input]")
    (whole / "in.jsonl").write_text("".join(parts))
    assert run(whole, KEY)[0] == 0
    for number in range(1, len(parts) + 1):
        (folder / "in.jsonl").write_text("".join(parts[:number]))
        assert run(folder, KEY)[0] == 0
    found, expected = contents(folder), contents(whole)
    for name in ("out.jsonl", "out.jsonl.dead.jsonl"):
        assert found[name] == expected[name]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.filterwarnings("ignore:.*the last record has no end yet")
def test_a_last_line_that_is_half_written(run: Run, folder: Path, form: str) -> None:
    """Wherever the input ended when a run met it, the next one reads the record whole."""
    last = {
        "jsonl": '{"id": "last", "time": 2000, "score": 0.125}\n',
        "csv": "last,2000,0.125\n",
    }[form]
    first = {
        "jsonl": '{"id": "first", "time": 1000, "score": 0.5}\n',
        "csv": "id,time,score\nfirst,1000,0.5\n",
    }[form]
    set_in_config(folder, "in.jsonl", f"in.{form}")
    for cut in range(len(last)):
        for text in (first + last[:cut], first + last):
            (folder / f"in.{form}").write_text(text)
            assert run(folder)[0] == 0
        rows = [json.loads(line) for line in (folder / "out.jsonl").read_bytes().splitlines()]
        assert [(row["id"], row["score"]) for row in rows] == [("first", 0.5), ("last", 0.125)]
        assert not (folder / OUTPUTS[2]).exists()
        for name in ("abers.state", *OUTPUTS[:2]):
            (folder / name).unlink()


def test_again_without_news(run: Run, folder: Path) -> None:
    """A second run without new input changes nothing, not even the state."""
    assert run(folder)[0] == 0
    before = contents(folder)
    assert set(before) == {"abers.toml", "in.jsonl", "abers.state", *OUTPUTS}
    assert run(folder)[0] == 0
    assert contents(folder) == before


@pytest.mark.parametrize(("delay", "behind", "waiting"), [("5", 5, 5), ('"7s"', 6, 7)])
def test_late_labels_of_a_grown_file(
    run: Run, folder: Path, delay: str, behind: int, waiting: int
) -> None:
    """A label waits for the rows that are appended, so no prediction knows it too early."""

    def labelled(first: int, last: int) -> str:
        rows = [{"id": f"a{n}", "time": 1000 * n, "score": 0.5} for n in range(first, last)]
        return "".join(json.dumps(row | {"label": n % 2}) + "\n" for n, row in enumerate(rows))

    set_in_config(folder, "[output]", f"delay = {delay}\n[output]")
    for last in (20, 20, 23, 60):
        (folder / "in.jsonl").write_text(labelled(0, last))
        assert run(folder)[0] == 0
    code, out = run(folder)
    assert code == 0
    assert "duplicate" not in out
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_bytes().splitlines()]
    assert [row["id"] for row in rows] == [f"a{n}" for n in range(60)]
    assert [row["n_labels"] for row in rows] == [max(0, n - behind) for n in range(60)]
    found = inspected("abers.state")
    assert (found.counters["labels"], found.waiting_for_labels) == (60 - waiting, waiting)


LATE = {
    "by count": "delay = 5",
    "by time": 'delay = "7s"',
    "own times": 'fields.label_time = "known"',
    "a second file": 'labels = "labels.jsonl"',
}


@pytest.mark.parametrize("late", LATE)
def test_a_file_that_grows_knows_no_label_too_early(run: Run, folder: Path, late: str) -> None:
    """In pieces a file has the predictions of one run, though labels are there beforehand."""
    rows = [
        {"id": f"a{n}", "time": 1000 * n, "score": n % 7 / 7, "label": n % 2, "known": 1400 * n}
        for n in range(90)
    ]
    labels = [{"id": row["id"], "time": row["known"], "label": row["label"]} for row in rows]
    if late == "a second file":
        rows = [{name: row[name] for name in ("id", "time", "score")} for row in rows]
    whole = folder.with_name("whole")
    whole.mkdir()
    for one, ends in ((folder, (20, 20, 47, 48, 90)), (whole, (90,))):
        (one / "abers.toml").write_text(CONFIG.replace("[output]", f"{LATE[late]}\n[output]"))
        (one / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
        for end in ends:
            (one / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:end]))
            assert run(one)[0] == 0
    found, expected = contents(folder), contents(whole)
    assert found["out.jsonl"] == expected["out.jsonl"]
    assert gzip.decompress(found["met.csv.gz"]) == gzip.decompress(expected["met.csv.gz"])


@pytest.mark.parametrize("count", [1_500, pytest.param(4_000, marks=pytest.mark.long)])
def test_a_learner_that_is_killed(run: Run, folder: Path, count: int) -> None:
    """Killed and started again, a run with a learner predicts what it would have."""
    (folder / "in.jsonl").write_text(lines(0, count))
    set_in_config(folder, "[input]", "[learner]\n[input]")
    whole = folder.with_name("whole")
    whole.mkdir()
    for name in ("in.jsonl", "abers.toml"):
        (whole / name).write_bytes((folder / name).read_bytes())
    assert run(whole, KEY)[0] == 0

    draw, kills = random.Random(4), 0  # noqa: S311 - no secret
    output, env = folder / "out.jsonl", os.environ | {"ABERS_STATE_KEY": KEY}
    for _ in range(2):
        size = output.stat().st_size if output.exists() else 0
        more = draw.randrange(1, 50 * count)
        process = subprocess.Popen([COMMAND, "run", "abers.toml"], cwd=folder, env=env, stderr=-1)
        kills += killed_after(process, output, size + more)
    assert kills >= 1
    assert run(folder, KEY)[0] == 0
    found, expected = contents(folder), contents(whole)
    for name in ("out.jsonl", "out.jsonl.dead.jsonl"):
        assert found[name] == expected[name]

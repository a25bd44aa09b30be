"""Files that are not in the order of time: sorted with a sentence, or refused with a command."""

from __future__ import annotations

import json
import random
import subprocess
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.connectors.conftest import COMMAND, in_a_line

from abers_connectors.sources.ordered import Bounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.conftest import Ran

    Invoke = Callable[..., Ran]

START, HOUR = 1_772_323_200_000, 3_600_000
SORTED = "are sorted by time."
CONFIG = """
[input]
observations = "s.csv"
{keys}
[output]
predictions = "o.jsonl"
[limits]
label_timeout = "1000d"
"""


def history(rows: int = 600) -> list[dict[str, Any]]:
    """Return labelled rows of two models in the order of time; some have equal times."""
    draw = random.Random(3)  # noqa: S311 - no secret
    scores = [draw.random() for _ in range(rows)]
    return [
        {
            "id": f"a{n}",
            "time": START + HOUR * (n // 2),
            "model": f"m{n % 3}",
            "score": score,
            "label": int(draw.random() < score),
        }
        for n, score in enumerate(scores)
    ]


def mixed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows out of order: the last third first, and rows of equal time as they were."""
    return [*rows[400:], *rows[200:400], *rows[:200]]


def write(path: str, rows: list[dict[str, Any]]) -> str:
    """Write rows in the format of a name."""
    file = Path(path)
    if file.suffix == "":
        file.mkdir()
        for n, part in enumerate((rows[:300], rows[300:])):
            pq.write_table(pa.Table.from_pylist(part), file / f"{n}.parquet")
    elif file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=50)
    elif file.suffix == ".csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        file.write_text("\n".join(lines) + "\n")
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def same(invoke: Invoke, first: tuple[str, ...], second: tuple[str, ...]) -> tuple[Ran, Ran]:
    """Require equal predictions of two runs, and return the runs."""
    found = []
    for words in (first, second):
        ran = invoke(*words)
        assert ran.code == 0, ran.err
        found.append((Path("o.jsonl").read_bytes(), ran))
        Path("o.jsonl").unlink()
    assert found[0][0] == found[1][0]
    return found[0][1], found[1][1]


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl", "s.parquet", "s"])
@pytest.mark.parametrize("words", [(), ("--model", "m1"), ("--workers", "2")])
def test_a_file_out_of_order_is_sorted(invoke: Invoke, name: str, words: tuple[str, ...]) -> None:
    """The predictions are those of the sorted file, and one sentence says that it was sorted."""
    write(name, mixed(history()))
    write("sorted.csv", history())
    options = ("--delay", "6h", "-o", "o.jsonl", *words)
    with pytest.warns(UserWarning, match=SORTED) as caught:
        same(invoke, ("replay", name, *options), ("replay", "sorted.csv", *options))
    assert [str(one.message).count(SORTED) for one in caught] == [1]


def test_a_verdict_ends_after_it_began(invoke: Invoke) -> None:
    """A newest-first file has the verdict of the sorted one."""
    rows = [{**row, "time": START + HOUR * n, "model": "m"} for n, row in enumerate(history())]
    write("s.csv", [{**row, "score": row["score"] ** 6} for row in rows][::-1])
    with pytest.warns(UserWarning, match=SORTED):
        ran = invoke("replay", "s.csv", "--delay", "5", "--json")
    (raw, _) = json.loads(ran.out)["verdicts"]
    assert raw["status"] != "no miscalibration found"
    assert raw["since"] < raw["until"]


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl", "s.parquet"])
def test_a_log_that_is_newest_first_is_sorted(invoke: Invoke, name: str) -> None:
    """Observations and labels as rows of their own, newest first, give what the log gives."""
    rows = [{**row, "time": START + HOUR * n, "model": "m"} for n, row in enumerate(history())]
    scored = [{**row, "score": row["score"] ** 6, "label": None} for row in rows]
    labels = [{**row, "score": None, "time": row["time"] + 9 * HOUR // 2} for row in rows]
    log = sorted([*scored, *labels], key=lambda row: row["time"])
    text = [{k: "" if v is None else v for k, v in row.items()} for row in log]
    found = []
    for order in (1, -1):
        write(name, (text if name == "s.csv" else log)[::order])
        Path("c.toml").write_text(CONFIG.format(keys="").replace("s.csv", name))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ran = invoke("run", "c.toml", "--json")
        assert ran.code == 0, ran.err
        assert [SORTED in str(one.message) for one in caught] == [True] * (order < 0)
        found.append((Path("o.jsonl").read_bytes(), json.loads(ran.out)["verdicts"]))
    assert found[0] == found[1]
    assert found[0][1][0]["since"] < found[0][1][0]["until"]


def test_the_sentence_stands_once_on_standard_error(tmp_path: Path) -> None:
    """The sentence names the file, the row, and both times."""
    path = write(str(tmp_path / "s.csv"), history()[::-1])
    words = [str(COMMAND), "replay", path, "--delays", "0,5"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    lines = [line for line in ran.stderr.splitlines() if SORTED in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"Warning: {path} line 4 is of 2026-03-13 10:00:00 UTC, after a row")


@pytest.mark.filterwarnings("ignore:.*are sorted by time")
@pytest.mark.parametrize("keys", ["delay = 5", 'labels = "l.csv"'])
def test_inputs_of_a_configuration_are_sorted(invoke: Invoke, keys: str) -> None:
    """Each input of a configuration may be out of order."""
    scores, labels = history(), []
    if "labels" in keys:
        labels = [{k: row[k] for k in ("id", "time", "model", "label")} for row in scores]
        labels = [{**row, "time": row["time"] + HOUR} for row in labels]
        scores = [{k: v for k, v in row.items() if k != "label"} for row in scores]
    Path("c.toml").write_text(CONFIG.format(keys=keys))
    found = []
    for order in (mixed, list):
        write("s.csv", order(scores))
        if labels:
            write("l.csv", order(labels))
        ran = invoke("run", "c.toml")
        assert ran.code == 0, ran.err
        found.append(Path("o.jsonl").read_bytes())
    assert found[0] == found[1]


def test_records_that_came_late_stay_where_they_are(invoke: Invoke) -> None:
    """Observations and labels in one file are taken as they came, and late ones are counted."""
    rows = [{**row, "label": ""} for row in history(6)]
    write("s.csv", [rows[4], rows[0], rows[5]])
    Path("c.toml").write_text(CONFIG.format(keys=""))
    ran = invoke("run", "c.toml", "--json")
    assert ran.code == 0, ran.err
    lines = Path("o.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["a4", "a0", "a5"]


def test_what_can_be_read_only_once_is_refused(tmp_path: Path) -> None:
    """Standard input is not sorted, and the message names the line and says what to do."""
    text = Path(write(str(tmp_path / "s.csv"), history()[::-1])).read_text()
    config = tmp_path / "c.toml"
    config.write_text(CONFIG.format(keys='format = "csv"\ndelay = 5').replace("s.csv", "-"))
    words = [str(COMMAND), "run", "c.toml"]
    ran = subprocess.run(
        words, input=text, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 1
    assert "standard input line 4 is of 2026-03-13 10:00:00 UTC, after a row of" in ran.stderr
    assert "Sort the input by time first, and pass it again." in ran.stderr
    assert not (tmp_path / "o.jsonl").exists()


def test_a_file_that_is_too_large_is_refused(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file beyond what is sorted in memory is refused with a command, before any output."""
    monkeypatch.setattr("abers_connectors.replay.job.Bounds", lambda *_: Bounds(1000, 10_000))
    ran = invoke("replay", write("s.csv", history()[::-1]), "--delay", "5", "-o", "o.jsonl")
    assert ran.code == 1
    assert "sort it first: cat s.csv | (IFS= read -r head;" in ran.err
    assert not Path("o.jsonl").exists()


@pytest.mark.filterwarnings("ignore:.*are sorted by time")
def test_a_state_goes_on_behind_rows_that_were_sorted(invoke: Invoke) -> None:
    """Rows that are appended are sorted among themselves; those of before are refused."""
    rows = [{**row, "time": START + HOUR * n} for n, row in enumerate(history())]
    config = CONFIG.format(keys="delay = 0") + '[state]\npath = "state"\nsnapshot_every = 100\n'
    Path("c.toml").write_text(config)
    write("s.csv", rows[:400][::-1])
    assert invoke("run", "c.toml").code == 0
    lines = [",".join(map(str, row.values())) + "\n" for row in rows]
    with Path("s.csv").open("a") as file:
        file.writelines([*lines[401:500][::-1], lines[400]])
    assert invoke("run", "c.toml").code == 0
    found = [json.loads(line)["id"] for line in Path("o.jsonl").read_text().splitlines()]
    assert found == [f"a{n}" for n in range(500)]
    with Path("s.csv").open("a") as file:
        file.write(lines[450].replace("a450", "late"))
    ran = invoke("run", "c.toml")
    assert ran.code == 1
    assert "s.csv line 502 is of " in ran.err
    assert "Later rows were processed before; remove state and outputs" in in_a_line(ran.err)

"""A report from before a run to after it, `abers_connectors.dashboard.report`, by the command."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.connectors.dashboard.replays import Outline, titles

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.connectors.conftest import Ran

    Invoke = Callable[..., Ran]

ROWS = "".join(f"{(7 * n) % 101 / 100},{int(n % 7 > 2)}\n" for n in range(300))
REPLAY = ("replay", "in.csv", "--scores", "probability", "--delay", "10", "--output")


@pytest.fixture(autouse=True)
def _stream(tmp_path: Path) -> None:
    """Write a small stream."""
    (tmp_path / "in.csv").write_text("score,label\n" + ROWS)


def test_a_report_changes_nothing(invoke: Invoke, tmp_path: Path) -> None:
    """Predictions are the same with a report of either kind as without one."""
    assert invoke(*REPLAY, "alone.jsonl").code == 0
    for report in ("r.html", "r.json"):
        ran = invoke(*REPLAY, "watched.jsonl", "--report", report)
        assert ran.code == 0, ran.err
        assert f"Report: {report}\n" in ran.err
        alone, watched = (tmp_path / f"{name}.jsonl" for name in ("alone", "watched"))
        assert watched.read_bytes() == alone.read_bytes()


@pytest.mark.parametrize("report", ["r.html", "r.json"])
def test_the_same_replay_gives_the_same_report(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path, report: str
) -> None:
    """In another process, at another time, a report has the same bytes."""
    found = []
    for seed in ("1", "2"):
        process = start(*REPLAY, "p.jsonl", "--report", report, PYTHONHASHSEED=seed)
        _, err = process.communicate()
        assert process.returncode == 0, err.decode()
        found.append((tmp_path / report).read_bytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("report", ["r.html", "r.json"])
def test_a_run_that_fails_leaves_no_report(invoke: Invoke, tmp_path: Path, report: str) -> None:
    """An old report stays as it was, and nothing half written is left next to it."""
    (tmp_path / "in.csv").write_text("score,label\n" + ROWS + "oops,1\n")
    (tmp_path / report).write_text("old")
    before = {*tmp_path.iterdir()}
    assert invoke(*REPLAY, "p.jsonl", "--report", report).code == 1
    assert {*tmp_path.iterdir()} == before
    assert (tmp_path / report).read_text() == "old"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--report", "r.pdf"], "--report r.pdf: name a file that ends in .html"),
        (["--report", "html"], "--report html: name a file that ends in .html"),
        (["--report", "nowhere/r.html"], "output nowhere/r.html: there is no directory"),
        (["--report", "r.pdf", "--compare", "ivap"], "--report r.pdf: name a file that ends in"),
        (["--report", "r.html", "--delays", "0,5"], "--report does not go with --delays"),
    ],
)
def test_a_report_that_cannot_be(
    invoke: Invoke, tmp_path: Path, words: list[str], message: str
) -> None:
    """A report that cannot be written is an error before the run, and nothing is written."""
    before = {*tmp_path.iterdir()}
    tables = {"--compare", "--delays"} & {*words}
    words = [*(REPLAY[:-1] if tables else [*REPLAY, "p.jsonl"]), *words]
    ran = invoke(*words)
    assert ran.code == 2
    assert message in ran.err
    assert {*tmp_path.iterdir()} == before


def test_a_report_of_a_comparison(invoke: Invoke, tmp_path: Path) -> None:
    """With --compare a report has a part for each calibrator, as a page and as JSON."""
    words = (*REPLAY[:-1], "--compare", "ivap,platt")
    assert invoke(*words, "--report", "r.json").code == 0
    found = json.loads((tmp_path / "r.json").read_text())["calibrators"]
    assert [*found] == ["ivap", "platt"]
    alone = (*REPLAY, "p.jsonl", "--probability", "merged", "--report", "alone.json")
    assert invoke(*alone).code == 0
    one = json.loads((tmp_path / "alone.json").read_text())
    assert one["calibrated"] == found["ivap"]["calibrated"]
    assert invoke(*words, "--report", "r.html").code == 0
    page = (tmp_path / "r.html").read_text()
    assert sorted(titles(page)) == ["ivap", "platt"]
    assert 'id="models:title">Calibrators</h2>' in page


def test_a_comparison_draws_the_reference(invoke: Invoke, tmp_path: Path) -> None:
    """The scores of a reference period are in each part of the report of a comparison."""
    words = (*REPLAY[:-1], "--compare", "ivap,platt", "--report", "r.html")
    assert invoke(*words).code == 0
    ran = invoke(*words, "--reference", "1..150")
    assert ran.code == 0, ran.err
    assert (tmp_path / "r.html").read_text().count("Reference period, 1 to 150") == 2


def test_a_report_into_a_pipe(invoke: Invoke, tmp_path: Path) -> None:
    """A pipe or a device is written to, and stays what it is."""
    os.mkfifo(tmp_path / "r.json")
    reader = os.open(tmp_path / "r.json", os.O_RDONLY | os.O_NONBLOCK)
    try:
        ran = invoke(*REPLAY, "p.jsonl", "--report", "r.json")
        assert ran.code == 0, ran.err
        assert (tmp_path / "r.json").is_fifo()
        assert json.loads(os.read(reader, 1 << 16))["labels"] == 300
    finally:
        os.close(reader)


def test_a_report_beside_predictions_on_standard_output(invoke: Invoke, tmp_path: Path) -> None:
    """Standard output has predictions only."""
    ran = invoke(*REPLAY, "-", "--report", "r.json")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 300
    assert (tmp_path / "r.json").exists()


def test_a_stream_that_comes_along(invoke: Invoke) -> None:
    """A report of a built-in dataset names its learner."""
    ran = invoke("replay", "Phishing", "--output", "p.jsonl", "--report", "r.html")
    assert ran.code == 0, ran.err
    page = Path("r.html").read_text()
    assert ["learner", "logistic"] in [row for table in Outline(page).tables for row in table]


def test_the_command(invoke: Invoke, tmp_path: Path) -> None:
    """`abers report` leaves the report that `abers replay --report` would, and nothing else."""
    words = ("in.csv", "--scores", "probability", "--delay", "10")
    before = {one.name for one in tmp_path.iterdir()}
    ran = invoke("report", *words, "--output", "a.json")
    assert ran.code == 0, ran.err
    assert "Calibrated" in ran.out
    assert {one.name for one in tmp_path.iterdir()} - before == {"a.json"}
    assert invoke("replay", *words, "--output", "p.csv", "--report", "b.json").code == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_the_evidence_is_shown_all_along(invoke: Invoke, tmp_path: Path) -> None:
    """The evidence of a file that is read in one batch is recorded every few hundred labels."""
    (tmp_path / "in.csv").write_text("score,label\n" + ROWS * 10)
    assert invoke("report", "in.csv", "--scores", "probability", "--output", "r.json").code == 0
    evidence = json.loads((tmp_path / "r.json").read_bytes())["evidence"]
    labels = [0, *(point["labels"] for point in evidence)]
    assert labels[-1] == 3_000
    assert max(np.diff(labels)) <= 500

"""A reference period, `abers_connectors.dashboard.observer`, next to the whole stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.connectors.dashboard.replays import Outline, command

from abers.stream import Events, Label, Observation, Processor, Settings
from abers_connectors.dashboard.observer import ReferencePeriod

if TYPE_CHECKING:
    from pathlib import Path


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`abers replay --reference` has its scores in the report, and refuses what is no period."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n},0.5,{n % 2}\n" for n in range(100))
    (tmp_path / "in.csv").write_text(f"time,score,label\n{rows}")
    words = ["replay", "in.csv", "--scores", "probability", "-o", "out.jsonl"]
    code, _, err = command(*words, "--report", "r.html", "--reference", "10..30")
    assert code == 0, err
    page = (tmp_path / "r.html").read_text()
    assert "Reference period, 10 to 30" in page
    assert "The scores of its 20 labels." in page
    _, ours = (one for one in Outline(page).tables if one[0][0] == "score")
    assert ["Brier score", "0.2500"] in [[row[0], row[2]] for row in ours]
    for given, reason in (
        (["--report", "r.html", "--reference", "10"], "write START..END"),
        (["--report", "r.html", "--reference", "30..10"], "the end is not after the start"),
        (["--report", "r.html", "--reference", "x..10"], "--reference"),
        (["--reference", "10..30"], "add --report FILE or --live"),
    ):
        code, _, err = command(*words, *given)
        assert code == 2
        assert reason in " ".join(err.split())


def test_times_in_the_zone_of_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of --reference and --since without an offset are in the zone of --timezone."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"2026-01-01 {n // 60:02}:{n % 60:02}:00,0.5,{n % 2}\n" for n in range(100))
    (tmp_path / "in.csv").write_text(f"time,score,label\n{rows}")
    words = ["replay", "in.csv", "--scores", "probability", "--timezone", "Europe/Berlin"]
    words += ["--report", "r.html", "--since", "2026-01-01 00:10", "-o", "out.jsonl"]
    code, _, err = command(*words, "--reference", "2026-01-01 00:20..2026-01-01 00:50")
    assert code == 0, err
    assert "The scores of its 30 labels." in (tmp_path / "r.html").read_text()
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 90


def test_it_is_shaded_and_compared_with_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The period is named in the figure, and a row has what was promised and came in it."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n},0.5,{int(n % 4 == 0)}\n" for n in range(600))
    (tmp_path / "in.csv").write_text(f"time,score,label\n{rows}")
    words = ["replay", "in.csv", "--scores", "probability", "--calibrator", "ivap"]
    for suffix in ("html", "json"):
        code, _, err = command(*words, "--report", f"r.{suffix}", "--reference", "300..400")
        assert code == 0, err
    page = (tmp_path / "r.html").read_text()
    assert "reference</tspan>" in page
    head, first, now = next(one for one in Outline(page).tables if one[0][0] == "period")
    assert head[:3] == ["period", "time", "labels"]
    assert first[1].replace("\N{NO-BREAK SPACE}", " ") == "event times 300 – 400"
    assert [first[0], *first[2:4], first[-1]] == ["reference", "100", "50.0", "25.0"]
    assert now[0] == "now"
    record = json.loads((tmp_path / "r.json").read_text())["blocks"]["reference"]["reference"]
    assert (record["labels"], record["came"]["raw"], record["promised"]["raw"]) == (100, 0.25, 0.5)


def test_intervals_are_compared_by_their_main_level() -> None:
    """Of numbers the share inside the intervals nearest to 90 % is compared."""
    settings = Settings(task="regression", quantiles=(0.05, 0.5, 0.95))
    processor, period = Processor(settings), ReferencePeriod((100, 200))
    rng = np.random.default_rng(1)
    inside = list[bool]()
    for n, value in enumerate(rng.normal(size=300).tolist()):
        events: list[Observation | Label] = [
            Observation(f"{n}", n, score=0.0),
            Label(f"{n}", n, value=value),
        ]
        outputs = processor.process_batch(Events.of(events))
        assert outputs.settled_batch is not None
        period.take(processor, outputs.settled_batch)
        (covered,) = outputs.settled_batch.scored.covered.values()
        inside += covered.tolist() if 100 <= n < 200 else []
    found = period.of(processor.keys)
    assert found is not None
    assert found.shares.labels == len(inside) == 100
    assert found.shares.promised["calibrated"] == pytest.approx(0.9)
    assert found.shares.came["calibrated"] == pytest.approx(sum(inside) / 100)

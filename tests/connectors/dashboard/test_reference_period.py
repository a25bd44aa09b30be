"""A reference period, `abers_connectors.dashboard.reference_period`, next to the whole stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.connectors.dashboard.replays import Outline, command

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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

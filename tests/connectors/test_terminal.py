"""What a person sees at the end of a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from abers_connectors.config.value_types import Lateness
from abers_connectors.replay.summary import Means, Summary
from abers_connectors.terminal import show_next, show_outputs, show_summary

if TYPE_CHECKING:
    import pytest

CALIBRATED: Means = {"log_loss": 0.25, "log_loss_infinite": 0, "brier": 0.125, "ece": 0.0625}
LATE = Lateness(observations=50)
RAW: Means = {"log_loss": None, "log_loss_infinite": 3, "brier": 0.5, "ece": 0.25}


def summary(
    observations: int = 1250,
    raw: Means | None = RAW,
    calibrated: Means | None = CALIBRATED,
    dead: dict[str, int] | None = None,
    counters: dict[str, int] | None = None,
) -> Summary:
    """Return a summary with round numbers."""
    return Summary(
        records=observations,
        dead_letters=dead or {},
        observations=observations,
        labels=observations,
        raw=raw,
        calibrated=calibrated,
        mean_width=0.03125,
        events_per_second=12345.6,
        waiting=(0, 0),
        counters=counters or {},
    )


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """Return the cells that were printed on standard error, by the first of their row."""
    captured = capsys.readouterr()
    assert captured.out == ""
    rows = [re.split(r"  +", line.strip()) for line in captured.err.splitlines() if line.strip()]
    return {first: rest for first, *rest in rows}


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """It has the metrics of both views, the counts and the speed; the infinite is counted."""
    show_summary(summary(), "Phishing", delay=LATE)
    rows = shown(capsys)
    assert rows["raw score"] == ["calibrated"]
    assert rows["log loss"] == ["inf (3 of 1,250)", "0.2500"]
    assert rows["Brier score"] == ["0.5000", "0.1250"]
    assert rows["ECE, 10 bins"] == ["0.2500", "0.0625"]
    assert rows["mean interval width"] == ["0.0312"]
    assert rows["observations"] == ["1,250"]
    assert rows["labels"] == ["1,250"]
    assert rows["events a second"] == ["12,346"]
    assert "Phishing, labels 50 observations late" in rows


def test_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 40 columns no word and no number of the table is cut."""
    monkeypatch.setenv("COLUMNS", "40")
    show_summary(summary(), "Phishing", delay=LATE)
    printed = capsys.readouterr().err
    assert "…" not in printed
    assert re.search(r"^ *observations +1,250 *$", printed, re.MULTILINE)
    assert max(map(len, printed.splitlines())) <= 40


def test_the_table_of_a_regression(capsys: pytest.CaptureFixture[str]) -> None:
    """It has coverage and width of every interval, and tells what a mean leaves out."""
    raw: Means = {"crps": 0.5, "crps_infinite": 0, "pinball": 0.25, "pinball_infinite": 0}
    ends: Means = {"coverage_90": 0.875, "width_90": 2.5, "coverage_62.5": 0.5, "width_62.5": None}
    calibrated: Means = {"crps": 0.375, "crps_infinite": 1, "pinball": None, "pinball_infinite": 9}
    show_summary(summary(raw=raw, calibrated=calibrated | ends), "ChickWeights", delay=LATE)
    rows = shown(capsys)
    assert rows["CRPS"] == ["0.5000", "0.3750"]
    assert rows["pinball loss"] == ["0.2500", "-"]
    assert any("The CRPS leaves out 1 of 1,250 predictions" in row for row in rows)
    assert any("The pinball loss leaves out 9 of 1,250" in row for row in rows)
    assert rows["coverage of the 90 % interval"] == ["0.8750"]
    assert rows["width of the 90 % interval"] == ["2.5000"]
    assert rows["coverage of the 62.5 % interval"] == ["0.5000"]
    assert rows["width of the 62.5 % interval"] == ["-"]
    assert "mean interval width" not in rows
    assert any("the ends of the support" in row for row in rows)


def test_scores_that_are_not_declared_have_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    """Scores that are not declared probabilities have no metrics; notes stand below the table."""
    undeclared = msgspec.structs.replace(summary(raw=None), notes=["Why."])
    show_summary(undeclared, "scores.csv")
    rows = shown(capsys)
    assert rows["log loss"] == ["-", "0.2500"]
    assert "Why." in rows


def test_without_monitors(capsys: pytest.CaptureFixture[str]) -> None:
    """Without scored predictions there are only the counts."""
    show_summary(summary(raw=None, calibrated=None), "abers.toml")
    rows = shown(capsys)
    assert "log loss" not in rows
    assert rows["labels"] == ["1,250"]


def test_labels_too_late_for_any_prediction(capsys: pytest.CaptureFixture[str]) -> None:
    """If the delay is as long as the stream, the table says so and what to do."""
    show_summary(summary(observations=50), "scores.csv", delay=LATE)
    assert "try a smaller --delay." in shown(capsys)
    show_summary(summary(observations=51), "scores.csv", delay=LATE)
    assert "try a smaller --delay." not in shown(capsys)


def test_a_part_of_history_without_observations(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing lies between two times, it is not the delay that is blamed."""
    show_summary(summary(observations=0), "scores.csv", delay=LATE)
    rows = shown(capsys)
    assert "No observation lies between --since and --until." in rows
    assert "try a smaller --delay." not in rows


def test_labels_that_never_came(capsys: pytest.CaptureFixture[str]) -> None:
    """A run without a matched label prints how the configuration may have been meant."""
    hint = "No label has arrived; if each record has its own, set input.delay."
    show_summary(summary(), "abers.toml")
    assert hint in shown(capsys)
    show_summary(summary(counters={"labels_in": 1}), "abers.toml")
    assert hint not in shown(capsys)
    show_summary(summary(observations=0), "abers.toml")
    assert hint not in shown(capsys)


def test_what_is_lost_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The sentences about losses stand below the table."""
    said = "3 of 1,000 labels came within 7 days: set limits.label_timeout"
    show_summary(msgspec.structs.replace(summary(), losses=[said]), "abers.toml")
    assert said in shown(capsys)


def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """A path is neither read as markup nor broken over two lines."""
    show_summary(summary(), "[bold].csv", delay=LATE)
    assert "[bold].csv, labels 50 observations late" in shown(capsys)
    path = "[bold]" + "long-name/" * 12 + "out.jsonl"
    show_outputs(summary(), {"predictions": path})
    assert path in capsys.readouterr().err


def test_where_the_outputs_are(capsys: pytest.CaptureFixture[str]) -> None:
    """The closing words name each output, and count the dead letters by reason."""
    outputs = {"predictions": "-", "outcomes": "o.csv", "dead_letters": "d.jsonl"}
    show_outputs(summary(dead={"bad-json": 1200, "bad-id": 1}), outputs)
    assert capsys.readouterr().err == (
        "The predictions went to standard output.\n"
        "The outcomes are in o.csv.\n"
        "1,201 dead letters are in d.jsonl: 1,200 bad-json, 1 bad-id.\n"
    )
    show_outputs(summary(dead={"bad-id": 1}), outputs)
    assert "1 dead letter is in d.jsonl: 1 bad-id.\n" in capsys.readouterr().err
    show_outputs(summary(), outputs)
    assert "There were no dead letters.\n" in capsys.readouterr().err


def test_what_became_of_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    """Ignored and expired events are counted, unless the table has them already."""
    counters = {"predictions": 5, "duplicate_labels": 1200, "expired": 3, "dead:bad-id": 2}
    counters |= {"retired": 4}
    show_outputs(summary(counters=counters), {})
    assert capsys.readouterr().err == (
        "duplicate labels: 1,200 (of a labelled id, ignored)\n"
        "expired: 3 (unmatched observations, after limits.label_timeout)\n"
        "retired: 4 (models silent for limits.retire_after, removed with their pending events)\n"
    )


def test_what_to_try_next(capsys: pytest.CaptureFixture[str]) -> None:
    """The commands can be copied: they have the words that named the stream, quoted."""
    show_next([["my scores.csv", "--score=p", "--report=report.html"]])
    err = capsys.readouterr().err
    assert "replay 'my scores.csv' --score=p --report=report.html\n" in err

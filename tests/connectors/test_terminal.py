"""What a person sees at the end of a replay."""

from __future__ import annotations

import re

import pytest

from abers_connectors.replay import Means, Summary
from abers_connectors.terminal import show_next, show_summary

CALIBRATED = Means(log_loss=0.25, log_loss_infinite=0, brier=0.125, ece=0.0625)
RAW = Means(log_loss=None, log_loss_infinite=3, brier=0.5, ece=0.25)


def summary(observations: int = 1250, raw: Means | None = RAW) -> Summary:
    """Return a summary with round numbers."""
    return Summary(
        observations=observations,
        labels=observations,
        raw=raw,
        calibrated=CALIBRATED,
        mean_width=0.03125,
        events_per_second=12345.6,
    )


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """Return the cells that were printed on standard error, by the first of their row."""
    captured = capsys.readouterr()
    assert captured.out == ""
    rows = [re.split(r"  +", line.strip()) for line in captured.err.splitlines() if line.strip()]
    return {first: rest for first, *rest in rows}


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """It has the metrics of both views, the counts and the speed; the infinite is counted."""
    show_summary(summary(), "Phishing", delay=50)
    rows = shown(capsys)
    assert rows["raw score"] == ["calibrated"]
    assert rows["log loss"] == ["inf (3 of 1,250)", "0.2500"]
    assert rows["Brier score"] == ["0.5000", "0.1250"]
    assert rows["ECE, 10 bins"] == ["0.2500", "0.0625"]
    assert rows["mean interval width"] == ["0.0312"]
    assert rows["observations"] == ["1,250"]
    assert rows["labels"] == ["1,250"]
    assert rows["events a second"] == ["12,346"]
    assert "Phishing, labels 50 late" in rows


def test_a_dash_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    """Scores that are not declared probabilities have no metrics, and the reason is given."""
    show_summary(summary(raw=None), "scores.csv", delay=50)
    rows = shown(capsys)
    assert rows["log loss"] == ["-", "0.2500"]
    assert "if these are probabilities, add --probabilities." in rows


def test_labels_too_late_for_any_prediction(capsys: pytest.CaptureFixture[str]) -> None:
    """If the delay is as long as the stream, the table says so and what to do."""
    show_summary(summary(observations=50), "scores.csv", delay=50)
    assert "try a smaller --delay." in shown(capsys)
    show_summary(summary(observations=51), "scores.csv", delay=50)
    assert "try a smaller --delay." not in shown(capsys)


def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """A path is neither read as markup nor broken over two lines."""
    show_summary(summary(), "[bold].csv", delay=50)
    assert "[bold].csv, labels 50 late" in shown(capsys)
    path = "[bold]" + "long-name/" * 12 + "out.jsonl"
    show_next("scores.csv", path, 3)
    assert path in capsys.readouterr().err


@pytest.mark.parametrize(("output", "words"), [("-", "went to standard output"), ("o", "are in o")])
def test_where_the_predictions_are(
    capsys: pytest.CaptureFixture[str], output: str, words: str
) -> None:
    """The last words say where the predictions went, and what to try."""
    show_next("Phishing", output, 1250)
    err = capsys.readouterr().err
    assert f"The predictions {words}" in err
    assert "replay Phishing --window" in err

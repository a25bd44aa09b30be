"""What a person sees at the end of a run."""

from __future__ import annotations

import io
import re

import msgspec
import pytest
from rich.console import Console

from abers.pages.blocks import AnswerBlock, Document, TextBlock
from abers_connectors import terminal
from abers_connectors.config.values import Lateness
from abers_connectors.replay.summary import Means, Summary, unlabelled_notes
from abers_connectors.terminal import (
    logged,
    show_comparison,
    show_document,
    show_input,
    show_next,
    show_notes,
    show_outputs,
    show_read,
)

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


class Read:
    """A file, half of it read."""

    name = "[bold]/flights.csv"

    def fraction(self) -> float:
        """Return the share that was read."""
        return 0.5


@pytest.mark.parametrize(("second", "bar"), [(0.5, False), (1.0, True)])
def test_a_bar_after_a_second(
    monkeypatch: pytest.MonkeyPatch,
    second: float,
    bar: bool,  # noqa: FBT001
) -> None:
    """On a terminal a bar has the name of the file, its part and rows, after a second."""
    shown = io.StringIO()
    screen = Console(file=shown, force_terminal=True, width=80)
    times = iter([0.0, second, second])
    monkeypatch.setattr(terminal, "console", lambda: screen)
    monkeypatch.setattr(terminal, "monotonic", times.__next__)
    with terminal.watching(Read(), hidden=False) as watched:
        assert [*watched([3000, 4000])] == [3000, 4000]
    assert all((one in shown.getvalue()) == bar for one in ("flights.csv", "50 %", "4,000 rows"))


def test_progress_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is no terminal each minute has a line, and the counts are passed on."""
    times = iter([0.0, 1.0, 59.0, 61.0, 119.0, 130.0])
    found = [*logged(Read(), [1, 2, 3000, 4000, 5000], times.__next__)]
    assert found == [1, 2, 3000, 4000, 5000]
    assert capsys.readouterr().err.splitlines() == [
        "[bold]/flights.csv: 3,000 rows, 50 %",
        "[bold]/flights.csv: 5,000 rows, 50 %",
    ]


def test_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    """The first line says which column is what, and how late labels are; notes stand below it."""
    show_input(summary(), "a.csv", LATE, "score = prob, label = y", ["Why."])
    show_input(summary(), "a.csv", Lateness(), "score = p")
    show_input(summary(), "a.toml", None, None)
    assert capsys.readouterr().err.splitlines() == [
        "a.csv: 1,250 observations. score = prob, label = y; labels 50 observations late",
        "Why.",
        "a.csv: 1,250 observations. score = p",
    ]


def test_what_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    """A line has the counts, the speed, and the delay of labels, if they have one."""
    show_read(summary(), "Phishing", LATE)
    show_read(summary(), "abers.toml", Lateness())
    assert capsys.readouterr().err.splitlines() == [
        (
            "Phishing, labels 50 observations late: "
            "1,250 predictions, 1,250 labels, 12,346 events a second"
        ),
        "abers.toml: 1,250 predictions, 1,250 labels, 12,346 events a second",
    ]


DOCUMENT = Document(
    title="scores.csv",
    blocks=(
        AnswerBlock(
            key="model",
            name="Model",
            question="Is my model telling the truth?",
            state="no",
            sentence="promised 42 %, came 28 %",
            number="14",
            unit="points too high",
        ),
        TextBlock(key="note", words="A note."),
        TextBlock(key="more", words="More.", detail="more"),
    ),
)


def test_answers_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal there are no escape sequences, and the detail is what was asked for."""
    answer = "✗ Model  NO  promised 42 %, came 28 %: 14 points too high\n"
    for detail, more in (
        ("answers", ""),
        ("usual", "\n  A note.\n"),
        ("more", "\n  A note.\n  More.\n"),
    ):
        show_document(DOCUMENT, detail)  # type: ignore[arg-type] # one of these
        captured = capsys.readouterr()
        assert (captured.out.replace("\N{NO-BREAK SPACE}", " "), captured.err) == (
            answer + more,
            "",
        )
    show_document(DOCUMENT, stderr=True)
    assert capsys.readouterr().out == ""


def test_what_a_mean_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Predictions of infinite loss are counted."""
    calibrated: Means = {"crps": 0.375, "crps_infinite": 1, "pinball": None, "pinball_infinite": 9}
    show_notes(summary(calibrated=calibrated), LATE)
    rows = shown(capsys)
    assert "1 of 1,250 predictions had an infinite CRPS; they are not in its mean." in rows
    assert "9 of 1,250 predictions had an infinite pinball loss; they are not in its mean." in rows


def test_notes_and_losses_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The sentences about columns and losses stand below the answers."""
    said = "3 of 1,000 labels came within 7 days: set limits.label_timeout"
    found = summary(counters={"labels_in": 3})
    show_notes(msgspec.structs.replace(found, losses=[said], notes=["Why."]), LATE)
    assert [*shown(capsys)] == ["Why.", said]


_TOO_LATE = "The stream ended before the first label came: try a smaller --delay."


def test_labels_too_late_for_any_prediction(capsys: pytest.CaptureFixture[str]) -> None:
    """If the delay is as long as the stream, a note says so and what to do."""
    show_notes(summary(observations=50), LATE)
    assert _TOO_LATE in shown(capsys)
    show_notes(summary(observations=51), LATE)
    assert _TOO_LATE not in shown(capsys)


def test_one_note_where_no_label_comes(capsys: pytest.CaptureFixture[str]) -> None:
    """Where no row has a label the notes on the input say so, and nothing else does."""
    notes = [*unlabelled_notes(50, 50, 0)]
    found = msgspec.structs.replace(
        summary(observations=50), records=50, unlabelled=50, notes=notes
    )
    for delay in (LATE, None):
        show_notes(found, delay)
        assert [*shown(capsys)] == notes


def test_a_part_of_history_without_observations(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing lies between two times, it is not the delay that is blamed."""
    show_notes(summary(observations=0), LATE)
    rows = shown(capsys)
    assert "No observation fits --model, --since and --until." in rows
    assert _TOO_LATE not in rows


def test_labels_that_never_came(capsys: pytest.CaptureFixture[str]) -> None:
    """A run without a matched label prints how the configuration may have been meant."""
    hint = "No label has arrived; if each record has its own, set input.delay."
    show_notes(summary())
    assert hint in shown(capsys)
    show_notes(summary(counters={"labels_in": 1}))
    assert hint not in shown(capsys)
    show_notes(summary(observations=0))
    assert hint not in shown(capsys)


def test_a_column_without_a_label(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the rows of labels have none, a replay says which column to look at."""
    hint = "No label has arrived: see that the column of labels is the right one."
    show_notes(summary(), LATE)
    assert hint in shown(capsys)
    show_notes(summary(counters={"labels_in": 1}), LATE)
    assert hint not in shown(capsys)


def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """A path is neither read as markup nor broken over two lines."""
    show_read(summary(), "[bold].csv", LATE)
    assert "[bold].csv, labels 50 observations late: " in capsys.readouterr().err
    path = "[bold]" + "long-name/" * 12 + "out.jsonl"
    show_outputs(summary(), {"predictions": path}, "toml")
    assert path in capsys.readouterr().err


def test_where_the_outputs_are(capsys: pytest.CaptureFixture[str]) -> None:
    """The closing words name each output, and count the dead letters by reason."""
    outputs = {"predictions": "-", "outcomes": "o.csv", "dead_letters": "d.jsonl"}
    show_outputs(summary(dead={"bad-json": 1200, "bad-id": 1}), outputs, "toml")
    assert capsys.readouterr().err == (
        "The predictions went to standard output.\n"
        "The outcomes are in o.csv.\n"
        "1,201 dead letters are in d.jsonl: 1,200 bad-json, 1 bad-id.\n"
    )
    show_outputs(summary(dead={"bad-id": 1}), outputs, "toml")
    assert "1 dead letter is in d.jsonl: 1 bad-id.\n" in capsys.readouterr().err
    show_outputs(summary(), outputs, "toml")
    assert "There were no dead letters.\n" in capsys.readouterr().err


def test_what_became_of_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    """Ignored and expired events are counted."""
    counters = {"predictions": 5, "duplicate_labels": 1200, "expired": 3, "dead:bad-id": 2}
    counters |= {"retired": 4}
    show_outputs(summary(counters=counters), {}, "toml")
    assert capsys.readouterr().err == (
        "duplicate labels: 1,200 (of a labelled id, ignored)\n"
        "expired: 3 (observations without a label)\n"
        "retired: 4 (models silent for limits.retire_after, removed with their pending events)\n"
    )


def test_expired_rows_that_a_note_counts_are_counted_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rows without a label have a note of their own."""
    found = summary(counters={"expired": 3})
    show_outputs(msgspec.structs.replace(found, unlabelled=3), {}, "toml")
    assert capsys.readouterr().err == ""


def test_what_to_try_next(capsys: pytest.CaptureFixture[str]) -> None:
    """The commands can be copied: they have the words that named the stream, quoted."""
    show_next([["my scores.csv", "--score=p", "--report=report.html"]])
    err = capsys.readouterr().err
    assert err.startswith("Next:   ")
    assert "replay 'my scores.csv' --score=p --report=report.html\n" in err


def test_what_to_try_next_with_a_module(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who ran the module reads commands that run the module."""
    monkeypatch.setattr("sys.argv", ["/somewhere/abers_connectors/__main__.py"])
    show_next([["stream.csv"]])
    assert capsys.readouterr().err == "Next:   python -m abers_connectors replay stream.csv\n"


def test_a_comparison_has_the_answer_of_each_calibrator(capsys: pytest.CaptureFixture[str]) -> None:
    """The table says with sign and word whether what each calibrator serves is right."""
    answers = {"answers": [{"question": "calibrated", "state": "partly"}]}
    known = msgspec.structs.replace(summary(), answers=answers)
    show_comparison({"ivap": known, "platt": summary()}, "stream.csv")
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert lines["ivap"].rstrip().endswith("! partly")
    assert "calibrated" in "".join(lines.values())
    assert lines["platt"].rstrip().endswith("0.0312")
    assert "raw" in lines

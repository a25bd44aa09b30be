"""A reference period, `abers_connectors.dashboard.reference_period`, beside the whole stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.connectors.dashboard.replays import Outline, command

from abers.stream import Events, Label, Observation, Processor, Settings
from abers_connectors.dashboard.document import cards
from abers_connectors.dashboard.observer import Observer

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from abers_connectors.dashboard.document import Card

DAY = 86_400_000
START = 1_704_067_200_000  # 2024-01-01


def shown(observer: Observer) -> Card:
    """Process labels on 60 days, those of the first 30 wrong, and return the reliability card."""
    processor = Processor(Settings(scores="probability"))
    observer.hold({0: processor})
    for n in range(60):
        at, label = START + DAY * n, int(n >= 30)
        observation = Observation(f"i{n}", at, score=0.75)
        events = Events.of([observation, Label(f"i{n}", at + 5, value=label)])
        observer.take(processor, processor.process_batch(events))
    (key,) = processor.keys
    view = observer.view(key)
    assert view is not None
    return next(one for one in cards(view) if one.name == "reliability")


def test_a_period_is_drawn_beside_the_stream() -> None:
    """Its diagram and histogram are those of its own observations, named by its dates."""
    card = shown(Observer((START, START + 30 * DAY)))
    assert card.figure is not None
    lines = {one["name"]: one for one in card.figure.data if one.get("mode") != "none"}
    named = "2024-01-01 to 2024-01-31"
    assert lines[f"raw, {named}"]["line"]["dash"] == "dot"
    diagrams = [one for one in card.figure.data if one["name"] == f"raw, {named}"]
    assert diagrams[0]["y"] == [0.0, 0.0]
    assert [one for one in diagrams[1]["customdata"][:-1] if one] == [30]
    (whole,) = [row for row in card.table.rows if row[0] == "raw"]
    assert whole[1:] == ["0.7500", "0.7500", "0.5000", "60"]
    (period,) = [row for row in card.table.rows if row[0] == f"raw, {named}"]
    assert period[1:] == ["0.7500", "0.7500", "0.0000", "30"]
    assert card.description.endswith(f"Dotted lines are of {named}.")


def test_a_period_without_labels_is_not_drawn() -> None:
    """Without a label in the period the figure is as without a period."""
    assert shown(Observer((0, 5))) == shown(Observer())


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`abers replay --reference` draws it in the report, and refuses what is no period."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n},0.5,{n % 2}\n" for n in range(100))
    (tmp_path / "in.csv").write_text(f"time,score,label\n{rows}")
    words = ["replay", "in.csv", "--scores", "probability", "-o", "out.jsonl"]
    code, _, err = command(*words, "--report", "r.html", "--reference", "10..30")
    assert code == 0, err
    tables = Outline((tmp_path / "r.html").read_text()).tables
    assert ["raw, 10 to 30", "0.5000", "0.5000", "0.5000", "20"] in [r for t in tables for r in t]
    for given, reason in (
        (["--report", "r.html", "--reference", "10"], "write START..END"),
        (["--report", "r.html", "--reference", "30..10"], "the end is not after the start"),
        (["--report", "r.html", "--reference", "x..10"], "--reference"),
        (["--reference", "10..30"], "add --report FILE or --live"),
    ):
        code, _, err = command(*words, *given)
        assert code == 2
        assert reason in " ".join(err.split())

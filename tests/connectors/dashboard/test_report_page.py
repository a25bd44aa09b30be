"""The page, `abers_connectors.dashboard.report_page`, as a browser and a screen reader find it."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from tests.connectors.dashboard.replays import Outline, command

from abers import MissingExtraError
from abers_connectors.dashboard.report_page import ReportPage
from abers_connectors.replay.score_text import number

if TYPE_CHECKING:
    from pathlib import Path

    from tests.connectors.dashboard.replays import Replayed


def scripts(page: str) -> list[str]:
    """Return the scripts that would run."""
    return re.findall(r"<script>(.*?)</script>", page, re.DOTALL)


def policy(page: str) -> dict[str, list[str]]:
    """Return what the content security policy allows."""
    metas = Outline(page).of("meta")
    text = next(m["content"] for m in metas if m.get("http-equiv") == "Content-Security-Policy")
    assert text is not None
    return {name: words for name, *words in map(str.split, text.split(";"))}


def test_nothing_is_asked_of_anybody(replayed: Replayed) -> None:
    """No element names an address, and the policy allows no request and no other script."""
    outline = Outline(replayed.page)
    named = [
        one for _, attrs in outline.elements for k, one in attrs.items() if k in {"src", "href"}
    ]
    assert named == ["data:,"]
    allowed = policy(replayed.page)
    assert allowed["default-src"] == ["'none'"]
    hashes = [b64encode(sha256(one.encode()).digest()).decode() for one in scripts(replayed.page)]
    assert allowed["script-src"] == [f"'sha256-{one}'" for one in hashes]
    assert len(hashes) == 2
    assert {"connect-src", "font-src"}.isdisjoint(allowed)


def test_a_page_for_everybody(replayed: Replayed) -> None:
    """It has a language and a title, fits a phone, follows the reader's theme, and is one tree."""
    outline = Outline(replayed.page)
    assert outline.of("html") == [{"lang": "en"}]
    assert {"charset": "utf-8"} in outline.of("meta")
    assert any(meta.get("name") == "viewport" for meta in outline.of("meta"))
    assert "prefers-color-scheme: dark" in replayed.page
    levels = [tag for tag, _ in outline.elements if tag in {"h1", "h2", "h3"}]
    assert levels[0] == "h1"
    assert {*levels[1:]} == {"h2"}


def test_every_figure_has_a_name_its_data_and_its_numbers(replayed: Replayed) -> None:
    """A screen reader reads the name of a figure, and its numbers in a table after it."""
    outline = Outline(replayed.page)
    figures = [attrs for attrs in outline.of("div") if attrs.get("class") == "figure"]
    assert len(figures) >= 3
    held = re.findall(
        r'role="img"[^>]*></div>\n<script type="application/json">(.*?)</script>', replayed.page
    )
    for figure, text in zip(figures, held, strict=True):
        assert figure["role"] == "img"
        assert figure["aria-label"]
        assert json.loads(text)["data"]
    # Verdict, scores, counts, what was replayed, and tests.
    assert len(outline.tables) == 5 + len(figures)
    assert len(outline.of("details")) == len(figures)
    columns = [attrs for attrs in outline.of("th") if attrs.get("scope") == "col"]
    assert len(columns) == sum(len(table[0]) for table in outline.tables)


def test_the_table_of_scores(replayed: Replayed) -> None:
    """The scores of both views come first, as the terminal shows them."""
    rows = {row[0]: row[1:] for row in Outline(replayed.page).tables[0]}
    names = {"log_loss": "log loss", "brier": "Brier score", "pinball": "pinball loss"}
    for name, words in names.items():
        for cell, view in zip(rows.get(words, ()), ("raw", "calibrated"), strict=False):
            if mean := (replayed.numbers[view] or {}).get(name):
                assert cell.startswith(number(mean))


def test_tests_and_alarms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table has the evidence of each test, and below it the alarms."""
    monkeypatch.chdir(tmp_path)
    labels = [int(n < 1_500) for n in range(3_000)]  # what is called 0.9 comes always, then never
    rows = "".join(f"{1_760_000_000_000 + n},0.9,{label}\n" for n, label in enumerate(labels))
    (tmp_path / "in.csv").write_text("time,score,label\n" + rows)
    command("report", "in.csv", "--scores", "probability", "--output", "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    (table,) = (one for one in Outline(page).tables if one[0][:1] == ["test"])
    assert table[0] == ["test", "evidence of threshold", "status", "incidents"]
    names = ["since start", "change", "since start tolerance", "change tolerance"]
    views = ["raw scores", "served predictions"]
    assert [row[0] for row in table[1:]] == [f"{one}: {name}" for one in views for name in names]
    assert table[4][2:] == ["active", "1"]
    assert re.fullmatch(r"triggered on 2025-10-09 08:53:\d\d UTC", table[1][2])
    assert re.search(
        r"<p>Triggered at 2025-10-09 08:53:\d\d UTC, after about 1,\d{3} labels: ", page
    )


def test_names_are_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No name of a file or a column becomes an element or a script."""
    monkeypatch.chdir(tmp_path)
    name = "<script>alert(1)<&\"'{{ 7 * 7 }}.csv"
    (tmp_path / name).write_text("score,label\n0.5,1\n0.7,0\n")
    words = ("--delay", "0", "--output", "p.jsonl", "--report", "r.html")
    code, _, err = command("replay", f"./{name}", *words)
    assert code == 0, err
    page = (tmp_path / "r.html").read_text()
    assert "alert(1)" not in "".join(scripts(page))
    assert ("h1", name) in [(tag, text) for tag, text in Outline(page).texts if tag == "h1"]
    assert [*Outline(page).of("script")].count({}) == 2


def test_nothing_to_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an observation, or without a label, the page says so and has no figure."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "abers.toml").write_text(
        '[input]\nobservations = "in.jsonl"\n[output]\npredictions = "p.jsonl"\n'
    )
    (tmp_path / "in.jsonl").write_text('{"id": "a", "time": 5, "score": 0.5}\n')
    for since, count in (("0", 1), ("9", 0)):
        code, _, err = command("replay", "abers.toml", "--since", since, "--report", "r.html")
        assert code == 0, err
        page = (tmp_path / "r.html").read_text()
        assert f'<p class="soft">{count} observations were predicted' in page
        assert not scripts(page)
        if count == 0:
            assert "No prediction was scored" in page


@pytest.mark.parametrize("missing", ["plotly", "jinja2"])
def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Without plotly or Jinja2 the error says what to install."""
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'abers\[plots\]'"):
        ReportPage()

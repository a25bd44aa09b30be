"""The page of a report, as a browser and a screen reader find it."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.connectors.dashboard.replays import Outline, command

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from tests.connectors.dashboard.replays import Replayed

MOST = 1_000_000  # bytes of the page of one model


def policy(page: str) -> dict[str, list[str]]:
    """Return what the content security policy allows."""
    metas = Outline(page).of("meta")
    text = next(m["content"] for m in metas if m.get("http-equiv") == "Content-Security-Policy")
    assert text is not None
    return {name: words for name, *words in map(str.split, text.split(";"))}


def test_nothing_is_asked_of_anybody(replayed: Replayed) -> None:
    """No element names an address, no script is there, and the policy allows neither."""
    outline = Outline(replayed.page)
    named = [
        one for _, attrs in outline.elements for k, one in attrs.items() if k in {"src", "href"}
    ]
    assert all(one is not None and one.startswith("#") for one in named)
    assert not outline.of("script")
    allowed = policy(replayed.page)
    assert allowed["default-src"] == ["'none'"]
    assert {"script-src", "connect-src", "font-src", "img-src"}.isdisjoint(allowed)


def test_a_page_for_everybody(replayed: Replayed) -> None:
    """It has a language and a title, fits a phone, follows the reader's theme, and is one tree."""
    outline = Outline(replayed.page)
    assert outline.of("html") == [{"lang": "en"}]
    assert {"charset": "utf-8"} in outline.of("meta")
    assert any(meta.get("name") == "viewport" for meta in outline.of("meta"))
    assert "prefers-color-scheme: dark" in replayed.page
    levels = [int(tag[1]) for tag, _ in outline.elements if tag in {"h1", "h2", "h3", "h4"}]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_answers_come_first(replayed: Replayed) -> None:
    """The three questions stand before every table and every fold."""
    page = replayed.page
    questions = ("Is my model telling the truth?", "Is what is served right?")
    found = [page.index(one) for one in (*questions, "Does calibration pay?", "<table")]
    assert found == sorted(found)


def test_every_figure_has_a_name(replayed: Replayed) -> None:
    """A screen reader reads what each drawing shows."""
    drawn = [attrs for attrs in Outline(replayed.page).of("svg") if "aria-hidden" not in attrs]
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in drawn)


def test_the_page_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of one model of many labels has less than 1 MB."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n % 97 / 97:.4f},{int(n * 7 % 101 < n % 97)}\n" for n in range(20_000))
    (tmp_path / "in.csv").write_text("score,label\n" + rows)
    assert command("report", "in.csv", "--output", "r.html")[0] == 0
    assert (tmp_path / "r.html").stat().st_size < MOST


def test_names_are_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No name of a file or a column becomes an element or a script."""
    monkeypatch.chdir(tmp_path)
    name = "<script>alert(1)<&\"'{{ 7 * 7 }}.csv"
    (tmp_path / name).write_text("score,label\n0.5,1\n0.7,0\n")
    words = ("--delay", "0", "--output", "p.jsonl", "--report", "r.html")
    code, _, err = command("replay", f"./{name}", *words)
    assert code == 0, err
    outline = Outline((tmp_path / "r.html").read_text())
    assert not outline.of("script")
    assert name in "".join(text for tag, text in outline.texts if tag == "h1")


def test_nothing_to_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an observation, or without a label, the page says so and has no figure."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "abers.toml").write_text(
        '[input]\nobservations = "in.jsonl"\n[output]\npredictions = "p.jsonl"\n'
    )
    (tmp_path / "in.jsonl").write_text('{"id": "a", "time": 5, "score": 0.5}\n')
    for since, said in (("0", "0 of 200 labels."), ("9", "No prediction was scored")):
        code, _, err = command("replay", "abers.toml", "--since", since, "--report", "r.html")
        assert code == 0, err
        page = (tmp_path / "r.html").read_text()
        assert said in page
        assert f"{int(since == '0')} predictions, " in page
        assert "<figure" not in page


def test_a_page_needs_no_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report as a page is made where neither plotly nor Jinja2 is installed."""
    monkeypatch.chdir(tmp_path)
    for missing in ("plotly", "jinja2"):
        monkeypatch.setitem(sys.modules, missing, None)
    (tmp_path / "in.csv").write_text("score,label\n0.5,1\n0.7,0\n")
    code, _, err = command("report", "in.csv", "--output", "r.html")
    assert code == 0, err
    assert "Is what is served right?" in (tmp_path / "r.html").read_text()

"""Replays of each task, and their reports as a page and as numbers."""

from __future__ import annotations

import json
import random
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from typer.testing import CliRunner

from abers_connectors.cli.main import app

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """
[task]
kind = "{task}"
{more}
[input]
observations = "{task}.jsonl"
delay = 7
[output]
predictions = "{task}.out.jsonl"
"""
MORE = {
    "binary": 'scores = "probability"',
    "multiclass": 'scores = "probability"\nclasses = ["a", "b", "c"]',
    "regression": '[calibrator]\ndistributions = "full"',
}
TASKS = [*MORE]
SIZE = 260  # labels: more than the last ones that are kept, and windows that were joined


class Replayed(NamedTuple):
    """Rows, outputs and reports of a replay."""

    rows: list[dict[str, Any]]
    predictions: list[dict[str, Any]]
    summary: dict[str, Any]
    numbers: dict[str, Any]
    page: str


class Outline(HTMLParser):
    """Read a page: its elements, its tables, its scripts, and the texts of its headings."""

    def __init__(self, page: str) -> None:
        """Read it at once."""
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.tables: list[list[list[str]]] = []
        self._open, self._in_cell = "", False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element."""
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"th", "td"}:
            self.tables[-1][-1].append("")
            self._in_cell = True

    def handle_data(self, data: str) -> None:
        """Take a text."""
        if self._in_cell and data.strip():
            self.tables[-1][-1][-1] += data
        self.texts.append((self._open, data))

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        self._open = ""
        if tag in {"th", "td"}:
            self._in_cell = False

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]


def observed(task: str, size: int) -> list[dict[str, Any]]:
    """Return scores and matching labels of a task."""
    rng = random.Random(task)  # noqa: S311 - no secret
    rows = []
    for n in range(size):
        p = rng.random()
        score: Any = round(p, 3)
        label: Any = int(rng.random() < p * p)
        if task == "multiclass":
            score = {"a": p / 2, "b": p / 2, "c": 1 - p}
            label = rng.choices("abc", [*score.values()])[0]
        elif task == "regression":
            label = round(10 * p + rng.gauss(0.0, 1.0), 3)
        rows.append({"id": f"i{n}", "time": n, "score": score, "label": label})
    return rows


def titles(page: str) -> list[str]:
    """Return the titles of the folds of a page that are in no other."""
    return re.findall(r"<summary><h2>(.*?)</h2>", page)


def command(*words: str) -> tuple[int, str, str]:
    """Run the command in this process."""
    result = CliRunner().invoke(app, words, prog_name="abers", catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON Lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="session")
def replays(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Replayed]:
    """Replay a small stream of each task twice: for the page, and for the numbers."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for task, more in MORE.items():
            folder = tmp_path_factory.mktemp(task)
            patch.chdir(folder)
            rows = observed(task, SIZE)
            (folder / f"{task}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
            (folder / "abers.toml").write_text(CONFIG.format(task=task, more=more))
            said = []
            for name in ("r.html", "r.json"):
                code, out, err = command("replay", "abers.toml", "--report", name, "--json")
                assert code == 0, err
                said.append(json.loads(out))
            found[task] = Replayed(
                rows,
                lines(folder / f"{task}.out.jsonl"),
                said[0],
                json.loads((folder / "r.json").read_text()),
                (folder / "r.html").read_text(),
            )
    return found


@pytest.fixture(params=TASKS)
def replayed(request: pytest.FixtureRequest, replays: dict[str, Replayed]) -> Replayed:
    """Return the replay of a task."""
    return replays[request.param]

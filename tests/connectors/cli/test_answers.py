"""What a replay prints: the answers first, in 80 columns, for each kind of stream."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran

    Invoke = Callable[..., Ran]

N = 2_400
CONFIG = """
[task]
kind = "{kind}"
{task}
[input]
observations = "in.jsonl"
delay = 20
[output]
predictions = "out.jsonl"
"""
KINDS = {
    "two": ("binary", 'scores = "probability"'),
    "three": ("multiclass", 'scores = "probability"\nclasses = ["a", "b", "c"]'),
    "numbers": ("regression", ""),
    "models": ("binary", 'scores = "probability"'),
}
NAMES = ["Model", "Calibrated", "Pays"]
STATES = {"YES", "NO", "PARTLY", "UNDECIDED", "WAITING", "RECOVERING", "NO PROMISE"}


def row(kind: str, number: int, rng: random.Random) -> dict[str, Any]:
    """Return an observation with its label; scores are too high."""
    p = rng.uniform(0.1, 0.9)
    label: Any = int(rng.random() < 0.7 * p)
    score: Any = p
    if kind == "three":
        score = {"a": p, "b": (1.0 - p) / 2.0, "c": (1.0 - p) / 2.0}
        label = rng.choices("abc", [0.7 * p, 0.5, 0.5])[0]
    elif kind == "numbers":
        label = p + rng.gauss(0.0, 1.0)
    found = {"id": f"{number}", "time": number, "score": score, "label": label}
    return found | ({"model": f"m{number % 3}"} if kind == "models" else {})


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a stream of a kind, and its configuration."""
    name: str = request.param
    rng = random.Random(name)  # noqa: S311 - no secret
    rows = [row(name, number, rng) for number in range(N)]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    task, more = KINDS[name]
    (tmp_path / "abers.toml").write_text(CONFIG.format(kind=task, task=more))
    monkeypatch.setenv("COLUMNS", "80")
    return name


def require_answers(kind: str, lines: list[str]) -> None:
    """Assert that each answer, or each line of states, begins a line."""
    if kind == "models":
        assert [line.split()[0] for line in lines if re.match(r"  (Model|Calib)", line)] == NAMES[
            :2
        ]
        return
    pattern = re.compile(r"^[✓✗!·] (\w+) +([A-Z][A-Z ]*[A-Z])  ")
    found = [match for line in lines if (match := pattern.match(line))]
    assert [one[1] for one in found] == NAMES
    assert {one[2] for one in found} <= STATES


def test_answers_come_first(invoke: Invoke, kind: str) -> None:
    """No line of standard output is longer than 80 columns, and it has all answers."""
    ran = invoke("replay", "abers.toml")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 80
    require_answers(kind, lines)


def test_how_much_is_printed(invoke: Invoke, kind: str) -> None:
    """With -q there are answers alone, and with -v what a page has in its folds."""
    brief = invoke("replay", "abers.toml", "-q")
    assert brief.err == ""
    require_answers(kind, brief.out.splitlines())
    usual = invoke("replay", "abers.toml").out.splitlines()
    assert {*brief.out.splitlines()} <= {*usual}
    full = invoke("replay", "abers.toml", "-v").out.splitlines()
    for title in ("Scores", "Records", "Alarms and tests"):
        assert title in full
        assert title not in usual
    assert max(map(len, full)) <= 80
    refused = invoke("replay", "abers.toml", "-q", "-v")
    assert refused.code == 2
    assert "--quiet does not go with --verbose" in refused.err


def test_answers_leave_predictions_alone(invoke: Invoke, kind: str) -> None:
    """Where predictions go to standard output, answers go to standard error."""
    ran = invoke("replay", "abers.toml", "--output", "-")
    assert len(ran.out.splitlines()) == N
    require_answers(kind, ran.err.splitlines())


def test_json_has_the_answers(invoke: Invoke, kind: str, tmp_path: Path) -> None:
    """The summary and the report as JSON have the same answers, with their numbers."""
    summary = json.loads(invoke("replay", "abers.toml", "--json", "--report", "r.json").out)
    report = json.loads((tmp_path / "r.json").read_text())
    assert summary["answers"] == report["answers"]
    questions = [one["question"] for one in report["answers"]["answers"]]
    assert questions == ["model", "calibrated", "pays"]
    models = report["blocks"].get("models-table", {}).get("models", ())
    assert len(models) == (3 if kind == "models" else 0)
    assert report["answers"]["now"]["labels"] > 0


@pytest.mark.parametrize("kind", ["two"], indirect=True)
@pytest.mark.parametrize("rates", [[], ["--label-rates", "0.5", "1", "--probability", "merged"]])
def test_numbers_of_observations_with_labels_say_so(
    invoke: Invoke, kind: str, rates: list[str], tmp_path: Path
) -> None:
    """With rates of labels, text and page say that promised is among observations with labels."""
    ran = invoke("replay", "abers.toml", *rates, "--report", "r.html")
    page = (tmp_path / "r.html").read_text()
    assert ("With label_rates these numbers are about observations with" in ran.out) == bool(rates)
    assert ("With label_rates these numbers are about observations with" in page) == bool(rates)
    require_answers(kind, ran.out.splitlines())

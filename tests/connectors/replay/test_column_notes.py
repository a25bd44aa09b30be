"""What a replay says of scores and labels that may not be what they seem."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.conftest import Ran

    Invoke = Callable[..., Ran]

UNDECLARED = (
    "Are they probabilities? Then add --scores probability. Are they logits? Then add --scores "
    "logit. Are they per cent? Then add --scores percent."
)
BEYOND = (
    "beyond [0, 1], and have no verdict of their own. Are they logits? Add --scores logit. Are "
    "they per cent? Add --scores percent."
)


def write(change: Callable[[float, int], tuple[float, int]]) -> None:
    """Write scores and labels that were right before a change."""
    draw = random.Random(1)  # noqa: S311 - no secret
    rows = []
    for _ in range(300):
        p = draw.uniform(0.05, 0.95)
        score, label = change(p, int(draw.random() < p))
        rows.append(f"{score},{label}\n")
    Path("s.csv").write_text("score,label\n" + "".join(rows))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda p, y: (round(p), y), "All scores are 0 or 1. Are these decisions?"),
        (lambda p, y: (1 - p, y), "Label 1 is rarer where scores are higher."),
        (lambda p, _: (p, 0), "None of the 300 labels is 1:"),
        (lambda p, _: (p, 1), "All 300 labels are 1:"),
        (lambda p, y: (100 * p, y), UNDECLARED),
        (lambda p, y: (math.log(p / (1 - p)), y), UNDECLARED),
    ],
    ids=["decisions", "of label 0", "never 1", "always 1", "per cent", "logits"],
)
def test_columns_that_are_in_doubt(
    invoke: Invoke, change: Callable[[float, int], tuple[float, int]], sentence: str
) -> None:
    """The summary says it below the table and in JSON, and so does the report."""
    write(change)
    ran = invoke("replay", "s.csv", "--delay", "0", "--report", "r.json")
    assert ran.code == 0, ran.err
    assert sentence in ran.err
    assert sentence in " ".join(json.loads(Path("r.json").read_text())["notes"])


def test_the_page_of_a_report_has_the_notes(invoke: Invoke) -> None:
    """They stand with what was read."""
    write(lambda p, _: (p, 0))
    assert invoke("replay", "s.csv", "--delay", "0", "--report", "r.html").code == 0
    assert "None of the 300 labels is 1:" in Path("r.html").read_text()


@pytest.mark.parametrize("factor", [100, -3])
def test_scores_beyond_probabilities_are_named_first(invoke: Invoke, factor: float) -> None:
    """The first lines have the ends of the scores, and how they get a verdict."""
    write(lambda p, y: (factor * p, y))
    ran = invoke("replay", "s.csv", "--delay", "0")
    assert BEYOND in ran.err
    ends = sorted((factor * 0.05, factor * 0.95))
    low, high = ran.err.partition("Scores lie in [")[2].partition("]")[0].split(", ")
    assert (float(low), float(high)) == pytest.approx(ends, abs=abs(factor) * 0.02)


@pytest.mark.parametrize("bad", ["nan,1\n", "x,1\n", ",1\n", "0.5,maybe\n"])
def test_a_bad_row_does_not_put_scores_beyond_probabilities(invoke: Invoke, bad: str) -> None:
    """Scores that lie in [0, 1] are not said to lie beyond it where another row is bad."""
    write(lambda p, y: (p, y))
    with Path("s.csv").open("a") as file:
        file.write(bad)
    ran = invoke("replay", "s.csv", "--delay", "0")
    assert ran.code == 1
    assert "\n  s.csv line 302\n" in ran.err
    assert "beyond" not in ran.err


def test_what_is_declared_is_not_in_doubt(invoke: Invoke) -> None:
    """Right scores, and declared logits, have an answer about the model and no note."""
    write(lambda p, y: (p, y))
    assert json.loads(invoke("replay", "s.csv", "--delay", "0", "--json").out)["notes"] == []
    write(lambda p, y: (math.log(p / (1 - p)), y))
    words = ("replay", "s.csv", "--delay", "0", "--scores", "logit")
    ran = invoke(*words)
    assert "Raw scores are no probabilities" not in ran.out
    assert "have no verdict" not in ran.err

"""With few labels the JSON of a replay says how many more allow which statement."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.conftest import Ran

SCORES = Path(__file__).parents[3] / "examples" / "scores.csv"


def few(folder: Path, lines: int) -> str:
    """Write the first lines of the example, and return the name of the file."""
    with SCORES.open() as file:
        (folder / "few.csv").write_text("".join(islice(file, lines)))
    return "few.csv"


def test_before_the_tests_begin(invoke: Callable[..., Ran], tmp_path: Path) -> None:
    """The first labels are those of the grace period, and the message says how many are left."""
    ran = invoke("replay", few(tmp_path, 151), "--json")
    summary = json.loads(ran.out)
    more = 200 - summary["labels"]
    assert 0 < more < 200
    assert summary["label_needs"] == [f"Tests begin after 200 labels: {more} more."]


def test_where_nothing_is_found_yet(invoke: Callable[..., Ran], tmp_path: Path) -> None:
    """The report in JSON has two lines about the probabilities that are served."""
    name = few(tmp_path, 500)
    assert invoke("replay", name, "--report", "few.json").code == 0
    needs = json.loads((tmp_path / "few.json").read_text())["label_needs"]
    assert len(needs) == 2
    for sentence in needs:
        said = r"On the served probabilities: if .*, about [\d,]+ more labels decide\."
        assert re.fullmatch(said, sentence)


def test_where_a_fault_is_found(invoke: Callable[..., Ran], tmp_path: Path) -> None:
    """A verdict that says something asks for no more labels."""
    rows = "".join(f"0.9,{n % 2}\n" for n in range(2_000))
    (tmp_path / "wrong.csv").write_text(f"score,label\n{rows}")
    summary = json.loads(invoke("replay", "wrong.csv", "--calibrator", "none", "--json").out)
    assert [one["status"] for one in summary["verdicts"]] == ["too high"]
    assert summary["label_needs"] == []

"""The pages of evidence: commands of the index that exist, and what folds away."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from benchmarks.papers.__main__ import PAPERS
from benchmarks.papers.report import foldings
from benchmarks.sections import SECTIONS

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "evidence").glob("*.md"))
TWO_SCREENS = 100  # lines that are not empty, of text or of a table
SETTINGS = {"--quick", "--write"}


def cells() -> list[str]:
    """List what the tables of the index have in their column of commands."""
    found, place = [], None
    for line in (ROOT / "docs" / "evidence" / "index.md").read_text("utf-8").splitlines():
        words = [word.strip(" |") for word in line.split(" | ")]
        if not line.startswith("|"):
            place = None
        elif place is not None and "---" not in line:
            found.append(words[place])
        elif "command, and what it takes" in words:
            place = words.index("command, and what it takes")
    return found


def commands() -> list[str]:
    """List the commands of the index."""
    return sorted({code for cell in cells() for code in re.findall("`([^`]+)`", cell)})


def wrong(command: str) -> str:
    """Return what is missing for a command, or nothing."""
    first, *rest = command.split()
    if first == "make":
        target = re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        return "" if target else f"no target {rest[0]}"
    if first == "pytest":
        paths = [word for word in rest if word.startswith("tests")]
        missing = [path for path in paths if not (ROOT / path).exists()]
        return f"no {', '.join(missing)}" if missing or not paths else ""
    if first.startswith("scripts/"):
        return "" if (ROOT / first).is_file() else f"no {first}"
    if [first, rest[0]] != ["python", "-m"]:
        return "neither make, pytest, python -m nor a script"
    return _wrong_module(rest[1], [word for word in rest[2:] if word not in SETTINGS])


def _wrong_module(module: str, words: list[str]) -> str:
    if find_spec(module) is None:
        return f"no module {module}"
    if module == "benchmarks.papers":
        return "" if {*words} <= PAPERS.keys() | {"NAME"} else f"no paper of {words}"
    if module == "benchmarks":
        return "" if {*words} <= {*SECTIONS, "--only"} else f"no section of {words}"
    return ""


@pytest.mark.parametrize("command", commands())
def test_commands_of_the_index_exist(command: str) -> None:
    """Each command names a module, a section, a paper, a target, a test or a script."""
    assert not wrong(command)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("python -m benchmarks.none", "no module benchmarks.none"),
        ("python -m benchmarks --quick --only none", "no section of ['--only', 'none']"),
        ("python -m benchmarks.papers none", "no paper of ['none']"),
        ("make none", "no target none"),
        ("pytest tests/none.py", "no tests/none.py"),
        ("scripts/none", "no scripts/none"),
        ("none at all", "neither make, pytest, python -m nor a script"),
    ],
)
def test_a_command_that_is_gone_is_found(command: str, reason: str) -> None:
    """The check fails for each kind of command that does not exist."""
    assert wrong(command) == reason


def test_every_claim_has_a_command() -> None:
    """No row of the index is without a command."""
    assert len(cells()) > 40
    assert all("`" in cell for cell in cells())


def test_the_index_names_every_page() -> None:
    """Each page of evidence is linked from the index."""
    text = (ROOT / "docs" / "evidence" / "index.md").read_text(encoding="utf-8")
    names = {path.name for path in PAGES} - {"index.md"}
    assert names == set(re.findall(r"\]\(([a-z0-9_]+\.md)", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_two_screens(page: Path) -> None:
    """What does not fold away is short."""
    text = re.sub("<details.*?</details>", "a fold", page.read_text("utf-8"), flags=re.DOTALL)
    assert len([line for line in text.splitlines() if line.strip()]) <= TWO_SCREENS


def test_parts_of_the_third_level_fold_away() -> None:
    """A part with a title of the third level ends where the next title begins."""
    page = foldings(
        "# A\n\nOpen.\n\n### Less < more\n\nAway.\n\n## B\n\nOpen too.\n\n### C\n\nAway.\n"
    )
    summaries = re.findall("<summary>(.*)</summary>", page)
    opened = re.sub("<details.*?</details>", "", page, flags=re.DOTALL)
    assert summaries == ["Less &lt; more", "C"]
    assert opened.split() == ["#", "A", "Open.", "##", "B", "Open", "too."]

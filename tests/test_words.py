"""`scripts/words`, the check of words that must not come back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "words"


def checked(path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run the script on a file with some text."""
    path.write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, SCRIPT, path], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("ok\nWhat users are told.\n", ":2: 'told': say shown"),
        ('"""Give the scores."""\n', "begin with Return"),
        ('"""They."""\n', "name the thing"),
        ("    classes\n        They.\n", "name the thing"),
        ("Governing rule: one.\n", "say in one sentence"),
        ("3 letters a day\n", "dead letters"),
        ("an alarm rings\n", "is active"),
        ("an id is no text of one character\n", "must be a ..."),
        ("its how manieth episode\n", "number"),
    ],
)
def test_a_banned_word_is_found(tmp_path: Path, text: str, advice: str) -> None:
    """The script names file, line, word and advice, and fails."""
    ran = checked(tmp_path / "page.md", text)
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
    assert str(tmp_path / "page.md") in ran.stderr
    assert advice in ran.stderr


@pytest.mark.parametrize(
    "text",
    [
        "3 dead letters",
        "dead_letters",
        "letters and digits",
        '"""Return it."""',
        "what counts is it.",
    ],
)
def test_other_words_are_not(tmp_path: Path, text: str) -> None:
    """The field's own words pass."""
    ran = checked(tmp_path / "page.md", text)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("code", ["told = 1", "for letter in found:", "TOLD_FIRST", "a = [rang]"])
def test_the_code_of_a_test_is_read_for_names(tmp_path: Path, code: str) -> None:
    """Old names in the code of a test are found; the names of today pass."""
    path = tmp_path / "tests" / "test_it.py"
    path.parent.mkdir()
    path.write_text(f'"""Test it."""\n{code}\ndead_letters = ascii_letters\n')
    ran = subprocess.run(
        [sys.executable, SCRIPT, "tests/test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("tests/test_it.py:2: ")


def test_the_checkout_has_none() -> None:
    """Every file that is converted passes."""
    ran = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert ran.stderr == ""

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
        ("the labels held\n", "kept"),
        ("a model whose labels come\n", "with"),
        ("such labels\n", "of this kind"),
        ("the number of labels 1\n", "labels that are 1"),
        ("a file beside it\n", "next to"),
        ("if there is none\n", "or None"),
        ("two, of which one is right\n", "new clause"),
        ("whoever reads it\n", "a reader"),
        ("up to 3 points are not excluded\n", "range"),
        ("194 came where 286 were expected\n", "promised"),
        ("it is armed again\n", "counts anew"),
        ("the methods, and who is trusted\n", "weights"),
        ("it holds however often one reads\n", "however often you look"),
        ("being without a label costs nothing\n", "lack of a label"),
        ("sending it again is vain\n", "useless"),
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
        "the parameter `held`",
        "Czado, Gneiting & Held (2009)",
        "labels 1,000 late",
        "formats such as CSV, and no such file",
        "the value is None",
        "however often one reader asks",
    ],
)
def test_other_words_are_not(tmp_path: Path, text: str) -> None:
    """The field's own words pass."""
    ran = checked(tmp_path / "page.md", text)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("it.py", '"""Keep it."""\n\nheld = beside = 1  # kept\n'),
        ("it.hpp", "int held = beside;  // kept\n"),
    ],
)
def test_code_may_have_words_of_prose(tmp_path: Path, name: str, text: str) -> None:
    """In code a variable may be named by a word that a comment may not have."""
    path = tmp_path / name
    assert checked(path, text).returncode == 0
    ran = checked(path, text.replace("kept", "held"))
    assert ran.returncode == 1
    assert ran.stderr.endswith("'held': kept, stored, there, had\n")


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

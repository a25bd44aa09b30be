"""The gallery: each example runs, and its page shows what it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.gallery.notebooks import NOTEBOOKS, executed, page, page_of

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "gallery"
PROGRAMS = [
    one for one in sorted(ROOT.glob("examples/*.py")) if (PAGES / f"{one.stem}.md").exists()
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d.]*\d")
ELSEWHERE = {"index": {"200"}, "kafka": {"17", "25"}}  # numbers that are neither in code nor output


def blocks(text: str, kind: str) -> list[str]:
    """Return the blocks of a kind on a page."""
    return [block for of, block in BLOCK.findall(text) if of == kind]


def numbers(text: str) -> set[str]:
    """Return the numbers of two digits or more, without separators of thousands."""
    return {*NUMBER.findall(re.sub(r"(?<=\d)[_,](?=\d)", "", text))}


@pytest.mark.native
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.stem)
def test_a_program_prints_what_its_page_shows(program: Path) -> None:
    """The first block of text on the page is the output, and the code is the file."""
    text = (PAGES / f"{program.stem}.md").read_text("utf-8")
    ran = subprocess.run([sys.executable, program], check=True, capture_output=True, text=True)
    assert blocks(text, "text")[0] == ran.stdout
    assert f'--8<-- "examples/{program.name}"' in text


@pytest.mark.native
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda one: one.stem)
def test_a_page_is_its_notebook(notebook: Path) -> None:
    """A notebook runs from top to bottom, and its page has its text, its code and its outputs."""
    found = page(notebook, executed(notebook))
    shown = page_of(notebook).read_text("utf-8")
    assert shown == found, "run python -m tests.gallery.notebooks --write"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda one: one.stem)
def test_a_notebook_is_saved_without_outputs(notebook: Path) -> None:
    """Outputs are on the page alone, so a notebook in git changes only with its code."""
    text = notebook.read_text("utf-8")
    assert '"outputs": []' in text
    assert "output_type" not in text


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=lambda one: one.stem)
def test_numbers_in_the_text_are_those_of_code_or_output(path: Path) -> None:
    """Each number of two digits or more in the text of a page is in its code or its output."""
    text = path.read_text("utf-8")
    included = [(ROOT / one).read_text("utf-8") for one in re.findall(r'--8<-- "(.+)"', text)]
    known = numbers("".join([*(block for _, block in BLOCK.findall(text)), *included]))
    assert numbers(BLOCK.sub("", text)) - known <= ELSEWHERE.get(path.stem, set())


def test_every_example_is_on_a_page_and_in_the_navigation() -> None:
    """The index and the navigation name each page, and the index each file."""
    index, navigation = (PAGES / "index.md").read_text(), (ROOT / "mkdocs.yml").read_text()
    for one in PAGES.glob("*.md"):
        assert f"gallery/{one.name}" in navigation
        assert one.name == "index.md" or f"]({one.name})" in index
    for path in (*PROGRAMS, *NOTEBOOKS):
        assert f"`{path.name}`" in index

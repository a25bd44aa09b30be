"""The examples of docstrings, README, docs and programs: each is run and gives what it says."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import abers
import abers_connectors

CHECKOUT = Path(__file__).parents[1]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS

MODULES = [
    module.name
    for package in (abers, abers_connectors)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith(("__main__", "_core"))
]
GALLERY = CHECKOUT / "docs" / "gallery"
PROGRAMS = [  # `tests/gallery` runs those whose output is on a page
    program
    for program in sorted((CHECKOUT / "examples").glob("*.py"))
    if not (GALLERY / f"{program.stem}.md").exists()
]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]


@pytest.mark.parametrize("name", ["abers", "abers_connectors", *MODULES])
def test_docstrings(name: str) -> None:
    """Every example in the docstrings of a module gives the result it shows."""
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=OPTIONS).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages(page: Path) -> None:
    """Every example on a page of the documentation gives the result it shows."""
    shown = doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS)
    assert shown.failed == 0


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_programs(program: Path) -> None:
    """Every example program prints the last paragraph of its docstring."""
    page = ast.get_docstring(ast.parse(program.read_text())) or ""
    ran = subprocess.run([sys.executable, program], check=True, capture_output=True, text=True)
    assert ran.stdout.rstrip() == textwrap.dedent(page.rpartition("\n\n")[2])

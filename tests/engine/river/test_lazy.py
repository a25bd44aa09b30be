"""What importing the wrappers loads, and the error when a library is missing."""

from __future__ import annotations

import pydoc
import subprocess
import sys

import pytest

import abers.river

WRAPPERS = [
    "CrossVennAbersClassifier",
    "VennAbersClassifier",
    "VennAbersMultiClassifier",
    "VennAbersRegressor",
]


def said(program: str) -> str:
    """Run a program in a fresh interpreter and return what it printed."""
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return ran.stdout.strip()


@pytest.mark.parametrize(
    "statement",
    ["import abers", "import abers.learners", "import abers.river", "import abers.sklearn"],
)
def test_importing_abers_loads_neither_river_nor_sklearn(statement: str) -> None:
    """Neither the package nor its learners and wrappers load a library of models."""
    assert (
        said(f"import sys; {statement}; print({{'river', 'sklearn'}} & {{*sys.modules}})")
        == "set()"
    )


@pytest.mark.parametrize("name", WRAPPERS)
def test_without_river_the_remedy_is_named(name: str) -> None:
    """Asking for a wrapper without river gives the pip command."""
    program = f"""
import sys
sys.modules["river"] = None
from abers import MissingExtraError
try:
    from abers.river import {name}
except MissingExtraError as error:
    print(error)
"""
    assert said(program) == f"{name} needs river; install it: pip install 'abers[river]'"


def test_all_that_is_exported_is_there() -> None:
    """`__all__` is sorted and complete, and other names raise an AttributeError."""
    assert abers.river.__all__ == WRAPPERS
    for name in abers.river.__all__:
        assert getattr(abers.river, name).__name__ == name
    for package in (abers, abers.river, abers.sklearn):
        with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
            package.Nothing  # noqa: B018 - it is the question


@pytest.mark.parametrize(
    "wrapper",
    [
        *(getattr(abers.river, name) for name in abers.river.__all__),
        *(getattr(abers.sklearn, name) for name in abers.sklearn.__all__),
    ],
)
def test_help_fits_a_screen_before_its_details(wrapper: type) -> None:
    """What a wrapper does, its signature and its parameters take at most 40 lines of `help`."""
    lines = pydoc.plain(pydoc.render_doc(wrapper)).splitlines()
    assert [line.strip(" |") for line in lines].index("Attributes") <= 40

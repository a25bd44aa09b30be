"""What importing the wrappers pulls in, and what is said when a library is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import abers.learners

WRAPPERS = {
    "CrossVennAbersClassifier": "river",
    "VennAbersClassifier": "river",
    "VennAbersMultiClassifier": "river",
}


def said(program: str) -> str:
    """Run a program in a fresh interpreter and return what it printed."""
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return ran.stdout.strip()


@pytest.mark.parametrize("statement", ["import abers", "import abers.learners"])
def test_importing_abers_loads_neither_river_nor_sklearn(statement: str) -> None:
    """Neither the package nor its learners load a library of models."""
    assert (
        said(f"import sys; {statement}; print({{'river', 'sklearn'}} & {{*sys.modules}})")
        == "set()"
    )


@pytest.mark.parametrize(("name", "library"), WRAPPERS.items())
def test_a_missing_library_is_named_with_its_remedy(name: str, library: str) -> None:
    """Asking for a wrapper without its library gives the pip command."""
    program = f"""
import sys
sys.modules[{library!r}] = None
from abers import MissingExtraError
try:
    from abers.learners import {name}
except MissingExtraError as error:
    print(error)
"""
    library = {"sklearn": "scikit-learn"}.get(library, library)
    extra = {"scikit-learn": "sklearn"}.get(library, library)
    assert said(program) == f"{name} needs {library}; install it: pip install 'abers[{extra}]'"


def test_all_that_is_exported_is_there() -> None:
    """`__all__` is sorted and names what there is, and nothing else is made up."""
    assert abers.learners.__all__ == sorted({*WRAPPERS, "Learner"})
    for name in abers.learners.__all__:
        assert getattr(abers.learners, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        abers.learners.Nothing  # noqa: B018 - it is the question

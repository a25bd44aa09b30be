"""What each public package of abers shows, and what its import leaves alone."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import abers

PACKAGES = [name for name in abers.__all__ if isinstance(getattr(abers, name), ModuleType)]


def loaded_by(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter has after a statement."""
    program = f"import sys; {statement}; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return {*ran.stdout.split()}


def test_every_public_package_is_an_attribute() -> None:
    """The packages without an underscore are names of abers, but for two internal ones."""
    found = {module.name for module in pkgutil.iter_modules(abers.__path__) if module.ispkg}
    public = {name for name in found if not name.startswith("_")} - {"pages", "reference"}
    assert public <= {*PACKAGES}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_is_imported_at_its_first_use(package: str) -> None:
    """`import abers` is enough to reach a package, and no other name is made up."""
    program = f"import abers; print(abers.{package}.__name__); abers.nothing"
    ran = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert ran.stdout == f"abers.{package}\n"
    assert "module 'abers' has no attribute 'nothing'" in ran.stderr


@pytest.mark.parametrize("function", ["monitor", "report"])
def test_a_function_of_the_notebook_is_imported_at_its_first_use(function: str) -> None:
    """`abers.report` and `abers.monitor` are those of `abers.notebook`, which loads no library."""
    assert getattr(abers, function) is getattr(abers.notebook, function)
    assert "abers.notebook" not in loaded_by("import abers")
    loaded = loaded_by(f"import abers; abers.{function}")
    assert "abers.notebook" in loaded
    assert not {"abers_connectors", "pandas", "polars", "plotly", "IPython"} & loaded


def test_abers_shows_its_public_names() -> None:
    """`dir(abers)` has the public names, and nothing else."""
    assert dir(abers) == abers.__all__


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_shows_its_public_names(package: str) -> None:
    """`dir` of a package has its public names and modules: no `annotations`, no imports."""
    module = importlib.import_module(f"abers.{package}")
    own = {one.name for one in pkgutil.iter_modules(getattr(module, "__path__", []))}
    shown = {name for name in dir(module) if not name.startswith("__")} - own
    assert shown <= {*module.__all__}
    assert {*module.__all__} <= {*dir(module)}


def test_importing_abers_loads_no_package_that_it_does_not_need() -> None:
    """`import abers` loads the calibrators, and leaves the other packages to their first use."""
    loaded = {f"abers.{name}" for name in PACKAGES} & loaded_by("import abers")
    assert loaded <= {"abers.base", "abers.calibration"}


@pytest.mark.native
def test_importing_abers_loads_no_specification() -> None:
    """With the native core `import abers` loads no reference implementation, and numpy alone."""
    loaded = loaded_by("import abers")
    assert not {"abers.reference", "sortedcontainers", "msgspec"} & loaded


def test_a_stream_loads_neither_batch_nor_plotting() -> None:
    """`import abers.stream` loads no module that no stream reaches."""
    loaded = loaded_by("import abers.stream")
    assert not {name for name in loaded if name.startswith(("abers.batch", "abers.plotting"))}
    assert not {"plotly", "river", "sklearn", "scipy"} & loaded

"""The package as installed: what importing it pulls in, what it exports, what it carries."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
from importlib.resources import files

import pytest

import abers

PACKAGES = ["abers", "abers_connectors"]


def imported_by(statement: str) -> set[str]:
    """Return the top-level modules, beyond the standard library, that a statement loads."""
    program = f"""
import sys
before = set(sys.modules)
{statement}
print(*{{name.partition(".")[0] for name in set(sys.modules) - before}})
"""
    shown = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    return {name for name in shown.split() if name not in sys.stdlib_module_names}


def test_import_needs_only_numpy_and_sortedcontainers() -> None:
    """`import abers` loads nothing beyond numpy, sortedcontainers and the standard library."""
    assert imported_by("import abers") <= {"abers", "numpy", "sortedcontainers"}


def test_import_never_reaches_the_connectors() -> None:
    """`import abers` leaves the connectors and their libraries alone."""
    assert "abers_connectors" not in imported_by("import abers")


@pytest.mark.parametrize("package", PACKAGES)
def test_exports_are_sorted_and_exist(package: str) -> None:
    """`__all__` is sorted, without repetition, and names only what is there."""
    module = importlib.import_module(package)
    exported = list(getattr(module, "__all__", []))
    assert exported == sorted(set(exported))
    assert all(hasattr(module, name) for name in exported)


@pytest.mark.parametrize("package", PACKAGES)
def test_types_are_shipped(package: str) -> None:
    """Both packages carry the marker that tells type checkers to read their annotations."""
    assert files(package).joinpath("py.typed").is_file()


def test_version_is_that_of_the_distribution() -> None:
    """`abers.__version__` is the version that was installed."""
    assert abers.__version__ == importlib.metadata.version("abers")


def test_top_level_names_are_ours_alone() -> None:
    """The distribution installs no module named after a folder of the checkout."""
    installed = {
        name
        for name, distributions in importlib.metadata.packages_distributions().items()
        if "abers" in distributions
    }
    assert not installed & {"benchmarks", "connectors", "engine", "scripts", "tests"}


def test_all_includes_every_other_extra() -> None:
    """The extra `all` leaves out only Kerberos, whose headers it needs, and the heavy engines."""
    metadata = importlib.metadata.metadata("abers")
    extras = set(metadata.get_all("Provides-Extra") or [])
    wanted = next(
        line
        for line in metadata.get_all("Requires-Dist") or []
        if line.startswith("abers[") and "all" in line.partition(";")[2]
    )
    assert set(wanted.partition("[")[2].partition("]")[0].split(",")) == extras - {
        "all",
        "kerberos",
    }

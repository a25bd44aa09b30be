"""The choice of a backend, and what the package's modules export."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys

import pytest
from tests.engine.cases import native_exists

import abers
from abers import exceptions

NO_CORE = "import sys; sys.modules['abers._core'] = None"
"""Makes the native core impossible to import."""

SOURCES_ONLY = """
import sys
from importlib.machinery import ModuleSpec

class OnlySources:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "abers._core":
            return ModuleSpec(name, None, is_package=True)

sys.meta_path.insert(0, OnlySources)
"""
"""Puts a folder of sources where the native core should be, as in a checkout without a build."""

NEEDS = "streams, monitors, protection and cross calibration need the native core of abers, which"
LACKING = {
    None: f"{NEEDS} this installation lacks; install a C++20 compiler and the Python headers and "
    "reinstall abers",
    "reference": f"{NEEDS} ABERS_BACKEND=reference leaves out; unset it",
}
"""What abers says without the native core, and where the variable leaves it out."""

MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(abers.__path__, "abers.")
    if not any(part.startswith("_") for part in module.name.split("."))
]


def run(program: str, wanted: str | None, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh interpreter, with or without `ABERS_BACKEND`."""
    environment = {name: value for name, value in os.environ.items() if name != "ABERS_BACKEND"}
    if wanted is not None:
        environment["ABERS_BACKEND"] = wanted
    return subprocess.run(
        [sys.executable, *flags, "-c", program],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )


# The choice


@pytest.mark.parametrize("wanted", ["native", "reference"])
def test_the_backend_asked_for_runs(wanted: str) -> None:
    """`ABERS_BACKEND` names the backend, and nothing is warned of."""
    if wanted == "native" and not native_exists():
        pytest.skip("the native core is not built")
    done = run("import abers; print(abers.backend())", wanted, "-W", "error")
    assert (done.stdout, done.stderr) == (f"{wanted}\n", "")


@pytest.mark.parametrize("wanted", [None, ""])
def test_the_native_backend_runs_by_default(wanted: str | None) -> None:
    """Unset or empty, `ABERS_BACKEND` leaves the native backend to run."""
    if not native_exists():
        pytest.skip("the native core is not built")
    done = run("import abers; print(abers.backend())", wanted, "-W", "error")
    assert (done.stdout, done.stderr) == ("native\n", "")


@pytest.mark.parametrize("wanted", ["fast", "Native", "reference ", "0"])
def test_an_unknown_backend_is_refused(wanted: str) -> None:
    """Another value of `ABERS_BACKEND` is an error that shows it and the two that are known."""
    done = run("import abers", wanted)
    assert done.returncode == 1
    assert "abers.exceptions.BackendError" in done.stderr
    assert f"ABERS_BACKEND={wanted!r}" in done.stderr
    assert "'native' or 'reference'" in done.stderr


@pytest.mark.parametrize("lack", [NO_CORE, SOURCES_ONLY], ids=["no core", "sources only"])
def test_without_a_core_the_reference_runs_with_a_warning(lack: str) -> None:
    """Without the native core the reference runs, and a FallbackWarning says how to fix it.

    The warning is shown by default and points to the line that imports abers.
    """
    program = (
        "import abers; c = abers.VennAbers(); c.learn_one(0.5, 1); print(len(c), abers.backend())"
    )
    done = run(f"{lack}\n{program}", None)
    assert done.stdout == "1 reference\n"
    assert "FallbackWarning: abers runs on its reference implementation" in done.stderr
    assert LACKING[None] in done.stderr
    assert done.stderr.startswith("<string>:")


@pytest.mark.parametrize("lack", [NO_CORE, SOURCES_ONLY], ids=["no core", "sources only"])
def test_the_reference_can_be_chosen_in_silence(lack: str) -> None:
    """Asked for, the reference runs without a warning."""
    done = run(f"{lack}\nimport abers; print(abers.backend())", "reference", "-W", "error")
    assert (done.stdout, done.stderr) == ("reference\n", "")


@pytest.mark.parametrize("lack", [NO_CORE, SOURCES_ONLY], ids=["no core", "sources only"])
def test_a_missing_native_backend_that_was_asked_for_is_an_error(lack: str) -> None:
    """`ABERS_BACKEND=native` never falls back: an ImportError says how to get the core."""
    program = f"{lack}\ntry:\n    import abers\nexcept ImportError as e:\n    print(repr(e))"
    done = run(program, "native")
    assert done.stdout.startswith("BackendError('ABERS_BACKEND=native: the native core cannot be")
    assert "install a C++20 compiler" in done.stdout


USES = [
    "abers.stream.Processor(abers.stream.Settings())",
    "abers.report([0, 1], [0.2, 0.7])",
    "abers.monitor()",
    "abers.monitoring.PrequentialScores()",
    "abers.monitoring.Reliability()",
    "abers.monitoring.CalibrationEProcess()",
    "abers.monitoring.ForecastGroups(1.25)",
    "abers.monitoring.corp([0.2, 0.7], [0, 1])",
    "abers.CrossVennAbers()",
    "abers.CrossInterval((0.1, 0.9), (0.1, 0.9)).merged",
    "abers.ProtectedVennAbers()",
    "abers.ProtectedCrossVennAbers()",
    'abers.ProtectedMultiClass(["a", "b"])',
    "abers.regression.ProtectedIVAPR((0.0, 1.0))",
]


@pytest.mark.parametrize("wanted", [None, "reference"])
def test_what_needs_the_native_core_says_how_to_get_it(wanted: str | None) -> None:
    """On the reference all but the sets of `VennAbers` and `IVAPR` is a BackendError."""
    program = f"""{NO_CORE}
import abers
for use in {USES!r}:
    try:
        print(use, eval(use))
    except abers.BackendError as error:
        print(error)
"""
    done = run(program, wanted)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [LACKING[wanted]] * len(USES)


# The exceptions


def tree() -> list[tuple[str, str | None]]:
    """Read names and parents from the tree drawn in the module's docstring."""
    found: list[tuple[str, str | None]] = []
    ancestors: list[str] = []
    for line in (exceptions.__doc__ or "").partition("::")[2].splitlines():
        drawn = re.match(r"    ([│├└─ ]*)([A-Z]\w+)", line)
        if drawn:
            depth = len(drawn[1]) // 4
            ancestors[depth:] = [drawn[2]]
            found.append((drawn[2], ancestors[depth - 1] if depth else None))
    return found


def test_every_error_is_in_the_tree() -> None:
    """The tree in the docstring names each error once."""
    errors = {
        name
        for name, one in vars(exceptions).items()
        if inspect.isclass(one) and issubclass(one, abers.AbersError)
    }
    names = [name for name, _ in tree()]
    assert len(names) > 10
    assert sorted(names) == sorted(errors)


@pytest.mark.parametrize(("name", "parent"), tree())
def test_the_tree_is_true(name: str, parent: str | None) -> None:
    """Each error derives from the one it hangs from, and has a docstring of its own."""
    error = getattr(exceptions, name)
    assert error.__bases__[0].__name__ == (parent or "Exception")
    assert error.__doc__
    described = re.search(rf"{name} \(also an? (\w+)\)", exceptions.__doc__ or "")
    assert [base.__name__ for base in error.__bases__[1:]] == ([described[1]] if described else [])


def test_the_warning_can_be_filtered_as_a_runtime_warning() -> None:
    """`FallbackWarning` is a RuntimeWarning."""
    assert issubclass(abers.FallbackWarning, RuntimeWarning)


# Exports


@pytest.mark.parametrize("module", [abers, *MODULES], ids=lambda module: module.__name__)
def test_exports_are_sorted_and_exact(module: object) -> None:
    """`__all__` lists, in the order of isort, every class and function made in the module.

    A package lists all that it takes over from its modules instead.
    """
    exported = module.__all__  # type: ignore[attr-defined]
    made = {
        name
        for name, one in vars(module).items()
        if (inspect.isclass(one) or inspect.isfunction(one))
        and not name.startswith("_")
        and (hasattr(module, "__path__") or one.__module__ == module.__name__)  # type: ignore[attr-defined]
    }
    assert made <= set(exported)
    assert all(hasattr(module, name) for name in exported)
    kinds = [(not name.isupper(), not name[0].isupper(), name) for name in exported]
    assert kinds == sorted(set(kinds))

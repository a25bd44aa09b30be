"""What every test shares: one backend, asked for and confirmed, and the budget of hypothesis.

Governing rule: a run tests the backend that it was asked for, `ABERS_BACKEND` (by default the
native one), or fails at once; and in CI it tests all that it was asked for.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Generator

BACKEND = os.environ.setdefault("ABERS_BACKEND", "native")
CI = os.environ.get("CI") == "true"

import abers  # noqa: E402 - after the backend is chosen: without it the fallback would do

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "long",
    deadline=None,
    max_examples=1_000,
    stateful_step_count=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if CI else "dev")


def pytest_configure() -> None:
    """Stop a run on another backend than the one asked for."""
    if abers.backend() != BACKEND:
        msg = f"ABERS_BACKEND={BACKEND}, but abers runs on {abers.backend()}"
        raise pytest.UsageError(msg)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `long` unless it is asked for, and what cannot run here.

    That is `native` on the reference, and `browser` where there is none.
    """
    out = {"native"} if BACKEND != "native" else set()
    if "long" not in config.getoption("markexpr"):
        out.add("long")
    if shutil.which("chromium") is None:
        out.add("browser")
    kept = [item for item in items if out.isdisjoint(mark.name for mark in item.iter_markers())]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI nothing that is missing is excused: a skipped test has failed."""
    report = yield
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not excuse: {report.longrepr}"
    return report


@pytest.fixture
def size(request: pytest.FixtureRequest) -> int:
    """Return the size that `@pytest.mark.large(native, reference=…)` gives this backend.

    Examples
    --------
    ::

        @pytest.mark.large(1_000_000, reference=2_000)
        def test_leave_one_out(size: int) -> None: ...
    """
    marker = request.node.get_closest_marker("large")
    return int(marker.args[0] if BACKEND == "native" else marker.kwargs["reference"])

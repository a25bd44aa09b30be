"""What every test shares: one backend, asked for and confirmed, and the budget of hypothesis.

Governing rule: a run tests the backend that it was asked for, `ABERS_BACKEND` (by default the
native one), or fails at once.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

BACKEND = os.environ.setdefault("ABERS_BACKEND", "native")

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
settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")


def pytest_configure() -> None:
    """Stop a run on another backend than the one asked for."""
    if abers.backend() != BACKEND:
        msg = f"ABERS_BACKEND={BACKEND}, but abers runs on {abers.backend()}"
        raise pytest.UsageError(msg)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests marked `long` to runs that ask for them (`-m long`)."""
    if "long" in config.getoption("markexpr"):
        return
    kept = [item for item in items if item.get_closest_marker("long") is None]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


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

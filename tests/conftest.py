"""What every test shares: one backend, asked for and confirmed, and the budget of hypothesis.

A run tests the backend that it was asked for, `ABERS_BACKEND` (by default the
native one), or fails at once; and in CI it tests all that it was asked for.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Generator

    from xdist.workermanage import WorkerController

BACKEND = os.environ.setdefault("ABERS_BACKEND", "native")
CI = os.environ.get("CI") == "true"
ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # some import `benchmarks`, which is never installed
DATA = Path(os.environ.setdefault("ABERS_DATA", str(ROOT.parent / "shared" / "data")))

import abers  # noqa: E402 - after the backend is chosen: without it the fallback would do

settings.register_profile("dev", deadline=None)
# Of the same examples each time, so that many of them find nothing that they did not find before.
settings.register_profile("ci", deadline=None, max_examples=25, derandomize=True, print_blob=True)
# For the stages that run the tests of test-native once more, on another build.
settings.register_profile("again", deadline=None, max_examples=5, derandomize=True)
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


def without_browser() -> str | None:
    """Return what to install for the tests of a page in a browser."""
    return None if shutil.which("chromium") else "on Debian, run: apt-get install chromium"


def without_data() -> str | None:
    """Return where the data sets of published tables must be."""
    return None if DATA.is_dir() else "set ABERS_DATA to the folder of their data sets"


def without_kafka() -> str | None:
    """Return what to install for the tests on a broker; the first time, its jars are fetched."""
    broker = [] if "KAFKA_BOOTSTRAP" in os.environ else ["kafka-broker"]
    with Path(tempfile.gettempdir(), "abers-fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Maven must not fetch for two workers of xdist at once
        for name in (*broker, "schema-registry"):
            words = [sys.executable, str(ROOT / "scripts" / name), "--fetch"]
            ran = subprocess.run(words, capture_output=True, text=True, check=False)
            if ran.returncode:
                return ran.stderr.strip().splitlines()[-1]
    return None


def without_promtool() -> str | None:
    """Return what to install for the tests of the rules for Prometheus."""
    return None if shutil.which("promtool") else "on Debian, run: apt-get install prometheus"


def without_systemd() -> str | None:
    """Return what to install for the tests of units."""
    return None if shutil.which("systemd-analyze") else "on Debian, run: apt-get install systemd"


MISSING = {
    "browser": without_browser,
    "data": without_data,
    "kafka": without_kafka,
    "prometheus": without_promtool,
    "systemd": without_systemd,
}
EXCUSED = {"data"}  # others have it, and may not hand it out
ONCE = tuple(
    f"tests/engine/{name}"
    for name in (
        "batch/",
        "engines/",
        "learners/",
        "monitoring/test_answer_numbers",  # long streams; the core's sums are in test_answer_sums
        "monitoring/test_answers_recomputed",
        "notebook/",
        "pages/",
        "plotting/",
        "reference/",
        "river/",
        "sklearn/",
        "stream/test_protect",  # the core's part in it is shown by tests/engine/calibration
        "stream/test_retirement",
    )
)
LEFT_OUT = pytest.StashKey[list[str]]()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what wraps the core or does without it, which one build shows as well as another."""
    if item.nodeid.startswith(ONCE):
        item.add_marker("once")


# Last, so that only those are looked at that were asked for.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `long` unless it is asked for, and what cannot run here.

    That is `native` on the reference, and a mark of `MISSING` where there is none; in CI the
    latter ends the run, but for what is `EXCUSED`.
    """
    asked = {mark.name for item in items for mark in item.iter_markers()}
    missing = {mark: why for mark in asked & MISSING.keys() if (why := MISSING[mark]())}
    lines = [f"the tests marked {mark} are left out: {missing[mark]}" for mark in sorted(missing)]
    config.stash[LEFT_OUT] = lines
    if hasattr(config, "workeroutput"):
        config.workeroutput["left out"] = lines
    if CI and missing.keys() - EXCUSED:
        items.clear()  # a worker of xdist that raises with tests to run hides why
        raise pytest.UsageError(*lines)
    out = {*missing} | ({"native"} if BACKEND != "native" else set())
    if "long" not in config.getoption("markexpr"):
        out.add("long")
    kept = [item for item in items if out.isdisjoint(mark.name for mark in item.iter_markers())]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """Hear from a worker, which alone has looked at the tests, what was left out."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left out", [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Write what was left out, and what to install for it."""
    for line in config.stash.get(LEFT_OUT, []):
        terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI nothing that is missing is excused: a skipped test has failed.

    Captured text has no lone surrogates, which a worker of xdist cannot send.
    """
    report = yield
    report.sections = [
        (name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections
    ]
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

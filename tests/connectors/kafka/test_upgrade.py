"""Upgrade and roll back: workers of two versions in one group, while records flow."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.connectors.kafka.chaos.application import Application
from tests.connectors.kafka.chaos.campaign import SECTIONS, drained, flowing
from tests.connectors.kafka.chaos.judge import judge
from tests.connectors.kafka.chaos.traffic import Traffic
from tests.connectors.kafka.chaos.workers import Supervisor

if TYPE_CHECKING:
    from tests.connectors.kafka.brokers import Broker

ROOT = Path(__file__).parents[3]
GOLDEN = ("tests/engine/stream/golden", "tests/connectors/kafka/golden")
"""Files that change exactly where the formats of snapshots and changelogs do."""
INSTANCES = ("a", "b")


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build the wheel of the first version with these formats, and return its interpreter."""
    folder = tmp_path_factory.mktemp("older")
    source, environment = folder / "source", folder / "environment"
    source.mkdir()
    archive = folder / "source.tar"
    git = shutil.which("git") or "git"
    log = [git, "log", "-1", "--format=%H", "--", *GOLDEN]
    first = subprocess.run(log, cwd=ROOT, check=True, capture_output=True, text=True)
    subprocess.run([git, "archive", "-o", archive, first.stdout.strip()], cwd=ROOT, check=True)
    with tarfile.open(archive) as packed:
        packed.extractall(source, filter="data")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = str(environment / "bin" / "python")
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    known = ["--constraint", str(source / "constraints.txt")]
    wheel = ["wheel", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run([*pip, *wheel], check=True)
    (built,) = folder.glob("abers-*.whl")
    subprocess.run([*pip, "install", *known, f"{built}[kafka,http]"], check=True)
    return python


def rolled(supervisor: Supervisor, python: str) -> None:
    """Replace the workers one after another by those of a version."""
    for name in INSTANCES:
        supervisor.retire(name)
        supervisor.add(name, python=python).ready()


@pytest.mark.long
@pytest.mark.kafka
def test_rolling_restarts_between_two_versions(older: str, broker: Broker, tmp_path: Path) -> None:
    """Upgraded and rolled back under load, nothing is lost or doubled, and the state is equal.

    In between, both versions share the group. Each process restores what the others wrote.
    """
    application = Application(broker, tmp_path, 3, **SECTIONS)
    supervisor = Supervisor(application)
    traffic = Traffic(application, 5, 6_000)
    try:
        for name in INSTANCES:
            supervisor.add(name, python=older)
        for worker in supervisor.workers.values():
            worker.ready()
        for python in (sys.executable, older, sys.executable):
            flowing(traffic, 3_000, 200.0, lambda python=python: rolled(supervisor, python))  # type: ignore[misc]
        traffic.play(20_000)  # what is left
        traffic.close()
        drained(application, look=supervisor.require_all)
        for name in INSTANCES:
            supervisor.retire(name)
        found = judge(application, traffic.ids, traffic.poison, mixed=True)
        assert found.states_equal
        assert not found.lost + found.duplicates
        assert {code for one in supervisor.retired for code in one.exits} == {0}
    finally:
        supervisor.close()

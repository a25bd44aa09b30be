"""The unit for systemd: verified by itself, and true to the exit codes and keys of abers."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.deploy.files import DEPLOY

from abers_connectors import errors
from abers_connectors.config.layers import option
from abers_connectors.config.model import load

UNIT = DEPLOY / "abers@.service"
KEYS = re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE)
TOPICS = {"bootstrap_servers": "a:1", "observations": "i", "predictions": "o"}


def given(key: str) -> list[str]:
    """Return the values of a key."""
    return [value for name, value in KEYS if name == key]


@pytest.mark.systemd
def test_it_is_a_unit(tmp_path: Path) -> None:
    """Systemd knows every key, and finds nothing wrong."""
    command = Path(sys.executable).with_name("abers")
    unit = tmp_path / "abers@0.service"
    unit.write_text(UNIT.read_text().replace("/opt/abers/bin/abers", str(command)))
    words = ["systemd-analyze", "verify", "--man=no", str(unit)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")


@pytest.mark.systemd
def test_it_has_few_rights() -> None:
    """Systemd counts it among the services that have little they could harm with."""
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(UNIT)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-500:]


def test_what_is_not_tried_again() -> None:
    """What would end in the same way again is not tried again; all else is."""
    assert given("RestartPreventExitStatus") == [f"{errors.DATA} {errors.CONFIG}"]
    assert (given("Restart"), given("Type")) == (["on-failure"], ["notify"])


def test_a_stop_before_it_serves_is_no_failure() -> None:
    """A process that gets SIGTERM while it imports or connects ends with 128 + 15."""
    assert given("SuccessExitStatus") == [f"{128 + signal.SIGTERM}"]


def test_its_environment() -> None:
    """The variables are keys of a configuration, and the number of the unit is the instance."""
    pairs = [value.replace("%i", "7").split("=", 1) for value in given("Environment")]
    config = load(flags={"kafka": TOPICS}, environ=dict(pairs))
    assert config.kafka is not None
    assert (config.kafka.group_instance_id, config.http.port) == ("7", 0)


@pytest.mark.parametrize("key", ["StateDirectory", "RuntimeDirectory", "CacheDirectory"])
def test_no_two_instances_share_a_folder(key: str) -> None:
    """Each instance has a user of its own, who would take a shared folder from the others."""
    assert given("DynamicUser") == ["yes"]
    for folder in given(key):
        assert folder.replace("%i", "0") != folder.replace("%i", "1")


def test_snapshots_are_in_the_folder_of_the_instance() -> None:
    """The unit begins in its folder, and the configuration to copy keeps the state there."""
    (folder,) = given("StateDirectory")
    assert given("WorkingDirectory") == [f"/var/lib/{folder}"]
    path = load(DEPLOY / "abers.kafka.toml", environ={}).state.path
    assert path is not None
    assert not Path(path).is_absolute()


def test_our_own_watchdog_is_first() -> None:
    """The process, which can say what hung, has less patience than systemd."""
    (seconds,) = given("WatchdogSec")
    patience: int = option("kafka.stall_timeout").default
    assert patience < int(seconds) * 1000

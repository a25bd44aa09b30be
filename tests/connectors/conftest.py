"""Fixtures that run the command, in this process or in its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.browsing import browser  # noqa: F401 - a fixture
from tests.connectors.kafka.fixtures import (  # noqa: F401 - fixtures and a hook
    broker,
    brokers,
    consume,
    produce,
    pytest_collection_modifyitems,
    reader,
    schema_registry,
    topics,
    watchdog,
)
from tests.connectors.processes import Started
from typer.testing import CliRunner

from abers_connectors.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMAND = Path(sys.executable).with_name("abers")


class Ran(NamedTuple):
    """Exit code and output of a run of the command."""

    code: int
    out: str
    err: str


def in_a_line(errors: str) -> str:
    """Return errors as a line each: what is wrong, where, and what to do."""
    return errors.replace("\n  ", "; ")


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C reach the command even if the tests run in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Ran]:
    """Run the command in this process, in a directory of its own."""
    monkeypatch.chdir(tmp_path)

    def invoked(*words: str) -> Ran:
        result = CliRunner().invoke(app, words, prog_name="abers", catch_exceptions=False)
        return Ran(result.exit_code, result.stdout, result.stderr)

    return invoked


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Start the installed command as a process, with variables added to its environment."""

    def started(
        *words: str,
        stdin: int | None = None,
        out: int = subprocess.PIPE,
        err: int = subprocess.PIPE,
        **env: str,
    ) -> subprocess.Popen[bytes]:
        return Started(
            [COMMAND, *words],
            cwd=tmp_path,
            env=os.environ | env,
            stdin=stdin,
            stdout=out,
            stderr=err,
        )

    return started

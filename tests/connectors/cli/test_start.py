"""What a command imports: a short replay takes most of its time for it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import atexit, sys
from abers_connectors.cli.main import main
atexit.register(lambda: print("imported", *sys.modules))
main()
"""
UNUSED = {
    "abers_connectors.dashboard.report",
    "abers_connectors.dashboard.server",
    "abers_connectors.kafka",
    "abers_connectors.replay.workers",
    "abers_connectors.sinks.webhook",
    "asyncio",
    "http.client",
    "jinja2",
    "multiprocessing",
    "pandas",
    "plotly",
    "prometheus_client",
    "rich.progress",
    "river",
    "scipy",
    "sklearn",
}


def imported_by(folder: Path, *words: str) -> set[str]:
    """Return the modules that a command has imported at its end."""
    run = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True)
    return {*done.stdout.rpartition("imported ")[2].split()}


@pytest.mark.parametrize("words", [(), ("--output=y.parquet",), ("--json",)])
def test_a_replay_imports_what_it_needs(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A replay without page, report, workers, webhook and terminal imports nothing for them."""
    table = {"score": [0.25, 0.75, 0.5], "label": [0, 1, 1]}
    pq.write_table(pa.table(table), tmp_path / "x.parquet")
    found = imported_by(tmp_path, "replay", "x.parquet", "--delay=1", *words)
    assert "pyarrow.parquet" in found
    assert not UNUSED & found


def test_help_imports_no_engine(tmp_path: Path) -> None:
    """Help is words alone: neither the engine nor the configuration is imported."""
    found = imported_by(tmp_path, "--help")
    assert "typer" in found
    assert not {"abers", "numpy", "msgspec", "pyarrow", "rich"} & found

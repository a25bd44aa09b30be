"""The recipe of Flink, killed and gone on from a checkpoint, in the environment of `make flink`."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from benchmarks.clusters import RECIPES
from tests.engine.engines.histories import history

from abers.stream import Events, Processor, Settings

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = RECIPES.parents[1] / "build" / "flink" / "bin" / "python"
SETTINGS = Settings(scores="any")
PATIENCE = 600.0  # seconds
TURN = 0.1  # seconds between two looks for a checkpoint
NAMES, KIND = ["model", "id", "p0", "p1", "p", "n_labels"], "prediction"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not PYTHON.exists(), reason="Flink is missing: make flink"),
]


def checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints, the newest last."""
    found = [path.parent for path in folder.glob("checkpoints/*/chk-*/_metadata")]
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)


def written(folder: Path) -> list[Path]:
    """Return the files that a checkpoint has committed."""
    return [*(folder / "calibrated").glob("*/part-*")]


def start(folder: Path, checkpoint: Path | None = None) -> subprocess.Popen[bytes]:
    """Start the job, from a checkpoint or from the beginning."""
    words = [PYTHON, RECIPES / "flink_stream.py", folder, *([checkpoint] if checkpoint else [])]
    log = (folder / "log").open("ab")
    with log:
        return subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)


def test_a_job_that_is_killed_goes_on(tmp_path: Path) -> None:
    """A job that is killed and goes on from its checkpoint has each prediction once, to the bit."""
    table = history(100_000, 10)
    rows = [row for row in table.to_pylist() if not math.isnan(row["score"] or 0.0)]
    (tmp_path / "history").mkdir()
    # One file, since a file that is read behind another is late as a whole.
    (tmp_path / "history" / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    killed = start(tmp_path)
    end = time.monotonic() + PATIENCE
    while not written(tmp_path):
        assert killed.poll() is None, (tmp_path / "log").read_text()[-5_000:]
        assert time.monotonic() < end
        time.sleep(TURN)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    found = checkpoints(tmp_path)
    assert start(tmp_path, found[-1]).wait(PATIENCE) == 0, (tmp_path / "log").read_text()[-5_000:]
    lines = [line for path in written(tmp_path) for line in path.read_text().splitlines()]
    rows = [row for row in map(json.loads, lines) if row["kind"] == KIND]
    events = Events.from_arrow(table).by_time()
    made = Processor(SETTINGS).process_batch(events).to_arrow().predictions
    found_rows = [{name: row[name] for name in NAMES} for row in rows]
    assert sorted(found_rows, key=str) == sorted(made.select(NAMES).to_pylist(), key=str)

"""A long stream in constant memory."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIG = """
[input]
observations = "-"
format = "jsonl"
[calibrator]
window = 500
[limits]
label_timeout = "1h"
[output]
predictions = "out.jsonl.gz"
[state]
path = "abers.state"
snapshot_every = 20_000
"""
RECORDS = 100_000


def peak(process: subprocess.Popen[bytes]) -> int:
    """Return the peak memory of a process so far, in KiB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def test_memory_does_not_grow(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """With a window, all records take no more memory than the first fifth."""
    (tmp_path / "abers.toml").write_text(CONFIG)
    process = start("run", "abers.toml", "--json", stdin=subprocess.PIPE)
    assert process.stdin is not None
    peaks = []
    for n in range(RECORDS // 2):
        time = 1_700_000_000_000 + 1000 * n
        process.stdin.write(
            b'{"id": "%d", "time": %d, "score": 0.%d}\n{"id": "%d", "time": %d, "label": %d}\n'
            % (n, time, n % 97, n, time, n % 3 == 0)
        )
        if (n + 1) % (RECORDS // 10) == 0:
            process.stdin.flush()
            peaks.append(peak(process))
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert b'"records":100000,' in out
    assert peaks[-1] < peaks[0] + 8 * 1024

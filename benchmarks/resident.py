"""Resident memory of one calibrator, measured in a process of its own.

Only the growth by the calibrator is counted: everything else is loaded and touched before, and the
observations arrive in small batches, as in a stream. Run as
`python -m benchmarks.resident RULE N`; prints one JSON object.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from abers import VennAbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.streams import Floats

_BATCH = 1_000
_PAST = 3  # halves of n that arrive where something is forgotten: n, and half as many again
_LIVES = 30  # half-lives after which an observation is dropped

RULES: dict[str, Callable[[int], VennAbers]] = {
    "no window": lambda _: VennAbers(),
    "random weights": lambda _: VennAbers(),
    "window": lambda n: VennAbers(window=n),
    "max_age": lambda n: VennAbers(max_age=n),
    "half_life": lambda n: VennAbers(half_life=n / _LIVES),
}


def resident() -> int:
    """Read the resident bytes of this process (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def trim() -> bool:
    """Return what is free back to the system; False where the allocator is not glibc's."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        return False
    return True


def _learn(calibrator: VennAbers, columns: dict[str, Floats]) -> None:
    for at in range(0, len(columns["scores"]), _BATCH):
        calibrator.learn_many(**{name: c[at : at + _BATCH] for name, c in columns.items()})


def measure(rule: str, n: int) -> dict[str, float]:
    """Measure bytes an observation: as built, after a trim, and as the object itself says."""
    arriving = n if rule in {"no window", "random weights"} else n * _PAST // 2
    rng = np.random.default_rng(7)
    scores = rng.random(arriving)
    columns = {"scores": scores, "labels": (rng.random(arriving) < scores).astype(np.float64)}
    if rule == "random weights":
        columns["weights"] = rng.exponential(1.0, arriving) + 1e-3
    if rule in {"max_age", "half_life"}:
        columns["times"] = np.arange(arriving, dtype=np.float64)
    _learn(RULES[rule](_BATCH), {name: column[:_BATCH] for name, column in columns.items()})
    trim()
    before = resident()
    calibrator = RULES[rule](n)
    _learn(calibrator, columns)
    built = resident()
    trimmed = trim()
    held = len(calibrator)
    return {
        "held": held,
        "built": (built - before) / held,
        "trimmed": (resident() - before) / held if trimmed else float("nan"),
        "sizeof": sys.getsizeof(calibrator._held) / held,  # noqa: SLF001 - the core itself
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))

"""The program that `hotspots` profiles: a stream through another build of the core.

Only the stream runs between the two times of a line. Run as
`python -m benchmarks.profiled CORE N EVENTS REPEATS`; prints the address of the core, then a line
for each pass of the stream.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path


def load(core: str) -> None:
    """Put a core where abers searches for its own."""
    spec = importlib.util.spec_from_file_location("abers._core", core)
    if spec is None or spec.loader is None:
        msg = f"{core} is no extension module"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["abers._core"] = module


def base(core: str) -> str:
    """Read where a shared object was mapped (Linux)."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    return next(line.partition("-")[0] for line in maps if line.endswith(core))


def main(core: str, n: int, events: int, repeats: int) -> None:
    """Fill a bag, then push the stream through it and take it back, again and again."""
    load(core)
    from benchmarks.contenders import Abers  # noqa: PLC0415 - after the core is in its place
    from benchmarks.streams import ordinary  # noqa: PLC0415

    bag, stream = ordinary(n, seed=1), ordinary(events, seed=2)
    native = Abers(0)
    native.fill(bag.scores, bag.labels)
    sys.stdout.write(f"{base(core)}\n")
    for _ in range(repeats):
        first = time.monotonic()
        native.prequential(stream.scores, stream.labels)
        sys.stdout.write(f"{first} {time.monotonic()}\n")
        native.unlearn(stream.scores, stream.labels)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))

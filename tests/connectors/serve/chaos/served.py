"""`abers serve` with snapshots after little, files of the journal that are kept, and another clock.

Run as `python -m tests.connectors.serve.chaos.served KEPT SHIFT serve …`: files of the journal that
the server removes stay in the folder KEPT, and its clock differs by SHIFT seconds.
"""

from __future__ import annotations

import shutil
import sys
import time
from functools import partial
from pathlib import Path

from abers.stream import DurableProcessor
from abers.stream.durable.folder import StateFolder
from abers_connectors.cli.main import app
from abers_connectors.serve import service

__all__ = ["keep"]

JOURNAL_BYTES = 100_000


def keep(state: Path, kept: Path) -> None:
    """Keep copies of the files of the journal; a later copy of a file replaces it."""
    for file in state.glob("*.journal"):
        shutil.copyfile(file, kept / file.name)


def main(kept: str, shift: str) -> None:
    """Serve."""
    remove_old, clock, ahead = StateFolder.remove_old, time.time_ns, int(shift) * 10**9

    def remove(folder: StateFolder) -> None:
        keep(folder.path, Path(kept))
        remove_old(folder)

    StateFolder.remove_old = remove  # type: ignore[method-assign, assignment]
    service.DurableProcessor = partial(  # type: ignore[attr-defined, assignment]
        DurableProcessor, journal_bytes=JOURNAL_BYTES
    )
    time.time_ns = lambda: clock() + ahead
    app()


if __name__ == "__main__":
    first, second = sys.argv[1:3]
    del sys.argv[1:3]
    main(first, second)

"""Memory of a partition's state: at rest, while it is saved, and while it is restored.

Memory is the proportional set size of anonymous pages: what a process shares with its copy counts
once, and nothing that other programs map, such as the files of libraries, changes the figure. The
copy is measured once per turn of the loop, compared with the formula of the page. Run as
`python -m benchmarks.saved LABELS WAITING [WIDTH] [protected]`; prints JSON. The probability
is merged unless "protected" is given.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from abers.stream import Events, Processor, Settings
from abers.stream.background_snapshot import BackgroundSnapshotter
from abers_connectors.runtime.snapshots import SnapshotStore
from benchmarks.events import LATE, labels, observations
from benchmarks.resident import trim
from benchmarks.rivals import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
WIDTH = 36  # bytes of an id, as a UUID has
_APP = "measured"


class Memory(NamedTuple):
    """Memory of a partition's state in bytes, without that of an idle process."""

    held: int
    saving: int
    restoring: int
    snapshot: int


class Formula(NamedTuple):
    """Bytes of a partition's state by docs/deploy.md: one model, without features.

    Parameters
    ----------
    held
        At rest.
    making
        More, while its snapshot is made or read.
    snapshot
        Its snapshot.
    """

    held: int
    making: int
    snapshot: int


BASE = 150 * MIB
"""Memory of an idle process."""


def formula(
    labelled: int, waiting: int, finished: int, width: int = WIDTH, *, protected: bool = False
) -> Formula:
    """Return what the page says, with ids of so many bytes."""
    lanes = waiting if protected else 0
    return Formula(
        waiting * (208 + width) + finished * (110 + width) + 30 * labelled + 490 * lanes,
        40 * MIB + 60 * max(waiting, finished, labelled) + 350 * lanes,
        waiting * (143 + width) + finished * (36 + width) + 18 * labelled + 350 * lanes,
    )


def settings_of(labelled: int, waiting: int, *, protected: bool = False) -> Settings:
    """Return the settings of a state with so many labels and pending observations."""
    return Settings(
        scores="probability" if protected else "any",
        window=max(1, labelled),
        max_pending=max(1, waiting),
        dedup_max_ids=labelled,
    )


def full(labelled: int, waiting: int, width: int, *, protected: bool = False) -> Processor:
    """Return a processor with so many labels, finished ids and pending observations."""
    settings = settings_of(labelled, waiting, protected=protected)
    processor = Processor(settings, outcomes=False)
    for block in range(labelled // LATE):
        processor.process_batch(Events.of([*observations(block, width), *labels(block, width)]))
    for block in range(labelled // LATE, (labelled + waiting) // LATE):
        processor.process_batch(Events.of(observations(block, width)))
    return processor


def proportional(pid: int | str = "self") -> int:
    """Read the proportional set size of a process's anonymous pages; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss_Anon:")), 0)


def _copies() -> Iterator[str]:
    for task in Path("/proc/self/task").iterdir():
        try:
            yield from (task / "children").read_text("ascii").split()
        except FileNotFoundError:  # a thread that has ended
            continue


def peak_while_saving(saver: BackgroundSnapshotter) -> int:
    """Watch this process and its copy until a snapshot is saved."""
    peak = 0
    while saver.busy():
        peak = max(peak, proportional() + sum(map(proportional, _copies())))
    return peak


def measured(labelled: int, waiting: int, width: int = WIDTH, *, protected: bool = False) -> Memory:
    """Measure a state in this process, and the restore of its snapshot in another."""
    full(LATE, LATE, width, protected=protected)
    trim()
    before = proportional()
    processor = full(labelled, waiting, width, protected=protected)
    gc.collect()
    held = proportional()
    with tempfile.TemporaryDirectory() as folder:
        snapshots = SnapshotStore(folder, _APP)
        saver = BackgroundSnapshotter(snapshots.save)
        saver.start(0, 0, processor.snapshot_pieces)
        peak = peak_while_saving(saver)
        (saved,) = saver.finished()
        if saved.error is not None:
            raise RuntimeError(saved.error)
        command = [sys.executable, "-m", "benchmarks.saved", "restore", folder]
        words = [str(labelled), str(waiting), *["protected"] * protected]
        restoring = subprocess.check_output([*command, *words], cwd=ROOT)  # noqa: S603 - of ours
    return Memory(held - before, peak - before, int(restoring), saved.size)


def restored(folder: str, labelled: int, waiting: int, *, protected: bool = False) -> int:
    """Restore a snapshot in this process; by how much its resident memory grew at most."""
    full(LATE, LATE, WIDTH, protected=protected)
    before = _status("VmRSS")
    ((_, blob),) = SnapshotStore(folder, _APP).newest(0)
    settings = settings_of(labelled, waiting, protected=protected)
    Processor.restore(blob, settings, outcomes=False)
    return _status("VmHWM") - before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


if __name__ == "__main__":
    words, of = [*sys.argv[1:]], sys.argv[-1] == "protected"
    if of:
        words.pop()
    if words[0] == "restore":
        sys.stdout.write(str(restored(words[1], *map(int, words[2:]), protected=of)))
    else:
        sizes = [*map(int, words)]
        found = measured(*sizes, protected=of)._asdict()
        width = (sizes[2:] or [WIDTH])[0]
        said = formula(sizes[0], sizes[1], sizes[0], width, protected=of)._asdict()
        sys.stdout.write(json.dumps({"pid": os.getpid(), "measured": found, "formula": said}))

"""The memory formula of the page holds for a full partition, `benchmarks.saved`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.rivals import ROOT
from benchmarks.saved import formula

pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux")

COUNT = 150_000


def run(*words: object) -> str:
    """Run Python in a fresh process."""
    command = [sys.executable, "-W", "ignore", *map(str, words)]
    return subprocess.check_output(command, cwd=ROOT, text=True)


@pytest.mark.parametrize("protected", [False, True])
def test_a_shard_stays_within_the_formula(protected: bool) -> None:  # noqa: FBT001 - a case
    """At rest, while saved and while restored, a full partition takes what the page states."""
    words = (COUNT, COUNT, *["protected"] * protected)
    found = json.loads(run("-m", "benchmarks.saved", *words))["measured"]
    said = formula(COUNT, COUNT, COUNT, protected=protected)
    assert found["held"] <= said.held
    assert found["snapshot"] <= said.snapshot
    # Nothing changes meanwhile, so all that is more is the work of the copy.
    assert found["saving"] <= said.held + said.making
    assert found["restoring"] <= said.held + said.snapshot + said.making


LIMITED = """
import resource, sys
from pathlib import Path
from abers.stream.background_snapshot import BackgroundSnapshotter
from benchmarks.resident import trim
from benchmarks.saved import full, WIDTH

count, room, whole = map(int, sys.argv[1:])
processor = full(count, count, WIDTH)
trim()

def make():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + room
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    yield from [processor.snapshot()] if whole else processor.snapshot_pieces()

taken = []
saver = BackgroundSnapshotter(lambda partition, offset, pieces: taken.extend(map(len, pieces)))
saver.start(0, 1, make)
saver.close()
(saved,) = saver.finished()
print(saved.error, saved.size == len(processor.snapshot()), max(taken, default=0) <= 1 << 20)
"""


def test_a_copy_makes_do_with_what_the_formula_gives_it() -> None:
    """Under a system limit, a copy of a full partition writes its snapshot piece by piece.

    And the limit is one: a copy that makes the whole of it before it hands it over fails.
    """
    said = formula(COUNT, COUNT, COUNT)
    room = said.making // 6  # for the system counts addresses, and there are some to spare
    assert room < said.snapshot
    assert run("-c", LIMITED, COUNT, room, 0).split() == ["None", "True", "True"]
    assert run("-c", LIMITED, COUNT, room, 1).startswith("MemoryError")

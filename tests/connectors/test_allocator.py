"""Free memory of the C library's allocator."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")

_PROGRAM = """
from pathlib import Path
from threading import Barrier, Thread
import sys
from abers_connectors.process import return_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def hold():
    blocks = [b"x" * 65_536 for _ in range(96)]
    together.wait()
    del blocks

if sys.argv[1] == "set":
    assert return_freed_memory()
bytearray(24 << 20)  # its end raises the sizes that glibc keeps
together, before = Barrier(12), resident()
threads = [Thread(target=hold) for _ in range(12)]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(resident() - before)
"""


def _kept(setting: str) -> int:
    """Return the bytes that stay after twelve threads kept 6 MiB each at the same time.

    A block of another owner that happens to be the last of an arena keeps what is free before it,
    so the least of five runs counts.
    """
    run = [sys.executable, "-c", _PROGRAM, setting]
    return min(
        int(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
        for _ in range(5)
    )


def test_threads_leave_no_free_memory_behind() -> None:
    """What many threads kept at once is the system's again, which by itself it is not."""
    assert _kept("set") < 32 << 20
    assert _kept("unset") > 56 << 20

"""Processes of tests: started, waited for without taking their core, ended with their test."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

__all__ = ["Started", "killed_after", "until"]

PAUSE = 0.005
"""Seconds between two checks."""


class Started(subprocess.Popen[bytes]):
    """A process that a failed `with` block kills: to wait for it would hide the failure."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill the process after a failure and print what it said; wait for it."""
        if kind is not None and self.poll() is None:
            self.kill()
            said = self.communicate()[1] or b""
            print(f"{self.args!r}\n{said.decode()}", file=sys.stderr)  # noqa: T201 - pytest shows it
        super().__exit__(kind, value, trace)


def until(process: subprocess.Popen[bytes], done: Callable[[], object]) -> bool:
    """Wait until a process has done something; False if it ended before."""
    while not done():
        try:
            process.wait(PAUSE)
        except subprocess.TimeoutExpired:
            continue
        return False
    return True


def killed_after(process: subprocess.Popen[bytes], output: Path, size: int) -> bool:
    """Kill a process as soon as a file has more bytes than that; False if it ended before."""
    if until(process, lambda: output.exists() and output.stat().st_size > size):
        process.kill()
    process.communicate(timeout=240)
    return process.returncode != 0

"""The timer that ends the process, in processes of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
PATIENCE = 30
LOCKED = "import ctypes; ctypes.PyDLL(None).sleep(1000)"
"""Keeps the interpreter's lock."""


@contextmanager
def started(program: str, stderr: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """Start a process that has a timer, and kill it if it has not ended."""
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "-c"]  # a fork beside a thread
    begun = "from abers.backends import core\nimport os, sys, time\n"
    with subprocess.Popen(
        [*words, begun + program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(program: str) -> tuple[int, str]:
    """Return the exit code of a process, and its standard error."""
    with started(program) as process:
        _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


HANGS = [
    "time.sleep(1000)",
    LOCKED,
    "import re; re.match('(a+)+$', 'a' * 60 + 'b')",
]


@pytest.mark.parametrize("hangs", HANGS)
def test_a_process_that_hangs_is_ended(hangs: str) -> None:
    """It ends with 75 and one line, even if nobody gives the interpreter back."""
    code, said = ended(f"timer = core.ExitTimer(0.02); timer.start(10, 'at ', ': é\\n'); {hangs}")
    assert code == 75
    assert re.fullmatch(f"at {TIME}: é\n", said)


@pytest.mark.parametrize("ends", ["timer.stop()", "timer.close()", "timer.close(); timer.close()"])
def test_a_timer_that_is_stopped(ends: str) -> None:
    """It ends no process, and may be stopped and closed more than once."""
    program = f"timer = core.ExitTimer(0.02); timer.start(5, '', ''); {ends}; {ends}; time.sleep(1)"
    assert ended(program) == (0, "")


def test_a_timer_that_is_started_anew() -> None:
    """It begins to count from 0, and ends with the newest line."""
    program = """
timer = core.ExitTimer(0.1)
for number in range(40):
    timer.start(10, f"{number} ", "")
    time.sleep(0.05)
print("moved", flush=True)
time.sleep(1000)
"""
    with started(program) as process:
        moved, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, moved) == (75, "moved\n")
    assert re.fullmatch(f"39 {TIME}", said)


def test_a_process_that_was_stopped_goes_on() -> None:
    """The time for which a process is stopped does not count, so it is not ended as it goes on."""
    program = """
timer = core.ExitTimer(0.2)
timer.start(15, "", "")
print("waits", flush=True)
sys.stdin.readline()
timer.stop()
print("goes on", flush=True)
"""
    with started(program) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGSTOP)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.stdin.write("\n")
        process.stdin.flush()
        process.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=PATIENCE)[0] == "goes on\n"
    assert process.returncode == 0


@pytest.mark.parametrize(
    "how", ["timer.close()", "del timer", "sys.exit(7)", "timer.start(9, '', '')"]
)
def test_a_copy_of_the_process_has_no_timer(how: str) -> None:
    """A fork ends as it likes, also if it closes the timer, which goes on in its parent."""
    program = f"""
timer = core.ExitTimer(0.05)
timer.start(20, "ended ", "")
if not os.fork():
    {how}
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
time.sleep(1000)
"""
    with started(program) as process:
        copy, said = process.communicate(timeout=PATIENCE)
    assert (copy, process.returncode) == ("7\n", 75)
    assert said.startswith("ended ")


def test_a_log_that_nobody_reads() -> None:
    """A process that hangs since its log is full ends, without the line."""
    reading, writing = os.pipe()
    program = (
        "timer = core.ExitTimer(0.02); timer.start(10, 'never', ''); os.write(2, bytes(1 << 24))"
    )
    with started(program, stderr=writing) as process:
        os.close(writing)
        assert process.wait(PATIENCE) == 75
    with os.fdopen(reading, "rb") as log:
        assert b"never" not in log.read()


def test_signals_are_for_python() -> None:
    """A signal interrupts the main thread, and not that of the timer."""
    program = """
import signal
timer = core.ExitTimer(1000.0)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
print("waits", flush=True)
time.sleep(1000)
"""
    with started(program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.terminate()
        assert process.wait(PATIENCE) == 9

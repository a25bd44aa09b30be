"""The watchdog, in processes of their own, which it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

PATIENCE = 60
BEGIN = """
import ctypes, logging, sys, time
from abers_connectors.logs import logging_to
from abers_connectors.process import Limit, Watchdog
def hang(): time.sleep(1000)
def lock(): ctypes.PyDLL(None).sleep(1000)  # keeps the interpreter's lock
"""


def ended(program: str) -> tuple[int, str]:
    """Return the exit code of a process, and its standard error."""
    words = [sys.executable, "-c", BEGIN + program]
    ran = subprocess.run(words, check=False, capture_output=True, text=True, timeout=PATIENCE)
    return ran.returncode, ran.stderr


@pytest.mark.parametrize("hang", ["hang", "lock"])
def test_late_call_ends_the_process(hang: str) -> None:
    """A call that takes longer than allowed ends the process with 75 and a line of the log."""
    code, said = ended(f"""
watchdog = Watchdog(0.2)
watchdog.progressed()
with watchdog.call("commit"):
    {hang}()
""")
    assert code == 75
    assert re.fullmatch(
        r"\S+Z CRITICAL the broker did not answer commit within 0.2 s \(kafka.stall_timeout\); "
        "ending, to be restarted\n",
        said,
    )


def test_a_call_may_have_a_shorter_limit() -> None:
    """The process ends after the shorter limit, and the message names its key."""
    code, said = ended("""
watchdog = Watchdog(6)
with watchdog.call("send offsets", Limit(0.05, "kafka.transaction_timeout")):
    hang()
""")
    assert code == 75
    assert "did not answer send offsets within 0.05 s (kafka.transaction_timeout);" in said


@pytest.mark.parametrize("hang", ["hang", "lock"])
def test_a_loop_that_does_not_move_ends_the_process(hang: str) -> None:
    """Once the loop has moved it must move on, between calls, too."""
    code, said = ended(f"""
watchdog = Watchdog(0.2)
watchdog.progressed("processing scores[0]@17 to labels[0]@3")
with watchdog.call("begin"):
    pass
{hang}()
""")
    assert code == 75
    sentence = (
        "the loop has not moved for 0.2 s (kafka.stall_timeout) while processing scores[0]@17"
    )
    assert f"CRITICAL {sentence} to labels[0]@3: a record, a learner" in said
    assert said.count("\n") == 1


def test_the_line_of_a_log_in_json() -> None:
    """The line is that of the log, with the time at which the process ends."""
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    code, said = ended("""
with logging_to(sys.stderr, app="orders"):
    logging.getLogger("abers_connectors.kafka").info("begins")
    watchdog = Watchdog(0.5)
    with watchdog.call('a "call"'):
        hang()
""")
    assert code == 75
    begins, last = map(json.loads, said.splitlines())
    assert [*last] == [*begins]
    assert (last["level"], last["app"]) == ("critical", "orders")
    assert last["message"].startswith('the broker did not answer a "call" within 0.5 s')
    times = [datetime.fromisoformat(one["time"]) for one in (begins, last)]
    assert times[1] - times[0] > timedelta(seconds=0.4)
    assert before <= times[0] <= times[1] <= datetime.now(UTC)


def test_call_in_time() -> None:
    """Nothing happens between calls, before the loop begins and after it has ended."""
    assert ended("""
watchdog = Watchdog(0.2)
with watchdog.call("poll"):
    pass
time.sleep(1)
watchdog.progressed()
watchdog.rest()
time.sleep(1)
with watchdog.call("close"):
    pass
time.sleep(1)
watchdog.close()
""") == (0, "")


def test_a_loop_that_moves() -> None:
    """A loop goes on for longer than the timeout if it moves, or its calls return, in time."""
    assert ended("""
watchdog = Watchdog(1)
for number in range(40):
    time.sleep(0.05)
    if number % 2:
        watchdog.progressed()
    else:
        with watchdog.call("poll"):
            pass
watchdog.close()
""") == (0, "")

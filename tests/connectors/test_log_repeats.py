"""Log lines that a library repeats."""

from __future__ import annotations

import logging
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from abers_connectors.logs import RepeatFilter

WARNING, CRITICAL = logging.WARNING, logging.CRITICAL


def line(
    message: str, at: float = 0.0, name: str = "kafka.net", level: int = WARNING
) -> logging.LogRecord:
    """Make a line of a logger at this second."""
    return logging.makeLogRecord({"name": name, "msg": message, "created": at, "levelno": level})


def written(records: list[logging.LogRecord]) -> list[tuple[str, int]]:
    """Return the messages and how often each was repeated."""
    return [(one.getMessage(), getattr(one, "repeated", 0)) for one in records]


def test_a_line_is_written_once_and_counted_for_a_minute() -> None:
    """The last repeated line is written, with the count, when the next line comes."""
    repeats = RepeatFilter("abers")
    assert written(repeats.add(line("node 1 is gone"))) == [("node 1 is gone", 0)]
    for second in range(1, 60):
        assert repeats.add(line(f"node {second} is gone", second)) == []
    assert written(repeats.add(line("back", 60.0))) == [("node 59 is gone", 59), ("back", 0)]


def test_a_minute_after_the_other() -> None:
    """A line is written once a minute, and like a new one after a minute without it."""
    repeats = RepeatFilter("abers")
    found = [
        (second, *one) for second in range(150) for one in written(repeats.add(line("x", second)))
    ]
    assert found == [(0, "x", 0), (60, "x", 59), (120, "x", 60)]
    assert written(repeats.add(line("y", 180))) == [("x", 30), ("y", 0)]
    assert written(repeats.add(line("x", 240))) == [("x", 0)]


def test_lines_that_differ_in_more_than_numbers() -> None:
    """Other words, levels or loggers make another line; addresses and ports do not."""
    repeats = RepeatFilter("abers")
    for one in (line("a 1"), line("b 1"), line("a 1", level=logging.ERROR), line("a 1", name="c")):
        assert written(repeats.add(one)) == [(one.getMessage(), 0)]
    assert repeats.add(line("a 0x7F3c [127.0.0.1:9092]")) != []
    assert repeats.add(line("a 0x7F3d [127.0.0.2:9093]")) == []


def test_our_own_lines_all_pass() -> None:
    """A line of abers is never kept back; one of a library with the same prefix is."""
    repeats = RepeatFilter("abers")
    for name in ("abers", "abers.kafka"):
        for _ in range(2):
            assert written(repeats.add(line("x", name=name))) == [("x", 0)]
    repeats.add(line("x", name="abersome"))
    assert repeats.add(line("x", name="abersome")) == []


def test_a_critical_line_releases_all() -> None:
    """Lines that are kept back are written before the line after which the process ends."""
    repeats = RepeatFilter("abers")
    for _ in range(3):
        repeats.add(line("x"))
    end = line("the end", name="abers", level=CRITICAL)
    assert written(repeats.add(end)) == [("x", 2), ("the end", 0)]
    assert written([*repeats.flush()]) == []


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 40)), max_size=60))
def test_no_line_is_lost(lines: list[tuple[str, int]]) -> None:
    """Each line is written or counted, and none is written more than once a minute."""
    repeats, now, found = RepeatFilter("abers"), 0, list[tuple[float, logging.LogRecord]]()
    for message, pause in lines:
        now += pause
        found += [(now, one) for one in repeats.add(line(message, now))]
    found += [(now + 60, one) for one in repeats.flush()]
    for message in "abcd":
        mine = [(at, one) for at, one in found if one.getMessage() == message]
        counts = [getattr(one, "repeated", 1) for _, one in mine]
        assert sum(counts) == sum(1 for one, _ in lines if one == message)
        times = [at for at, _ in mine]
        assert all(later - at >= 60 for at, later in pairwise(times))


def test_memory_is_bounded() -> None:
    """Different lines are all written, and few of them are remembered."""
    repeats = RepeatFilter("abers")
    words = ["".join("abcdefghij"[int(digit)] for digit in str(number)) for number in range(2_000)]
    assert all(len(repeats.add(line(word))) == 1 for word in words)
    assert len(repeats._seen) <= 500  # noqa: SLF001 - it grows where nobody sees it

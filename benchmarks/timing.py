"""Times on a machine that is not quiet.

What is compared is measured in turns, round after round, so that a slow minute
of the machine hits all alike; the median of the rounds is reported, and their whole range.
"""

from __future__ import annotations

import ctypes
import gc
import statistics
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -3, -1  # glibc's mallopt
_SPIN = 30_000
_TO = "–"


class Spread(NamedTuple):
    """The rounds of one measurement, in its unit."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Take the median and the range of some rounds."""
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        """Write the median, then the range if there is one."""
        if self.low == self.high:
            return digits(self.median)
        return f"{digits(self.median)} ({digits(self.low)}{_TO}{digits(self.high)})"


def digits(value: float) -> str:
    """Write a number with three digits that mean something, thousands apart."""
    if value >= 100:  # noqa: PLR2004
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.3g}" if value < 1 else f"{value:.{1 if value >= 10 else 2}f}"  # noqa: PLR2004


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep the garbage collector out of what is timed."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def seconds(call: Callable[[], object]) -> float:
    """Time one call."""
    with undisturbed():
        started = perf_counter()
        call()
        return perf_counter() - started


def cpu_seconds(call: Callable[[], object]) -> float:
    """Measure the processor time of one call, which other processes hardly change."""
    with undisturbed():
        started = process_time()
        call()
        return process_time() - started


class Noise:
    """A fixed piece of work, timed again and again: what the machine itself adds."""

    def __init__(self) -> None:
        """Start without any measurement."""
        self._seconds: list[float] = []

    def begin(self) -> None:
        """Forget what was measured before, and time the work once."""
        self._seconds.clear()
        self.listen()

    def listen(self) -> None:
        """Time the work once more."""
        self._seconds.append(seconds(lambda: sum(range(_SPIN))))

    def spread(self) -> Spread:
        """Return the milliseconds that it took."""
        return Spread.of([1e3 * taken for taken in self._seconds])


NOISE = Noise()


def in_turns(rounds: int, measures: Mapping[str, Callable[[], float]]) -> dict[str, Spread]:
    """Let each take its turn in every round; `measures` return what they measured."""
    values: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(rounds):
        NOISE.listen()
        for name, measure in measures.items():
            values[name].append(measure())
    return {name: Spread.of(measured) for name, measured in values.items()}


def keep_memory() -> bool:
    """Let the allocator keep what is freed; False where it is not glibc's.

    Refits allocate arrays of the size of the bag. Fetching their pages anew from the system for
    each would double the cost of a refit at n = 1e5, which is no fault of refitting.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, 32 << 20) and mallopt(_M_TRIM_THRESHOLD, 1 << 30))

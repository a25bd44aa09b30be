"""Check that all contenders predict the same, before anything is timed.

A contender that is fast because it computes something else is no contender.
"""

from __future__ import annotations

import numpy as np

from benchmarks.contenders import NATIVE, contenders
from benchmarks.page import Section, table
from benchmarks.streams import Stream, ordinary

TOLERANCE = 1e-12
_BAG, _EVENTS, _LEVELS = 60, 240, 20


class DisagreementError(Exception):
    """Some contender predicts something else."""


def _streams() -> dict[str, tuple[Stream, int]]:
    """Make streams with and without ties, each with and without a window."""
    plain = ordinary(_BAG + _EVENTS)
    tied = plain._replace(scores=np.floor(plain.scores * _LEVELS) / _LEVELS)
    return {
        "distinct scores": (plain, 0),
        "20 scores": (tied, 0),
        "distinct scores, window": (plain, _BAG),
        "20 scores, window": (tied, _BAG),
    }


def differences() -> dict[str, dict[str, float]]:
    """Find the largest difference in p0 or p1 from the native core, a contender and a stream."""
    found: dict[str, dict[str, float]] = {name: {} for name in contenders()}
    for title, (stream, window) in _streams().items():
        bag, events = stream.part(0, _BAG), stream.part(_BAG, _BAG + _EVENTS)
        predicted = {}
        for name, make in contenders().items():
            contender = make(window)
            contender.fill(bag.scores, bag.labels)
            predicted[name] = np.array(contender.prequential(events.scores, events.labels))
        for name, probabilities in predicted.items():
            found[name][title] = float(np.abs(probabilities - predicted[NATIVE]).max())
    return found


def agreement() -> Section:
    """Compare all; a DisagreementError where one differs by more than rounding."""
    found = differences()
    wrong = [name for name, row in found.items() if not max(row.values()) <= TOLERANCE]
    if wrong:
        msg = f"not all predict the same probabilities: {', '.join(wrong)}; {found}"
        raise DisagreementError(msg)
    rows = [[name, *(f"{x:.0e}" if x else "0" for x in row.values())]
            for name, row in found.items()]  # fmt: skip
    body = (
        f"{_EVENTS} events on a bag of {_BAG}: the largest difference in p0 or p1 from abers"
        f" native. A run with a difference over {TOLERANCE:.0e} stops here.\n\n"
        + table(["contender", *_streams()], rows)
    )
    return Section("All compute the same", body, {})

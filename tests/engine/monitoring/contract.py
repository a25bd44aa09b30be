"""Checks of the contract of a monitor, for any monitor and any scored rows."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from abers import plotting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers.monitoring import Monitor, Number, ScoredRows

    Make = Callable[[], Monitor]

__all__ = ["CHECKS"]


def fed(make: Make, scored: ScoredRows, cuts: Sequence[int] = ()) -> Monitor:
    """Return a monitor that was updated with rows in batches that end at the cuts."""
    monitor = make()
    ends = [0, *cuts, len(scored)]
    for start, end in pairwise(ends):
        monitor.update(scored.take(slice(start, end)))
    return monitor


def keys(numbers: Sequence[Number]) -> list[tuple[Any, ...]]:
    """Return the keys of the numbers of a summary, in their order."""
    return [(one.name, one.view, *sorted(one.labels.items())) for one in numbers]


def wire(value: Any) -> Any:  # noqa: ANN401 - any state
    """Return a value as it comes back from a snapshot."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(value))


def states(monitor: Monitor) -> dict[str, Any]:
    """Return the states of a monitor and those next to it, by name."""
    return {name: one.state() for name, one in monitor.each().items()}


def batches_make_no_difference(make: Make, scored: ScoredRows) -> None:
    """Assert that batches, also empty ones, make no difference to the last bit of the state."""
    n = len(scored)
    one = fed(make, scored).state()
    assert wire(fed(make, scored, [n // 3, n // 3, n // 2]).state()) == wire(one)
    assert wire(fed(make, scored, range(1, n)).state()) == wire(one)


def every_row_counts(make: Make, scored: ScoredRows) -> None:
    """Assert that rows change the state, and the same rows again change it again."""
    states = [make().state(), fed(make, scored).state()]
    twice = fed(make, scored)
    twice.update(scored)
    states.append(twice.state())
    encoded = [msgspec.msgpack.encode(one) for one in states]
    assert len({*encoded}) == len(encoded)


def totals_add_up(make: Make, scored: ScoredRows) -> None:
    """Assert that a total has the numbers of the whole up to rounding, and of one part is equal."""
    n = len(scored)
    whole = fed(make, scored)
    rows = [slice(0, n // 4), slice(n // 4, n // 4), slice(n // 4, n)]
    parts = [fed(make, scored.take(one)) for one in rows]
    total = type(whole).total(parts)
    assert keys(total.summary()) == keys(whole.summary())
    for mine, theirs in zip(total.summary(), whole.summary(), strict=True):
        assert mine.value == pytest.approx(theirs.value, rel=1e-12, abs=1e-12, nan_ok=True)
        assert mine.infinite == theirs.infinite
    assert wire(type(whole).total([whole]).state()) == wire(whole.state())


def totals_stand_alone(make: Make, scored: ScoredRows) -> None:
    """Assert that a total and its parts share no state."""
    parts = [fed(make, scored), fed(make, scored)]
    before = [wire(one.state()) for one in parts]
    total = type(parts[0]).total(parts)
    known = wire(total.state())
    assert [wire(one.state()) for one in parts] == before
    parts[0].update(scored)
    assert wire(total.state()) == known
    total.update(scored)
    assert wire(parts[1].state()) == before[1]


def states_are_restored(make: Make, scored: ScoredRows) -> None:
    """Assert that a restored monitor has the state and numbers of the saved one, also later on."""
    for monitor in (make(), fed(make, scored)):
        state = wire(monitor.state())
        restored = type(monitor).restore(state)
        assert wire(restored.state()) == state
        assert keys(restored.summary()) == keys(monitor.summary())
        for one in (monitor, restored):
            one.update(scored)
        assert wire(restored.state()) == wire(monitor.state())


def parts_are_differences(make: Make, scored: ScoredRows) -> None:
    """Assert that the difference of two totals is the monitor of the rows between."""
    half = len(scored) // 2
    monitor, between = (
        fed(make, scored.take(slice(half))),
        fed(make, scored.take(slice(half, None))),
    )
    before = monitor.totals()
    monitor.update(scored.take(slice(half, None)))
    found = make().restore(monitor.difference(monitor.totals(), before)).summary()
    assert keys(found) == keys(between.summary())
    for one, other in zip(found, between.summary(), strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-9, nan_ok=True)
        assert one.infinite == other.infinite


def names_are_stable(make: Make, scored: ScoredRows) -> None:
    """Assert that numbers have the same names and order before the first label and after."""
    empty, full = make().summary(), fed(make, scored).summary()
    assert full
    assert keys(empty) == keys(full)
    assert len({*keys(full)}) == len(full)


def numbers_are_defined(make: Make, scored: ScoredRows) -> None:
    """Assert that the class lists the definition of each number, with a unit and help."""
    monitor = fed(make, scored)
    listed = {one.name for one in monitor.measures}
    for one in monitor.summary():
        assert one.name in listed or one.name.rpartition("_")[0] in listed
        assert one.unit
        assert one.help.endswith(".")
        assert math.isfinite(one.value) or one.infinite
        assert one.metric == "" or one.metric.startswith("abers_")
        assert msgspec.json.decode(msgspec.json.encode(one.to_dict())) == one.to_dict()


def nothing_is_no_number(make: Make, scored: ScoredRows) -> None:
    """Assert that without labels values are NaN or 0, none is infinite, and nothing is drawn."""
    del scored
    monitor = make()
    assert all(math.isnan(one.value) or one.value == 0.0 for one in monitor.summary())
    assert not any(one.infinite for one in monitor.summary())
    assert monitor.figures() == []


def figures_are_data(make: Make, scored: ScoredRows) -> None:
    """Assert that figures are plain data that a drawing takes, with words, a table and an id."""
    found = fed(make, scored).figures()
    assert len({one.id for one in found}) == len(found)
    for one in found:
        data = msgspec.json.decode(msgspec.json.encode(one.data), type=dict[str, Any])
        drawn = getattr(plotting, one.kind).drawing(**data, title=one.title)
        assert drawn.data
        assert one.title
        assert one.caption.endswith(".")
        assert {len(row) for row in one.rows} <= {len(one.columns)}
        cells = [cell for row in one.rows for cell in row]
        assert all(cell is None or type(cell) in {str, int, float} for cell in cells)


def reading_changes_nothing(make: Make, scored: ScoredRows) -> None:
    """Assert that neither summary nor figures nor state change the monitor or the rows."""
    labels = scored.labels.copy()
    monitor = fed(make, scored)
    before = wire(monitor.state())
    monitor.summary()
    monitor.figures()
    assert wire(monitor.state()) == before
    assert np.array_equal(scored.labels, labels)


CHECKS = (
    batches_make_no_difference,
    every_row_counts,
    totals_add_up,
    totals_stand_alone,
    states_are_restored,
    parts_are_differences,
    names_are_stable,
    numbers_are_defined,
    nothing_is_no_number,
    figures_are_data,
    reading_changes_nothing,
)
"""All checks: each takes a factory of empty monitors, and rows for them."""

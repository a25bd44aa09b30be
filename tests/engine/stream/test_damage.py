"""Snapshots and entries whose checksum is right and whose content is not.

Each is refused with a StateError when it is read, or does no harm later.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.engine.damage import changed
from tests.engine.stream import damage

from abers.exceptions import StateError
from abers.stream import Events, Observation, Processor, Settings

EACH = pytest.mark.parametrize("name", damage.MADE)


@EACH
def test_sound_content_is_used(name: str) -> None:
    """Every call that is made on damaged snapshots works on a sound one."""
    one = damage.made(name)
    damage.use(one, one.restored(one.saved))


@EACH
@pytest.mark.parametrize("times", [20, pytest.param(3_000, marks=pytest.mark.long)])
def test_damaged_snapshots(name: str, times: int) -> None:
    """Numbers out of range, other lengths, orders, names and types: refused, or harmless."""
    refused = 0
    for number in range(times):
        rng = random.Random(f"{name} {number}")  # noqa: S311 - no secret
        refused += damage.try_snapshot(damage.made(name), rng)
    assert 0 < refused < times


@EACH
@pytest.mark.parametrize("times", [8, pytest.param(2_000, marks=pytest.mark.long)])
def test_damaged_entries(name: str, times: int) -> None:
    """A damaged entry leaves the state as it was, or a processor that says it is broken."""
    refused = 0
    for number in range(times):
        rng = random.Random(f"entry {name} {number}")  # noqa: S311 - no secret
        refused += damage.try_entry(damage.made(name), rng)
    assert refused


def _column(kind: str, *values: float) -> bytes:
    return np.array(values, kind).tobytes()


@pytest.mark.parametrize(
    ("name", "path", "wrong", "why"),
    [
        ("plain", ("clocks", 0, 0), 2**64 - 1, "clock|int"),
        ("plain", ("clocks", 0, 0), 2**53, "clocks"),
        ("plain", ("clocks", 0, 2), -1, "clocks"),
        ("plain", ("clocks", 0, 4), 2**60, "clocks"),
        ("plain", ("clocks",), [], "clocks"),
        ("plain", ("counters", "labels"), -1, "counter labels"),
        ("plain", ("counters", "expired"), 2**63, "counter expired"),
        ("plain", ("keys", 0), ["m", "m"], "models"),
        ("plain", ("keys", 1, 0), ["nobody", ""], "keys"),
        ("plain", ("rows",), b"", "rows"),
        ("plain", ("monitor.binary", 0, 0), float("nan"), "widths"),
        ("plain", ("monitor.binary", 0, 0), "1", "widths"),
        ("plain", ("monitor.binary", 0, 1, 0), 2**64 - 1, "types of scores"),
        ("plain", ("monitor.binary", 0, 1, 1), -1.0, "log losses"),
        ("plain", ("monitor.binary", 0, 1, 2), float("inf"), "squares"),
        ("plain", ("monitor.binary", 0, 1, 3), [2**63] * 10, "types of scores"),
        ("plain", ("monitor.binary", 0, 1, 3), [-1] * 10, "counts of bins"),
        ("plain", ("monitor.binary", 0, 1, 3), [0] * 10, "labels of bins|forecasts"),
        ("plain", ("monitor.binary", 0, 1, 4, 0), 1e300, "forecasts"),
        ("plain", ("monitor.binary", 0, 2), 0, "types of scores"),
        ("age", ("monitor.binary", 0, 2), None, "views"),
        ("plain", ("calibrators", 0), b"\xff" * 32, "numbers of predictions"),
        ("plain", ("calibrators", 0), bytes(8), "numbers of predictions"),
        ("platt", ("calibrators", 0), bytes(32), "numbers of observations"),
        ("plain", ("e_processes", 1, 0, 2, 0), -1, "labels that came"),
        ("plain", ("e_processes", 1, 0, 0, 0), b"x", "cut short"),
        ("plain", ("e_processes", 1, 0, 0, 0), bytes(188), "bets"),
        ("plain", ("e_processes", 1, 0, 0), [], "zip|argument"),
        ("plain", ("e_processes", 1, 0, 3, 0, 0), b"\xff" * 336, "wealth"),
        ("plain", ("e_processes", 1, 0, 3, 0, 0), bytes(336), "times"),
        ("plain", ("e_processes", 1, 0, 3, 0, 0), b"", "cut short"),
        ("plain", ("e_processes", 1, 0, 2, 2), -1, "observations without a label"),
        ("plain", ("e_processes", 1, 0, 2, 2), 2**40, "observations without a label"),
        ("plain", ("e_processes", 1, 0, 3, 0, 1), [], "zip|argument"),
        ("plain", ("e_processes", 1, 0, 3, 0, 1, 0), b"", "cut short"),
        ("plain", ("e_processes", 1, 0, 3, 0, 1, 0), b"\xff" * 2_000, "incidents"),
        ("plain", ("e_processes", 1, 0, 3, 0, 1, 0), bytes(2_000), "tolerance|too long"),
        ("plain", ("e_processes", 1, 0, 3, 0, 1, 0), 5, "bytes|memoryview"),
        ("plain", ("e_processes", 1, 0, 4), [1, 0.0, 0.0, 0, 0, 0], "losses"),
        ("age", ("e_processes", 1, 0, 4), None, "losses"),
        ("age", ("e_processes", 1, 0, 4, 0), -1, "labels"),
        ("age", ("e_processes", 1, 0, 4, 1), float("inf"), "differences of losses"),
        ("age", ("e_processes", 1, 0, 4, 2), -1.0, "squares of differences"),
        ("age", ("e_processes", 1, 0, 4, 3), 2**40, "clipped differences"),
        ("age", ("e_processes", 1, 0, 4, 4), 2**63, "times"),
        ("regression", ("monitor.regression", 0, 1), -1, "counts"),
        ("regression", ("monitor.regression", 0, 2, 0, 0), [], "sums"),
        ("regression", ("monitor.regression", 0, 3), [2**63] * 4, "intervals"),
        ("learner", ("features", 0), [1], "features"),
        ("with distributions", ("distributions",), None, "array"),
    ],
)
def test_what_no_state_says(name: str, path: Any, wrong: Any, why: str) -> None:  # noqa: ANN401
    """Each of these was an OverflowError when it was read, or a crash when it was used."""
    one = damage.made(name)
    state = changed(one.state, path, lambda _: wrong)
    with pytest.raises(StateError, match=f"inconsistent.*({why})"):
        one.restored(one.with_state(state))


@pytest.mark.parametrize(
    ("store", "column", "kind", "wrong"),
    [
        (0, 1, "<u4", 2**32 - 1),
        (0, 2, "<u4", 2**32 - 1),
        (0, 3, "<i8", 2**53),
        (0, 4, "<i8", 2**62),
        (1, 3, "<i8", -(2**63)),
        (1, 5, "<f8", 0.5),
        (2, 4, "<i8", 2**62),
    ],
)
def test_entries_of_the_pending_store(store: int, column: int, kind: str, wrong: float) -> None:
    """Models, keys and times that there are not, and labels that are none, are refused."""
    one = damage.made("plain")

    def replaced(data: bytes) -> bytes:
        values = np.frombuffer(data, kind).copy()
        values[-1] = wrong
        return values.tobytes()

    state = changed(one.state, ("pending", store, column), replaced)
    with pytest.raises(StateError, match="inconsistent"):
        one.restored(one.with_state(state))


@pytest.mark.parametrize(
    ("name", "place", "wrong", "why"),
    [
        ("plain", -2, 0.0, "predictions that wait"),
        ("plain", -2, 1.0, "predictions that wait"),
        ("plain", -1, 0.5, "numbers"),
        ("none", -1, 0.0, "predictions that wait"),
        ("protected", -2, 1.0, "predictions that wait"),
        *(("protected", -1, wrong, "numbers") for wrong in (-1.0, 0.5, 2.0**53, float("nan"))),
        ("protected classes", -1, -1.0, "numbers"),
    ],
)
def test_rows_that_wait(name: str, place: int, wrong: float, why: str) -> None:
    """A probability that no calibrator serves, and a number of no observation, are refused."""
    one = damage.made(name)

    def replaced(data: bytes) -> bytes:
        values = np.frombuffer(data, "<f8").copy()
        values[place] = wrong
        return values.tobytes()

    state = changed(one.state, ("rows",), replaced)
    with pytest.raises(StateError, match=f"inconsistent.*({why})"):
        one.restored(one.with_state(state))


@pytest.mark.parametrize("name", ["plain", "by age", "protected"])
def test_fewer_predictions_than_a_calibrator_knows(name: str) -> None:
    """Else the next observation would have a number that was another's."""
    one = damage.made(name)
    made = np.frombuffer(one.state["calibrators"][0], "<i8") // 2
    state = changed(one.state, ("calibrators", 0), lambda _: made.tobytes())
    with pytest.raises(StateError, match=r"inconsistent.*numbers of predictions"):
        one.restored(one.with_state(state))


def test_entries_out_of_order() -> None:
    """The oldest comes first in a store, for it goes first."""
    one = damage.made("plain")

    def reversed_(data: bytes) -> bytes:
        return np.frombuffer(data, "<i8")[::-1].tobytes()

    state = changed(one.state, ("pending", 0, 4), reversed_)
    with pytest.raises(StateError, match="order of entries"):
        one.restored(one.with_state(state))


def test_a_calibrator_of_other_options() -> None:
    """A calibrator that is sound, and forgets otherwise than the settings say, is refused."""
    one, other = damage.made("plain"), damage.made("window")
    state = one.state | {"calibrators": other.state["calibrators"]}
    with pytest.raises(StateError, match="calibrator 0: another window"):
        one.restored(one.with_state(state))


def test_an_entry_that_is_seen_to_be_wrong_changes_nothing() -> None:
    """The next one, whole, is redone by the same processor."""
    settings = Settings(calibrator="isotonic")  # its predictions stand in an entry
    live, other = Processor(settings), Processor(settings)
    _, entry = live.process_logged(Events.of([Observation("a", 1, score=0.5)]))
    for wrong in (
        {"times": _column("<i8", 2**53)},
        {"scores": _column("<f8", float("nan"))},
        {"predictions": _column("<f8", 0.75, 0.25, 0.5)},
        {"predictions": _column("<f8", float("nan"), 1.0, 0.5)},
        {"predictions": _column("<f8", 0.25, 0.25, 0.5)},
        {"predictions": _column("<f8", 0.25, 0.25, float("nan"))},
        {"n_labels": _column("<i8", -1)},
        {"keys": _column("<u4", 1)},
        {"new_keys": [("nobody", "")]},
    ):
        with pytest.raises(StateError):
            other.apply(msgspec.structs.replace(entry, **wrong))
        assert other.state_bytes() == Processor(settings).state_bytes()
    other.apply(entry)
    assert other.state_bytes() == live.state_bytes()


def test_a_broken_processor_is_of_no_use() -> None:
    """After an entry that failed half-way, every call raises."""
    live, other = Processor(), Processor()
    _, entry = live.process_logged(Events.of([Observation("a", 1, score=0.5)]))
    counters = [*entry.counters[:2], *(one + 1 for one in entry.counters[2:])]
    with pytest.raises(StateError, match="another state"):
        other.apply(msgspec.structs.replace(entry, counters=counters))
    events = Events.of([Observation("b", 2, score=0.5)])
    for act in (
        lambda: other.apply(entry),
        lambda: other.process_batch(events),
        lambda: other.process_logged(events),
        lambda: other.process(Observation("b", 2, score=0.5)),
        lambda: other.reset_model("default"),
        other.snapshot,
        other.state_bytes,
    ):
        with pytest.raises(StateError, match=r"state is broken; .* restore one"):
            act()

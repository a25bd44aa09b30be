"""The tests of binary forecasts in the core, against plain Python to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.binary_tests import BinaryTests
from tests.oracles.sequential_tests import SequentialTest, ViewTests

from abers.backends import core
from abers.monitoring.forecast_groups import GRID

PREDICTS, LEARNS, EXPIRES = range(3)
FORECASTS = st.one_of(st.floats(0, 1), st.sampled_from((0.0, -0.0, 1.0, 0.5, 0.05)))
VIEWS, ALPHA = 2, 0.3
TOLERANCES = np.array([2.0, *GRID])
LIVES = st.lists(
    st.one_of(
        st.tuples(st.just(PREDICTS), st.integers(-3, 9), FORECASTS, FORECASTS),
        st.tuples(st.just(LEARNS), st.integers(0, 6), st.booleans(), st.booleans()),
        st.tuples(st.just(EXPIRES), st.integers(0, 6), st.just(0), st.just(0)),
    ),
    max_size=60,
)
Life = list[tuple[int, int, float, float]]
FACTORS = st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 9.0, 2.0**-1074, float("inf")])


def begun(kind: Any, run_time: float, length: float = 9.0) -> list[Any]:  # noqa: ANN401 - of the core or the oracle
    """Return four tests that are triggered soon; those for a change unless they are long."""
    changes = [kind.of_change(length, 2.0, int(run_time)) for _ in range(2)]
    return [
        *(kind.since_start(0.3), changes[0]),
        *(kind.since_start(0.4), changes[1]),
    ]


def steps(life: Life, more: int) -> list[tuple[int, int, int, list[float]]]:
    """Return steps; labels and ends refer to earlier observations, times may go back."""
    made, time, found = 0, 0, []
    for kind, back, first, second in life:
        made += kind == PREDICTS
        time += back if kind == PREDICTS else 0
        number = 3 * (made if kind == PREDICTS else max(made - back, 0))
        shares = [second] * (more - 1)
        values = [float(first), float(second), *shares, *[float(first > 0.0)] * bool(more)]
        found.append((kind, number, time, values))
    return found


def columns(many: list[list[tuple[int, int, int, list[float]]]], width: int) -> list[Any]:
    """Return where the steps of each end, and their columns."""
    flat = [one for each in many for one in each]
    ends = np.cumsum([len(one) for one in many])
    kinds, numbers, times = (np.array([one[at] for one in flat], np.int64) for at in range(3))
    values = np.array([one[3] for one in flat], float).reshape(len(flat), width)
    return [ends, kinds.astype(np.uint8), numbers, times, values]


def of_core(classes: int | None, least: int, *times: float) -> Any:  # noqa: ANN401
    """Return an empty record of the core."""
    tests = core.ViewTests(begun(core.SequentialTest, *times), 1)
    columns = VIEWS * (1 + (classes or 0))
    verdicts = [core.GroupVerdicts(ALPHA, TOLERANCES) for _ in range(columns)]
    options = (classes is not None, TOLERANCES[0], least)
    return core.BinaryTests([tests] * VIEWS, verdicts, core.LossDifference(), *options)


def plain(classes: int | None, least: int, *times: float) -> BinaryTests:
    """Return an empty record in plain Python."""
    tests = begun(SequentialTest, *times)
    return BinaryTests(tests, VIEWS, classes, TOLERANCES, ALPHA, least)


def width(classes: int | None) -> int:
    """Return how many values a step has."""
    if classes is None:
        return VIEWS
    return VIEWS + 4 + (VIEWS * classes + 1 if classes else 0)


def require_equal(record: Any, one: BinaryTests) -> None:  # noqa: ANN401
    """Require that a record of the core has the state of its oracle."""
    for view in range(VIEWS):
        assert record.tests(view).save() == one.tests[view].save()
        assert record.save_bets(view) == one.bets[view].save()
        for at, verdicts in enumerate(one.verdicts[view]):
            found = record.verdicts(view, at)
            assert found.verdict() == verdicts.verdict()
            assert (found.blocks, found.open) == (verdicts.blocks, verdicts.open)
            assert (found.labels, found.skipped) == (verdicts.labels, verdicts.skipped)
    sums = record.losses
    assert {name: getattr(sums, name) for name in vars(one.losses)} == vars(one.losses)


@given(
    lives=st.lists(LIVES, min_size=1, max_size=3),
    classes=st.sampled_from((None, None, 0, 2)),
    least=st.sampled_from((0, 0, 2)),
    most=st.sampled_from((None, 9, 30)),
    run_time=st.sampled_from((0, 100)),
)
def test_records_equal_their_oracle(
    lives: list[Life], classes: int | None, least: int, most: int | None, run_time: int
) -> None:
    """Incidents, verdicts, losses and state of each record are those of it alone."""
    known = [of_core(classes, least, run_time) for _ in lives]
    alone = [plain(classes, least, run_time) for _ in lives]
    mine = [steps(life, width(classes) - VIEWS) for life in lives]
    ends, *table = columns(mine, width(classes))
    starts = [0, *ends.tolist()]
    assert core.run_binary_tests(known, ends, *table, most) == [
        (number, one.view, one.test, starts[number] + one.step, *one[3:])
        for number, (record, each) in enumerate(zip(alone, mine, strict=True))
        for one in record.run(each, most)
    ]
    for record, one in zip(known, alone, strict=True):
        require_equal(record, one)


@pytest.mark.parametrize("classes", [None, 2])
def test_tests_are_armed_again_when_all_incidents_are_over(classes: int | None) -> None:
    """Behind the row at which the verdicts on all forecasts are inside, tests begin anew."""
    rng = np.random.default_rng(3)
    made = []
    for number in range(900):
        p = rng.beta(2, 5)
        odds = p / (1 - p) * (20.0 if number < 60 else 1.0)
        y = float(rng.random() < odds / (1 + odds))
        shares = [0.5] * 4 + [1 - p, p] * VIEWS if classes else []
        made.append((PREDICTS, number, number, [p, p, *shares, *[0.0] * bool(classes)]))
        made.append((LEARNS, number, number, [y, y, *shares, *[y] * bool(classes)]))
    record, one = of_core(classes, 0, 0, 1e9), plain(classes, 0, 0, 1e9)
    found = core.run_binary_tests([record], *columns([made], width(classes)))
    assert found == [(0, *each) for each in one.run(made)]
    require_equal(record, one)
    assert record.tests(0).test(0).armed > 1


@given(
    rows=st.lists(st.tuples(FACTORS, st.integers(-5, 40)), max_size=60),
    run_time=st.sampled_from((0, 0, 300)),
    armed=st.sets(st.integers(0, 60)),
    cut=st.integers(0, 60),
)
def test_view_tests_equal_their_oracle(
    rows: list[tuple[float, int]], run_time: int, armed: set[int], cut: int
) -> None:
    """Incidents, alarms and state are equal to the bit, also from a saved state."""
    held: Any = core.ViewTests(begun(core.SequentialTest, run_time), 2)
    plain = ViewTests(begun(SequentialTest, run_time), 2)
    times = np.cumsum([step for _, step in rows] or [0])[: len(rows)]
    factors = np.array([[one, 1.0 / one if one >= 0.25 else 2.0, one, one] for one, _ in rows])
    factors = factors.reshape(len(rows), 4)
    factors[factors == 0.0] = 0.5
    shares = np.full((len(rows), 2), 0.25)
    labels = (np.arange(2 * len(rows)) % 3 == 0).astype(float).reshape(-1, 2)
    for part in (slice(cut), slice(cut, None)):
        begin, count = part.start or 0, len(times[part])
        behind = [one - begin for one in sorted(armed) if begin <= one < begin + count]
        given = (factors[part, 3], shares[part], labels[part], times[part])
        last, *others = map(np.ascontiguousarray, given)
        assert held.alarms(last, *others) == plain.alarms(*[one.tolist() for one in given])
        assert held.others(
            np.ascontiguousarray(factors[part]), times[part], np.array(behind, np.int64)
        ) == plain.others(factors[part].tolist(), times[part].tolist(), behind)
        assert held.save() == plain.save()
        restored = core.ViewTests(begun(core.SequentialTest, run_time), 2)
        restored.load(held.save())
        held = restored


def test_what_is_refused() -> None:
    """The first forecast or label that cannot be one is named; columns must be of one length."""
    kinds = np.array([PREDICTS, PREDICTS, LEARNS], np.uint8)
    good = np.array([[0.5], [1.0], [1.0]])
    assert core.first_refused(kinds, good, 1) is None
    for row, value in ((0, 1.5), (1, -0.1), (1, float("nan")), (2, 0.5)):
        bad = good.copy()
        bad[row] = value
        assert core.first_refused(kinds, bad, 1) == row
    numbers = np.arange(3)
    table = np.zeros((3, 2))
    for views in (0, 1):  # of no view, and of fewer verdicts than views
        with pytest.raises(ValueError, match="differ"):
            core.BinaryTests([core.ViewTests([], 1)] * views, [], None, False, 1.25, 0)  # noqa: FBT003
    for ends in ([2], [3, 3], [4]):
        with pytest.raises(ValueError, match="differ in length"):
            core.run_binary_tests(
                [of_core(0, 0, 0)], np.array(ends), kinds, numbers, numbers, table
            )


def test_a_factor_that_is_none() -> None:
    """A test refuses a factor that is not positive."""
    test = core.SequentialTest.since_start(0.1)
    for factor in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="not positive"):
            test.update(np.array([factor]), np.array([0]))


@pytest.mark.parametrize("at", range(9))
@pytest.mark.parametrize("since", [False, True])
def test_states_that_cannot_be(at: int, since: bool) -> None:  # noqa: FBT001
    """A number that no factors bring about is refused, and the test stays as it was."""
    kind = core.SequentialTest
    test = kind.since_start(0.1) if since else kind.of_change(9.0, 2.0, 0)
    test.update(np.array([100.0, 0.5]), np.array([5, 6]))
    saved = test.save()
    damaged = bytearray(saved)
    wrong = {0: np.float64(np.nan), 6: np.float64(np.nan)}
    size = np.dtype(np.int64).itemsize
    # Wealth, factors, crossings; number, two times, which may be any, and wealth; latest, armed.
    value = wrong.get(at, np.int64(-3))
    damaged[size * at : size * (at + 1)] = value.tobytes()
    if at in {4, 5}:
        test.load(bytes(damaged))
        return
    with pytest.raises(ValueError, match=r"wealth|factors|crossings|incidents|times"):
        test.load(bytes(damaged))
    assert test.save() == saved
    with pytest.raises(ValueError, match=r"cut short|form"):
        test.load(saved[:-1])

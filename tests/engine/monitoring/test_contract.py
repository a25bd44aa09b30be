"""Every registered monitor keeps the contract, and each check of it finds a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pytest
from tests.engine.monitoring import contract
from tests.engine.monitoring.label_monitor import Labels
from tests.engine.monitoring.scored import binary, classes, regression

from abers.monitoring import Figure, Measure, Number, ScoredRows, task_monitor
from abers.monitoring import registry as monitors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
RNG = np.random.default_rng(1)
N = 60


def _binary(*, raw: bool) -> ScoredRows:
    rows = np.sort(RNG.random((N, 3)), axis=1)
    rows[0] = [1.0, 1.0, 1.0]  # with the label 0 an infinite loss
    labels = (RNG.random(N) < rows[:, 1]).astype(float)
    labels[0] = 0.0
    return binary(rows, labels, raw=raw)


def _classes() -> ScoredRows:
    parts = [RNG.dirichlet(np.ones(3), N) for _ in range(4)]
    return classes(np.hstack(parts), RNG.integers(0, 3, N).astype(float))


def _regression(*, whole: bool) -> ScoredRows:
    quantiles = np.sort(RNG.normal(size=(N, len(LEVELS))), axis=1)
    quantiles[1, -1] = np.inf
    pits = np.sort(RNG.random((N, 2)), axis=1)
    columns = (RNG.normal(size=(N, 1)), quantiles, RNG.random((N, 1)), pits)
    return regression(LEVELS, np.hstack(columns), RNG.normal(size=N), whole=whole)


CASES: dict[str, tuple[str, dict[str, Any], ScoredRows]] = {
    "binary": ("binary", {"raw": True}, _binary(raw=True)),
    "binary of any scores": ("binary", {"raw": False}, _binary(raw=False)),
    "multiclass": ("multiclass", {"raw": True}, _classes()),
    "regression": ("regression", {"levels": LEVELS}, _regression(whole=False)),
    "distributions": (
        "regression",
        {"levels": LEVELS, "distributions": True},
        _regression(whole=True),
    ),
}


class _ForgetsRows(Labels):
    """The last row of a batch is lost."""

    def update(self, scored: ScoredRows) -> None:
        super().update(scored.take(slice(0, max(len(scored) - 1, 0))))


class _Deaf(Labels):
    """Nothing is added."""

    def update(self, scored: ScoredRows) -> None:
        del scored


class _LosesParts(Labels):
    """A total is that of the first part alone."""

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        return super().total(many[:1])


class _Shared(Labels):
    """A total is one of its parts."""

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        whole = super().total(many)
        many[0].count, many[0].sum = whole.count, whole.sum
        return many[0]


class _Forgets(Labels):
    """A restored monitor is empty."""

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        del state
        return cls()


class _Cumulative(Labels):
    """The difference of two totals is the later one."""

    @classmethod
    def difference(cls, later: Sequence[Any], earlier: Sequence[Any]) -> tuple[Any, ...]:
        del earlier
        return tuple(later)


class _Unstable(Labels):
    """Empty numbers are left out of the summary."""

    def summary(self) -> list[Number]:
        return super().summary()[: 1 + bool(self.count)]


class _Undefined(Labels):
    """A number has a definition that the class does not list."""

    measures = (*Labels.measures[:1], Measure("other", "other", "", "Else"))


class _Eager(Labels):
    """An empty monitor has a number, and a figure."""

    def figures(self, bands: object = None) -> list[Figure]:
        del bands
        return [Figure("labels", "Labels", "pit_histogram", {"counts": [0.0]}, "Empty.", [], [])]


class _Arrays(Labels):
    """A figure contains arrays, which JSON cannot hold."""

    def figures(self, bands: object = None) -> list[Figure]:
        return [
            one._replace(data={"counts": np.array(one.data["counts"])})
            for one in super().figures(bands)
        ]


class _Spent(Labels):
    """Reading the summary clears the monitor."""

    def summary(self) -> list[Number]:
        found = super().summary()
        self.count = 0
        return found


FAULTS: dict[type[Labels], Callable[..., None]] = {
    _ForgetsRows: contract.batches_make_no_difference,
    _Deaf: contract.every_row_counts,
    _LosesParts: contract.totals_add_up,
    _Shared: contract.totals_stand_alone,
    _Forgets: contract.states_are_restored,
    _Cumulative: contract.parts_are_differences,
    _Unstable: contract.names_are_stable,
    _Undefined: contract.numbers_are_defined,
    _Eager: contract.nothing_is_no_number,
    _Arrays: contract.figures_are_data,
    _Spent: contract.reading_changes_nothing,
}


@pytest.mark.parametrize("check", contract.CHECKS)
@pytest.mark.parametrize("case", [*CASES])
def test_registered_monitors(case: str, check: Callable[..., None]) -> None:
    """Each registered monitor passes each check."""
    task, options, scored = CASES[case]
    check(lambda: task_monitor(task, **options), scored)


@pytest.mark.parametrize("check", contract.CHECKS)
def test_a_small_monitor(check: Callable[..., None]) -> None:
    """A monitor of a few lines passes each check."""
    check(Labels, _classes())


@pytest.mark.parametrize("faulty", [*FAULTS])
def test_faulty_monitors(faulty: type[Labels]) -> None:
    """Each check fails on a monitor with its fault."""
    with pytest.raises((AssertionError, TypeError)):
        FAULTS[faulty](faulty, _classes())


def test_each_check_has_a_fault() -> None:
    """There is a faulty monitor for every check, and the cases have every registered task."""
    assert {*FAULTS.values()} == {*contract.CHECKS}
    assert {task for task, _, _ in CASES.values()} == {*monitors.TASK_MONITORS}
    assert {*monitors.MONITORS} == {*monitors.TASK_MONITORS}


@pytest.mark.parametrize("case", [*CASES])
def test_every_number_is_found_by_its_name(case: str) -> None:
    """The registry has the definition of each number, with the words that the number has."""
    task, options, scored = CASES[case]
    monitor = task_monitor(task, **options)
    monitor.update(scored)
    for one in monitor.summary():
        found = monitors.measure(one.name)
        assert found is not None
        if one.name != "mean_width":  # which tasks word in their own ways
            assert (found.label, found.help, found.unit) == (one.label, one.help, one.unit)
    assert monitors.measure("brier_infinite") is None


def test_a_registered_monitor_runs_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line in the registry adds a monitor to the state, the summary, the views and figures."""
    task, options, scored = CASES["binary"]
    before = task_monitor(task, **options)
    before.update(scored)
    monkeypatch.setitem(monitors.MONITORS, task, [Labels])
    monitor = task_monitor(task, **options)
    monitor.update(scored)
    n, total = N, float(scored.labels.sum())
    added = [one for one in monitor.summary() if one.name.startswith("label_")]
    assert added == monitor.numbers_beside()
    assert [one.value for one in added] == [total / n, n]
    assert [one.metric for one in added] == ["abers_label_mean", "abers_label_count"]
    assert [*monitor.views()["calibrated"]][-2:] == ["label_mean", "label_count"]
    assert [one.id for one in monitor.figures()] == ["reliability", "labels"]
    assert contract.states(monitor) == contract.states(before) | {"labels": (n, total)}
    restored = task_monitor(task, contract.states(monitor), **options)
    assert contract.states(restored) == contract.states(monitor)
    both = type(monitor).total([monitor, restored])
    assert both.numbers_beside()[1].value == 2 * n
    late = task_monitor(task, contract.states(before), **options)
    assert late.numbers_beside()[1].value == 0
    assert late.count == n


def test_names_of_monitors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that no monitor has is refused, and so are two monitors of one name."""
    task, options, _ = CASES["binary"]
    with pytest.raises(ValueError, match="names of monitors: labels"):
        task_monitor(task, {"labels": (0, 0.0)}, **options)
    monkeypatch.setitem(monitors.MONITORS, task, [Labels, Labels])
    with pytest.raises(ValueError, match="binary, labels, labels, are not unique"):
        task_monitor(task, **options)


def test_a_narrow_table_leaves_some_out() -> None:
    """With a CRPS, narrow tables have neither the pinball loss nor widths of single intervals."""
    for case, left in (("regression", "pinball loss"), ("distributions", "CRPS")):
        task, options, _ = CASES[case]
        numbers = task_monitor(task, **options).summary()
        brief = [one.brief for one in numbers if one.view == "calibrated" and one.brief]
        assert brief == [left, "in 90 %", "in 50 %"]

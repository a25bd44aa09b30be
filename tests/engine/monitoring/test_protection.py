"""The monitors of protected predictions, against counts and the mixtures that they read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.monitoring import contract

from abers import ProtectedVennAbers
from abers.monitoring import (
    DistributionProtectionMonitor,
    Expert,
    ProtectionMonitor,
    ScoredRows,
    experts,
    measure,
    task_monitor,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.arrays import Floats

OUTSIDE = np.array([True, False, False, True, False, False, False, True])
SCORED = ScoredRows(np.zeros(8), outside=OUTSIDE)


class Fixed:
    """A mixture whose numbers are known."""

    def __init__(self, lanes: int, price: float, raw: float, losses: list[float]) -> None:
        """Begin with the weight of raw, and the losses of raw, platt and the mixture."""
        self.lanes, self.price, self._raw, self._losses = lanes, price, raw, losses

    experts = ("raw", "platt")

    def expert_table(self) -> Floats:
        """Return two weights, and three losses."""
        weights = (self._raw, 1.0 - self._raw, math.nan)
        return np.column_stack((weights, self._losses))


def watching(mixture: Any, scored: ScoredRows = SCORED) -> ProtectionMonitor:  # noqa: ANN401 - a mixture
    """Return a monitor of a mixture."""
    monitor = ProtectionMonitor()
    monitor.watch(mixture)
    monitor.update(scored)
    return monitor


@pytest.mark.parametrize("check", contract.CHECKS)
def test_contract(check: Callable[..., None]) -> None:
    """The monitor alone keeps the contract of all monitors."""
    check(ProtectionMonitor, SCORED)


def test_without_a_mixture_there_is_only_the_share_outside() -> None:
    """The share outside is that of all rows; nothing is said of experts."""
    monitor = ProtectionMonitor()
    monitor.update(SCORED)
    ((name, share),) = [(one.name, one.value) for one in monitor.summary()]
    assert (name, share) == ("outside_interval", 3 / 8)
    assert experts(monitor.summary()) == {}
    assert monitor.figures() == []


def test_a_mixture_is_read() -> None:
    """Lanes, price, weights and losses are those of the mixture, and the price a label is less."""
    monitor = watching(Fixed(4, 6.0, 0.25, [9.0, 5.0, 5.5]))
    numbers = {one.name: one.value for one in monitor.summary() if not one.labels}
    assert numbers == {
        "outside_interval": 3 / 8,
        "lanes": 4,
        "price_nats": 6.0,
        "price_per_label": 6.0 / 8,
    }
    assert experts(monitor.summary()) == {
        "raw": Expert(0.25, 9.0),
        "platt": Expert(0.75, 5.0),
        "protected": Expert(None, 5.5),
    }
    (figure,) = monitor.figures()
    assert figure.data["bars"] == {"raw": 0.25, "platt": 0.75}
    assert figure.rows == [
        ["raw", 0.25, 9.0, 0.0],
        ["platt", 0.75, 5.0, -4.0],
        ["protected", None, 5.5, -3.5],
    ]
    contract.figures_are_data(lambda: watching(Fixed(4, 6.0, 0.25, [9.0, 5.0, 5.5])), SCORED)


def test_totals_weigh_by_lanes() -> None:
    """In a total, lanes, prices and losses add up, and a weight is the mean over all lanes."""
    one = watching(Fixed(3, 4.0, 0.5, [9.0, 5.0, 5.5]))
    other = watching(Fixed(1, 1.5, 0.1, [1.0, 2.0, 1.5]), SCORED.take(slice(0, 4)))
    total = ProtectionMonitor.total([one, other])
    numbers = {each.name: each.value for each in total.summary() if not each.labels}
    assert numbers["lanes"] == 4
    assert numbers["price_nats"] == 5.5
    assert numbers["price_per_label"] == 5.5 / 12
    assert numbers["outside_interval"] == 5 / 12
    found = experts(total.summary())
    assert found["raw"].weight == pytest.approx((3 * 0.5 + 0.1) / 4)
    assert found["platt"].weight == pytest.approx((3 * 0.5 + 0.9) / 4)
    assert found["platt"].loss == 7.0
    assert found["protected"] == Expert(None, 7.0)


def test_before_the_first_prediction_weights_are_those_of_the_calibrator() -> None:
    """Without a lane the weights are the first ones, and the price is 0."""
    monitor = ProtectionMonitor()
    monitor.watch(ProtectedVennAbers())
    found = experts(monitor.summary())
    assert found["raw"] == Expert(0.25, 0.0)
    assert sum(one.weight or 0.0 for one in found.values()) == pytest.approx(1.0)
    numbers = {one.name: one.value for one in monitor.summary() if not one.labels}
    assert numbers["lanes"] == numbers["price_nats"] == 0
    assert math.isnan(numbers["price_per_label"])


def test_numbers_of_experts_are_in_no_view() -> None:
    """Tables have the share outside and the price, and not a row for each expert."""
    monitor = task_monitor("binary", protected=True, raw=True)
    monitor.watch(Fixed(4, 6.0, 0.25, [9.0, 5.0, 5.5]))
    names = ["outside_interval", "lanes", "price_nats", "price_per_label"]
    assert [*monitor.views()["calibrated"]][-4:] == names
    labels = [one.labels["expert"] for one in monitor.summary() if "expert" in one.labels]
    assert labels == ["raw", "platt", "raw", "platt", "protected"]
    gauges = [one.metric for one in monitor.numbers_beside() if one.metric]
    assert gauges[:2] == ["abers_lanes", "abers_price_nats"]
    assert {*gauges[2:]} == {"abers_expert_weight", "abers_expert_log_loss_nats"}


# Distributions


class Pool:
    """A pool of distributions whose numbers are known."""

    lanes, price = 4, 60.0

    experts = ("base", "ivapr")

    def expert_table(self) -> Floats:
        """Return two weights, and three losses."""
        return np.array([[0.25, 9.0], [0.75, 5.0], [math.nan, 5.5]])


def new_watching_pool() -> DistributionProtectionMonitor:
    """Return a monitor of a pool."""
    monitor = DistributionProtectionMonitor()
    monitor.watch(Pool())
    return monitor


def watching_pool() -> DistributionProtectionMonitor:
    """Return a monitor of a pool, after eight labels."""
    monitor = new_watching_pool()
    monitor.update(ScoredRows(np.zeros(8)))
    return monitor


@pytest.mark.parametrize("check", contract.CHECKS)
def test_contract_of_distributions(check: Callable[..., None]) -> None:
    """The monitor of distributions keeps the contract too; it has numbers only of a pool."""
    named = check is contract.names_are_stable
    check(new_watching_pool if named else DistributionProtectionMonitor, ScoredRows(np.zeros(8)))


def test_a_pool_is_read() -> None:
    """Lanes, price, weights and CRPS are those of the pool, and nothing is in nats."""
    monitor = watching_pool()
    summary = monitor.summary()
    numbers = {one.name: one.value for one in summary if not one.labels}
    assert numbers == {"lanes": 4, "price_crps": 60.0, "price_crps_per_label": 60.0 / 8}
    found = {"base": Expert(0.25, 9.0), "ivapr": Expert(0.75, 5.0), "protected": Expert(None, 5.5)}
    assert experts(summary) == found
    gauges = ["abers_lanes", "abers_price_crps", "abers_expert_weight", "abers_expert_crps"]
    assert [*dict.fromkeys(one.metric for one in summary if one.metric)] == gauges
    words = [text for one in summary for text in (one.label, one.unit, one.help)]
    (figure,) = monitor.figures()
    assert not [text for text in (*words, figure.caption) if "nats" in text or "raw" in text]
    assert figure.columns == ["expert", "weight", "CRPS", "above base"]
    assert figure.rows[1] == ["ivapr", 0.75, 5.0, -4.0]
    contract.figures_are_data(watching_pool, ScoredRows(np.zeros(8)))


def test_each_number_has_one_measure() -> None:
    """Where tables look up a number by its name, both prices have their own words."""
    for name, words in (("price_nats", "nats in total"), ("price_crps", "against the base")):
        found = measure(name)
        assert found is not None
        assert words in found.label
    per_label = measure("price_crps_per_label")
    assert per_label is not None
    assert per_label.label == "worst case against the base, a label"


def test_the_task_decides_on_the_monitor() -> None:
    """A protected regression has the monitor of distributions, the others that of probabilities."""
    kinds = {
        "binary": ProtectionMonitor,
        "multiclass": ProtectionMonitor,
        "regression": DistributionProtectionMonitor,
    }
    for task, kind in kinds.items():
        options: dict[str, Any] = {"levels": (0.5,)} if task == "regression" else {"raw": True}
        monitor = task_monitor(task, protected=True, **options)
        assert [type(one) for one in monitor.others] == [kind]
        again = task_monitor(task, contract.states(monitor), protected=True, **options)
        assert [type(one) for one in again.others] == [kind]


def test_a_total_of_pools() -> None:
    """Labels, lanes, prices and CRPS add up."""
    total = DistributionProtectionMonitor.total([watching_pool(), watching_pool()])
    numbers = {one.name: one.value for one in total.summary() if not one.labels}
    assert numbers == {"lanes": 8, "price_crps": 120.0, "price_crps_per_label": 120.0 / 16}
    assert experts(total.summary())["protected"] == Expert(None, 11.0)


@pytest.mark.parametrize("state", [(-1,), (3, 4), (3.0,), ()])
def test_damaged_states_of_distributions_are_refused(state: tuple[Any, ...]) -> None:
    """A state that no monitor has is a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
        DistributionProtectionMonitor.restore(state)


@pytest.mark.parametrize("state", [(-1, 0), (3, 4), (3, -1), (3.0, 1), (3,)])
def test_damaged_states_are_refused(state: tuple[Any, ...]) -> None:
    """A state that no monitor has is a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
        ProtectionMonitor.restore(state)

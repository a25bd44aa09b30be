"""The monitor of protected probabilities, against counts and the mixtures that it reads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.monitoring import contract

from abers import ProtectedVennAbers
from abers.monitoring import Expert, ProtectionMonitor, ScoredRows, experts, task_monitor

if TYPE_CHECKING:
    from collections.abc import Callable

OUTSIDE = np.array([True, False, False, True, False, False, False, True])
SCORED = ScoredRows(np.zeros(8), outside=OUTSIDE)


class Fixed:
    """A mixture whose numbers are known."""

    def __init__(self, lanes: int, price: float, raw: float, losses: list[float]) -> None:
        """Begin with the weight of raw, and the losses of raw, platt and the mixture."""
        self.lanes, self.price, self._raw, self._losses = lanes, price, raw, losses

    def expert_weights(self) -> dict[str, float]:
        """Return two weights."""
        return {"raw": self._raw, "platt": 1.0 - self._raw}

    def expert_losses(self) -> dict[str, float]:
        """Return three losses."""
        return dict(zip(("raw", "platt", "protected"), self._losses, strict=True))


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


@pytest.mark.parametrize("state", [(-1, 0), (3, 4), (3, -1), (3.0, 1), (3,)])
def test_damaged_states_are_refused(state: tuple[Any, ...]) -> None:
    """A state that no monitor has is a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
        ProtectionMonitor.restore(state)

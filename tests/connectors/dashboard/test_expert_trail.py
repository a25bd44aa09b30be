"""Experts over time, `abers_connectors.dashboard.expert_trail`, against the calibrators."""

from __future__ import annotations

from abers.monitoring import Expert, task_monitor
from abers_connectors.dashboard.expert_trail import ExpertTrail


class Counting:
    """A mixture whose losses grow with each reading."""

    lanes, price = 1, 1.0

    def __init__(self) -> None:
        """Begin with no loss."""
        self.read = 0

    def expert_weights(self) -> dict[str, float]:
        """Return two weights."""
        return {"raw": 0.25, "platt": 0.75}

    def expert_losses(self) -> dict[str, float]:
        """Return three losses."""
        self.read += 1
        return {"raw": 2.0 * self.read, "platt": 1.0 * self.read, "protected": 1.5 * self.read}


class Pool(Counting):
    """A pool of distributions, whose base is another expert."""

    def expert_weights(self) -> dict[str, float]:
        """Return two weights."""
        return {"base": 0.25, "ivapr": 0.75}

    def expert_losses(self) -> dict[str, float]:
        """Return three losses."""
        return {"base": 9.0, "ivapr": 5.0, "protected": 5.5}


def noted(moments: int) -> ExpertTrail:
    """Return a trail after so many moments, ten labels apart."""
    monitor = task_monitor("binary", protected=True, raw=True)
    monitor.watch(Counting())
    trail = ExpertTrail()
    for moment in range(1, moments + 1):
        trail.note(10 * moment, [monitor])
    return trail


def test_points_have_the_experts_at_their_moments() -> None:
    """A point has labels, weights and losses at its moment."""
    points = noted(3).points
    assert [one.labels for one in points] == [10, 20, 30]
    assert points[1].experts == {
        "raw": Expert(0.25, 4.0),
        "platt": Expert(0.75, 2.0),
        "protected": Expert(None, 3.0),
    }


def test_figures_show_weights_and_what_is_lost_above_raw() -> None:
    """One figure has the weights, the other the losses less that of raw, in the same order."""
    weights, losses = noted(3).figures()
    assert weights.data["views"] == {"raw": [0.25] * 3, "platt": [0.75] * 3}
    assert losses.data["views"] == {"platt": [-1.0, -2.0, -3.0], "protected": [-0.5, -1.0, -1.5]}
    assert losses.rows[-1] == [30, -3.0, -1.5]


def test_figures_of_distributions_have_the_unit_of_the_label() -> None:
    """The losses of a pool are CRPS above that of its base, and nothing is in nats."""
    monitor = task_monitor("regression", protected=True, levels=(0.5,))
    monitor.watch(Pool())
    trail = ExpertTrail()
    trail.note(10, [monitor])
    weights, losses = trail.figures()
    assert weights.data["views"] == {"base": [0.25], "ivapr": [0.75]}
    assert losses.data["views"] == {"ivapr": [-4.0], "protected": [-3.5]}
    assert losses.title == "CRPS above that of the base"
    assert losses.data["y_name"] == "unit of the label, in all"
    assert "nats" not in f"{weights.caption}{losses.caption}"


def test_a_trail_is_bounded() -> None:
    """However long it is, there are at most 256 points, the last is the newest, and gaps even."""
    for moments in (256, 257, 512, 1_000, 5_000):
        points = noted(moments).points
        labels = [one.labels for one in points]
        assert 64 <= len(points) <= 256
        assert labels[-1] == 10 * moments
        assert labels == sorted({*labels})
        assert all(one.experts["raw"].loss == one.labels / 5 for one in points)


def test_without_a_mixture_there_is_nothing() -> None:
    """A stream without a mixture has no points and no figures."""
    trail = ExpertTrail()
    trail.note(10, [task_monitor("binary", raw=True)])
    trail.note(10, [])
    assert trail.points == []
    assert [*trail.figures()] == []

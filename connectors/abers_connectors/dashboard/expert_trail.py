"""Weights and losses of the experts of a protected calibrator over time, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from abers.monitoring import Figure, experts, others_total

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers.monitoring import Expert, TaskMonitor

__all__ = ["ExpertPoint", "ExpertTrail"]

_POINTS = 256
_RAW = "raw"


class ExpertPoint(NamedTuple):
    """Experts after so many labels."""

    labels: int
    experts: Mapping[str, Expert]


class ExpertTrail:
    """Experts at some moments; of too many points, every second one stays."""

    def __init__(self) -> None:
        self.points: list[ExpertPoint] = []

    def note(self, labels: int, monitors: Sequence[TaskMonitor]) -> None:
        """Add the experts of all monitors together after so many labels, if there are any."""
        numbers = (number for one in others_total(monitors) for number in one.summary())
        if not (found := experts(numbers)):
            return
        self.points.append(ExpertPoint(labels, found))
        if len(self.points) > _POINTS:
            last = self.points[-1:] if len(self.points) % 2 else []
            self.points = self.points[1::2] + last

    def figures(self) -> Iterator[Figure]:
        """Yield the weights over time, and the losses above that of the raw probability."""
        if not self.points:
            return
        last = self.points[-1].experts
        weighted = [name for name, one in last.items() if one.weight is not None]
        weights = {name: [one.experts[name].weight for one in self.points] for name in weighted}
        yield self._figure(
            "experts-over-time",
            "Trusted experts over time",
            weights,
            "weight",
            "Weights by which the experts are mixed into p.",
        )
        above = {
            name: [one.experts[name].loss - one.experts[_RAW].loss for one in self.points]
            for name in last
            if name != _RAW
        }
        yield self._figure(
            "losses-over-time",
            "Log loss above that of the raw probability",
            above,
            "nats in all",
            "Total log loss so far, less that of the raw probability. A line that falls gains on "
            "it, and that of the protected probability never rises above the bound.",
        )

    def _figure(
        self,
        name: str,
        title: str,
        lines: Mapping[str, Sequence[float | None]],
        unit: str,
        caption: str,
    ) -> Figure:
        labels = [one.labels for one in self.points]
        return Figure(
            name,
            title,
            "series",
            {"x": labels, "views": lines, "y_name": unit},
            caption,
            ["labels so far", *lines],
            [[*row] for row in zip(labels, *lines.values(), strict=True)],
        )

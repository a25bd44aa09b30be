"""Weights and losses of the experts of a protected calibrator over time, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from abers.monitoring import Figure, MixtureMonitor, experts, others_total

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers.monitoring import Expert, LossWords, TaskMonitor

__all__ = ["ExpertPoint", "ExpertTrail"]

_POINTS = 256


class ExpertPoint(NamedTuple):
    """Experts after so many labels."""

    labels: int
    experts: Mapping[str, Expert]


class ExpertTrail:
    """Experts at some moments; of too many points, every second one stays."""

    def __init__(self) -> None:
        self.points: list[ExpertPoint] = []
        self._words: LossWords | None = None

    def note(self, labels: int, monitors: Sequence[TaskMonitor]) -> None:
        """Add the experts of all monitors together after so many labels, if there are any."""
        for one in others_total(monitors):
            if isinstance(one, MixtureMonitor) and one.mixtures:
                self._words = one.words
                self.points.append(ExpertPoint(labels, experts(one.summary())))
        if len(self.points) > _POINTS:
            last = self.points[-1:] if len(self.points) % 2 else []
            self.points = self.points[1::2] + last

    def figures(self) -> Iterator[Figure]:
        """Yield the weights over time, and the losses above that of the base."""
        words = self._words
        if words is None:
            return
        base, *others = self.points[-1].experts
        weighted = [name for name, one in self.points[-1].experts.items() if one.weight is not None]
        weights = {name: [one.experts[name].weight for one in self.points] for name in weighted}
        yield self._figure(
            "experts-over-time",
            "Trusted experts over time",
            weights,
            "weight",
            f"{words.mixing} by these weights.",
        )
        above = {
            name: [one.experts[name].loss - one.experts[base].loss for one in self.points]
            for name in others
        }
        yield self._figure(
            "losses-over-time",
            f"{words.loss[0].upper()}{words.loss[1:]} above that of {words.of_base}",
            above,
            f"{words.unit}, in all",
            f"Total {words.loss} so far, less that of {words.of_base}. A line that falls gains on "
            f"it, and that of {words.mixture} never rises above the bound.",
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

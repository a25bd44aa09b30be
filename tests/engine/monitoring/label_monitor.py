"""The smallest monitor with a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from abers.monitoring import Figure, Measure, Monitor, Number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring import ScoredRows

__all__ = ["Labels"]


class Labels(Monitor):
    """Number and mean of labels."""

    name = "labels"
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("label_mean", "mean label", "labels", "Mean of the labels."),
        Measure("label_count", "labels", "labels", "Number of labels."),
    )

    def __init__(self, count: int = 0, total: float = 0.0) -> None:
        """Start empty, or with saved sums."""
        self.count, self.sum = count, total

    def update(self, scored: ScoredRows) -> None:
        """Add labels."""
        for label in scored.labels.tolist():
            self.sum += label
        self.count += len(scored)

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Add up monitors."""
        return cls(sum(one.count for one in many), sum(one.sum for one in many))

    def summary(self) -> list[Number]:
        """Return the mean and the number."""
        mean = self.sum / self.count if self.count else float("nan")
        return [Number(self.measures[0], mean), Number(self.measures[1], self.count)]

    def figures(self, bands: object = None) -> list[Figure]:
        """Return a figure with a bar for each number."""
        del bands
        if not self.count:
            return []
        data: dict[str, Any] = {"counts": [self.count, self.sum]}
        return [
            Figure(
                "labels",
                "Labels",
                "pit_histogram",
                data,
                "How many, and how much.",
                ["what", "how much"],
                [["count", self.count], ["sum", self.sum]],
            )
        ]

    def state(self) -> tuple[Any, ...]:
        """Return both sums."""
        return (self.count, self.sum)

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the monitor with both sums."""
        return cls(*state)

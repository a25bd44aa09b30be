"""The share of label 1 among the labels that came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from abers.monitoring.base import Figure, Monitor
from abers.monitoring.measures import Measure, Number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring.measures import ScoredRows

__all__ = ["LabelShare"]

SHARE = Measure("label_share", "share of label 1", "labels", "Share of label 1 among the labels.")


class LabelShare(Monitor):
    """The share of label 1."""

    name = "label_share"
    measures: ClassVar[tuple[Measure, ...]] = (SHARE,)

    def __init__(self, labels: int = 0, positives: int = 0) -> None:
        self._labels, self._positives = labels, positives

    def update(self, scored: ScoredRows) -> None:
        """Add labelled predictions."""
        self._labels += len(scored)
        self._positives += int(scored.labels.sum())

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Add up monitors of different predictions."""
        return cls(sum(one._labels for one in many), sum(one._positives for one in many))

    def summary(self) -> list[Number]:
        """Return the share; NaN before the first label."""
        return [Number(SHARE, self._positives / self._labels if self._labels else float("nan"))]

    def figures(self, bands: object = None) -> list[Figure]:
        """Return a histogram of two bars."""
        counts = [self._labels - self._positives, self._positives]
        return [
            Figure(
                id="labels",
                title="Labels that came",
                kind="pit_histogram",
                data={"counts": counts},
                caption="Number of labels 0 and 1.",
                columns=["label", "count"],
                rows=[["0", counts[0]], ["1", counts[1]]],
            )
        ]

    def state(self) -> tuple[Any, ...]:
        """Return the sums."""
        return self._labels, self._positives

    @classmethod
    def restore(cls, state: Sequence[Any]) -> Self:
        """Return the monitor with these sums."""
        return cls(*state)

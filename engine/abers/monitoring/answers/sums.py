"""Sums behind the answers, as the core returns them, and those of several partitions together."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Counts", "Losses", "Sums", "ViewGroups", "added", "counts_of", "groups_of", "losses_of"]


class Sums(NamedTuple):
    """What a test of predictions knows for the answers.

    Attributes
    ----------
    now, whole, trail
        Sums of the present window, of the whole stream, and over time, as of `core.AnswerSums` or
        `core.IntervalSums`.
    warm_up
        Number of predictions that were made in the warm-up; None if nobody counts them.
    came
        Number of labels that came.
    grace_period
        Number of labels that must come before the first prediction counts.
    views
        Names of the views that are tested.
    incidents
        Of each view with an open incident the event time at which its fault began.
    parts
        Names of the classes that have sums of their own, or levels of intervals.
    tolerance
        Ratio of odds within which predictions are right.
    of_numbers
        Whether labels are numbers.
    several
        Whether there are more than two classes.
    """

    now: Any
    whole: Any
    trail: Sequence[Any]
    warm_up: int | None
    came: int
    grace_period: int
    views: Sequence[str]
    incidents: dict[str, int]
    parts: Sequence[Any]
    tolerance: float
    of_numbers: bool = False
    several: bool = False


class Counts(NamedTuple):
    """Which predictions are counted, by number and event time; no numbers of several partitions."""

    first_row: int | None
    last_row: int | None
    start: int
    until: int
    labels: int


class ViewGroups(NamedTuple):
    """ViewGroups of a view: their cut, first tenth of each group of tenths, and sums."""

    cut: float | None
    first: list[int]
    halves: list[list[float]]
    tenths: list[list[float]]


class Losses(NamedTuple):
    """Losses of both views, and what was saved at least and at most; see `Saved`."""

    finite: list[float]
    infinite: list[int]
    low: list[float]
    high: list[float]


def added(many: Sequence[Any]) -> Any:  # noqa: ANN401 - numbers, in lists and tuples
    """Add up numbers that stand in lists and tuples of the same form, rounded once.

    Examples
    --------
    >>> added([[0.1, 1], [0.2, 2], [0.3, 3]])
    [0.6, 6]
    """
    first = many[0]
    if len(many) == 1:
        return first
    if isinstance(first, list | tuple):
        return [added(column) for column in zip(*many, strict=True)]
    return fsum(many) if isinstance(first, float) else sum(many)


def counts_of(many: Sequence[tuple[int, int, int, int, int]]) -> Counts:
    """Return the counts of partitions that have labels."""
    if len(many) == 1:
        first, last, *rest = many[0]
        return Counts(first + 1, last + 1, *rest)
    _, _, start, until, labels = zip(*many, strict=True)
    return Counts(None, None, min(start), max(until), sum(labels))


def groups_of(many: Sequence[Sequence[Any]]) -> ViewGroups:
    """Return the groups of partitions: tenths are apart where they are in each of them."""
    cuts = {cut for cut, *_ in many}
    starts = [{merged.index(group) for group in merged} for _, merged, *_ in many]
    first = sorted(set.intersection(*starts))
    tenths = [[0.0] * 6 for _ in first]
    for _, merged, _, groups in many:
        for group, sums in enumerate(groups):
            at = sum(one <= merged.index(group) for one in first) - 1
            tenths[at] = added([tenths[at], sums])
    return ViewGroups(
        cuts.pop() if len(cuts) == 1 else None, first, added([one[2] for one in many]), tenths
    )


def losses_of(many: Sequence[Any]) -> Losses:
    """Return the losses of partitions."""
    return Losses(*added(many))

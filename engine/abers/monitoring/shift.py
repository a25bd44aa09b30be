"""Size of a change: labels observed and expected since the change probably began.

A detector says that something changed, but neither when nor by how much. The moment is estimated
by Page's CUSUM. M is the product of the factors of the detector. The change is estimated to begin
after the last observation at which M was at most 1; M begins again at 1 there, and after each
alarm. The bets must learn a change before they win, so the estimate is late rather than early.
"""

from __future__ import annotations

from typing import NamedTuple

from abers.monitoring.answers import formats

__all__ = ["Shift"]

_CLEAR = 2.0  # standard deviations from which a difference has a direction


class Shift(NamedTuple):
    """Labels observed and expected from the estimated beginning of a change to its alarm.

    Attributes
    ----------
    since
        Event time of the first observation.
    labels
        Number of labels.
    outcome
        What is counted, such as "labels 1"; of several outcomes that of the largest difference in
        standard deviations.
    observed, expected
        How many were observed, and the sum of their forecasts.
    deviation
        Standard deviation of the number observed if all forecasts were right.
    """

    since: int
    labels: int
    outcome: str
    observed: float
    expected: float
    deviation: float

    def sentence(self, came: str, zone: str = "UTC") -> str:
        """Return what was promised and came since then.

        Examples
        --------
        >>> shift = Shift(1_364_790_000_000, 99, "labels 1", 19.0, 37.5, 4.8)
        >>> shift.sentence("came").replace(formats.NO_BREAK, " ")
        'Since 1 Apr 2013, 04:20: 99 labels, 37.5 promised, 19 came.'
        """
        labels = "label" if self.labels == 1 else "labels"
        return (
            f"Since {formats.moment(self.since, zone)}: {formats.count(self.labels)} {labels}, "
            f"{formats.number(self.expected, 1)} promised, {formats.count(self.observed)} {came}."
        )

    @property
    def direction(self) -> int:
        """1 if forecasts are too high, -1 if too low, 0 if they are about right on average.

        Examples
        --------
        >>> [Shift(0, 100, "labels 1", n, 50.0, 5.0).direction for n in (30.0, 55.0, 70.0)]
        [1, 0, -1]
        """
        gap = self.expected - self.observed
        if abs(gap) < _CLEAR * self.deviation:
            return 0
        return 1 if gap > 0.0 else -1

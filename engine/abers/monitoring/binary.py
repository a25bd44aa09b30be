"""The all-time scores of one calibrator's predictions, raw beside calibrated.

Governing rule: a prediction is judged once, as it was issued, when its label
comes; raw scores are judged only where they are declared probabilities.
"""

# ruff: noqa: SLF001 - of the same class

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from abers.calibration import log_merge
from abers.monitoring.scores import PrequentialScores, added

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Read: TypeAlias = Callable[[Floats], tuple[Floats, Floats, Floats, Floats]]

__all__ = ["BinaryMonitor"]


class BinaryMonitor:
    """Scores of the raw and of the calibrated forecasts, and the width of the intervals.

    Parameters
    ----------
    raw
        Whether raw scores are probabilities.
    read
        Gives score, p0, p1 and their merge of rows; by default a row is score, p0 and p1.

    Attributes
    ----------
    raw
        Scores of the raw forecasts, None where they are no probabilities.
    calibrated
        Scores of the merged probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> monitor = BinaryMonitor(raw=True)
    >>> monitor.update(np.array([[0.9, 0.5, 1.0]]), np.array([1.0]))
    >>> monitor.mean_width, round(monitor.raw.brier, 4)
    (0.5, 0.01)
    """

    def __init__(self, *, raw: bool, read: Read | None = None) -> None:
        self._read = read or _read
        self.raw = PrequentialScores() if raw else None
        self.calibrated = PrequentialScores()
        self._width = 0.0

    @property
    def mean_width(self) -> float:
        """Mean of p1 - p0; NaN before the first label."""
        count = self.calibrated.count
        return self._width / count if count else float("nan")

    def views(self) -> dict[str, dict[str, float]]:
        """Give the mean scores of each view by name."""
        raw = {} if self.raw is None else {"raw": self.raw.means()}
        return raw | {"calibrated": self.calibrated.means()}

    def update(self, rows: NDArray[np.float64], labels: NDArray[np.float64]) -> None:
        """Judge predictions whose labels have come, in their order.

        Parameters
        ----------
        rows
            Array of shape (n, 3), or what `read` reads.
        labels
            Array of shape (n,).
        """
        score, p0, p1, p = self._read(rows)
        if self.raw is not None:
            self.raw.update_many(score, labels)
        self.calibrated.update_many(p, labels)
        self._width = added(self._width, p1 - p0)

    def state(self) -> tuple[Any, ...]:
        """Give what is remembered: what `restore` takes."""
        return (self._width, self.calibrated.state(), self.raw and self.raw.state())

    @classmethod
    def restore(cls, state: Sequence[Any], *, read: Read | None = None) -> BinaryMonitor:
        """Make the monitor that gave this `state`."""
        width, calibrated, raw = state
        monitor = cls(raw=raw is not None, read=read)
        monitor._width = width
        monitor.calibrated = PrequentialScores.restore(calibrated)
        monitor.raw = raw and PrequentialScores.restore(raw)
        return monitor

    @classmethod
    def total(cls, many: Sequence[BinaryMonitor]) -> BinaryMonitor:
        """Add up the monitors of different calibrators.

        Parameters
        ----------
        many
            The monitors, at least one.

        Returns
        -------
        BinaryMonitor
            That of all predictions together.
        """
        whole = cls(raw=False)
        whole.calibrated = PrequentialScores.total(one.calibrated for one in many)
        raw = [one.raw for one in many if one.raw is not None]
        whole.raw = PrequentialScores.total(raw) if raw else None
        whole._width = sum(one._width for one in many)
        return whole


def _read(rows: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    score, p0, p1 = rows.T
    return score, p0, p1, log_merge(p0, p1)

"""Two views of the same forecasts, raw and calibrated, and the width of their intervals.

Governing rule: a prediction is judged once, as it was issued, when its label
comes; raw scores are judged only where they are declared probabilities.
"""

# ruff: noqa: SLF001 - of the same class

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from abers._backend import core
from abers._saved import number, require
from abers.monitoring.evidence import Tested

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Views"]

_ROUNDED = 1.0 + 1e-9  # sums of many widths of at most 1 may be a little more


class Views(Tested):
    """Scores of the raw and of the calibrated forecasts, and the width of the intervals.

    Parameters
    ----------
    raw
        Whether raw scores are probabilities.

    Attributes
    ----------
    raw
        Scores of the raw forecasts, None where they are no probabilities.
    calibrated
        Scores of the calibrated ones.
    """

    kind: ClassVar[Any]
    """What scores each view: `PrequentialScores`, or what has its methods."""

    def __init__(self, *, raw: bool) -> None:
        self.raw: Any = self.kind() if raw else None
        self.calibrated: Any = self.kind()
        self._width = 0.0

    @property
    def mean_width(self) -> float:
        """Mean width of the intervals; NaN before the first label."""
        count = self.calibrated.count
        return self._width / count if count else float("nan")

    def views(self) -> dict[str, dict[str, float]]:
        """Give the mean scores of each view by name."""
        raw = {} if self.raw is None else {"raw": self.raw.means()}
        return raw | {"calibrated": self.calibrated.means()}

    def _judge(self, score: Floats, p: Floats, widths: Floats, labels: NDArray[Any]) -> None:
        if self.raw is not None:
            self.raw.update_many(score, labels)
        self.calibrated.update_many(p, labels)
        self._width = core.added(self._width, widths)

    def state(self) -> tuple[Any, ...]:
        """Give what is remembered: what `restore` takes."""
        return (self._width, self.calibrated.state(), self.raw and self.raw.state())

    @classmethod
    def restore(cls, state: Sequence[Any], **options: Any) -> Self:  # noqa: ANN401
        """Make the monitor that gave this `state`; the options are those that made it.

        Raises
        ------
        ValueError
            If none did.
        """
        width, calibrated, raw = state
        monitor = cls(raw=raw is not None, **options)
        monitor.calibrated = cls.kind.restore(calibrated)
        most = monitor.calibrated.count * _ROUNDED
        monitor._width = number(width, "widths", -most, most)
        if raw is not None:
            monitor.raw = cls.kind.restore(raw)
            require(monitor.raw.count == monitor.calibrated.count, "counts of views")
        return monitor

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Add up the monitors of different calibrators.

        Parameters
        ----------
        many
            The monitors, at least one.

        Returns
        -------
        Views
            That of all predictions together.
        """
        whole = cls(raw=False)
        whole.calibrated = cls.kind.total(one.calibrated for one in many)
        raw = [one.raw for one in many if one.raw is not None]
        whole.raw = cls.kind.total(raw) if raw else None
        whole._width = sum(one._width for one in many)
        whole.bets = [bets for one in many for bets in one.bets]
        return whole

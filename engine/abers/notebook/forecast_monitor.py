"""Monitor of forecasts that come one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abers.arrays import unmasked
from abers.exceptions import TimeError
from abers.monitoring.scores import PrequentialScores
from abers.notebook.forecast_report import ForecastAnswers
from abers.notebook.forecast_rows import forecast_rows
from abers.notebook.frame_report import report_of_two
from abers.serialization import CopiedWhole

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import ArrayLike

    from abers.monitoring.answers import Answers
    from abers.monitoring.verdict import Verdict
    from abers.notebook.forecast_report import ForecastReport
    from abers.notebook.forecast_rows import ForecastRows

__all__ = ["ForecastMonitor", "monitor"]


class ForecastMonitor(CopiedWhole):
    """Answer and scores of forecasts that come one after the other; see `monitor`.

    Parameters
    ----------
    tolerance
        Ratio of odds within which forecasts are right, at least 1.

    Examples
    --------
    >>> import abers
    >>> watch = abers.monitor()
    >>> for y, p in [(0, 0.25), (1, 0.75), (0, 0.5), (0, 0.5)]:
    ...     watch.update(y, p)
    >>> watch
    ForecastMonitor: 4 labels, waiting, log loss 0.4904 nats
    >>> watch.report().brier
    0.15625
    """

    def __init__(self, tolerance: float = 1.25) -> None:
        self._answers = ForecastAnswers(tolerance)
        self._scores = PrequentialScores()
        self._timed: bool | None = None  # None before the first row

    @property
    def verdict(self) -> Verdict:
        """The verdict on all labels since the last fault."""
        return self._answers.verdicts.verdict()

    @property
    def answers(self) -> Answers:
        """Whether the forecasts tell the truth now; see `ForecastReport`."""
        return self._answers.answers()

    def update(self, y: ArrayLike, p: ArrayLike, time: ArrayLike | None = None) -> None:
        """Add labelled forecasts: one, or many in the order in which they were made.

        Parameters
        ----------
        y, p, time
            Numbers, or arrays of shape (n,), as in `report`. The times of one call are sorted; none
            of them may be before those of earlier calls.

        Raises
        ------
        LabelError, ScoreError, TimeError, ParameterError
            Names the value, its row and the remedy; nothing is added then.
        """
        when = None if time is None else _many(time)
        rows = forecast_rows(_many(y), _many(p), when, self._scores.count)
        if len(rows.labels):
            self._check_order(rows, timed=time is not None)
            self._timed = time is not None
            self._scores.update_many(rows.forecasts, rows.labels)
            self._answers.add(rows)

    def report(self) -> ForecastReport:
        """Return the report on all forecasts so far; later ones do not change it."""
        return report_of_two(self._scores, self._answers)

    def _check_order(self, rows: ForecastRows, *, timed: bool) -> None:
        if self._timed is None:
            return
        if timed != self._timed:
            msg = (
                f"earlier forecasts came {'with' if self._timed else 'without'} a time; do so again"
            )
            raise TimeError(msg)
        last = self._answers.verdicts.until
        if rows.times[0] < last:
            msg = (
                f"row {rows.order[0]}: time {rows.times[0]} is before {last}, the last one of "
                "earlier calls; add forecasts in the order in which they were made"
            )
            raise TimeError(msg)

    def __repr__(self) -> str:
        """Return the number of labels, the answer and the log loss."""
        state, loss = self.answers["model"].state, self._scores.log_loss
        return f"ForecastMonitor: {self._scores.count:,} labels, {state}, log loss {loss:.4f} nats"


def monitor(*, tolerance: float = 1.25) -> ForecastMonitor:
    """Return a monitor of the forecasts of a loop.

    Parameters
    ----------
    tolerance
        Ratio of odds within which forecasts are right, at least 1.

    Returns
    -------
    ForecastMonitor
        A monitor that has no forecasts; `update` adds them, `report` says what they show.

    Raises
    ------
    ParameterError
        If the tolerance is not a number of at least 1.

    Examples
    --------
    >>> import abers
    >>> watch = abers.monitor()
    >>> watch.update(1, 0.75)
    >>> watch.update(y=[0, 0], p=[0.25, 0.5])
    >>> watch.verdict.labels
    3
    """
    return ForecastMonitor(tolerance)


def _many(value: ArrayLike) -> Any:  # noqa: ANN401 - what numpy can convert
    """Return an array, also of a single value."""
    given = unmasked(value)
    return [given] if np.ndim(given) == 0 else given

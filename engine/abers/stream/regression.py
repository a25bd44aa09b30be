"""The regression task: a score becomes quantiles of the label, each between two others.

Governing rule: nothing is computed here that `abers.regression.IVAPR` does not
compute; a row is the score, the merged quantiles, those of the upper and those
of the lower CDF, each by level. Where whole distributions are wanted the mean
follows, and all is read off one band.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from abers._arrays import PREDICT
from abers._saved import require
from abers._shown import shown
from abers.calibration import _checks
from abers.exceptions import LabelError, ScoreError
from abers.monitoring import DistributionBets, RegressionMonitor
from abers.monitoring.regression import central_pairs
from abers.regression import IVAPR
from abers.stream import wording
from abers.stream.bets import betting
from abers.stream.columns import objects
from abers.stream.events import RegressionOutcome, RegressionPrediction
from abers.stream.facts import Facts
from abers.stream.tasks import Answers, alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.regression import PredictiveDistribution
    from abers.stream.columns import Column, Events, Rows
    from abers.stream.settings import Settings
    from abers.stream.tasks import Settled, Steps

    Floats = NDArray[np.float64]

__all__ = ["Regression"]


class _Calibrator:
    """A calibrator of predictive distributions, as the processor drives it."""

    def __init__(self, ivapr: IVAPR, levels: Sequence[float]) -> None:
        self._ivapr, self._levels = ivapr, levels
        self._aging = ivapr.max_age is not None or ivapr.half_life is not None

    def run(self, steps: Steps) -> Answers:
        held = np.empty(len(steps.kinds), np.int64)
        times = steps.times if self._aging else None
        quantiles = self._ivapr.run(
            steps.kinds,
            steps.scores[:, 0],
            steps.values,
            times=times,
            held=held,
            levels=self._levels,
        )
        return Answers(np.hstack(quantiles), held)

    def __len__(self) -> int:
        return len(self._ivapr)

    def to_bytes(self) -> bytes:
        return self._ivapr.to_bytes()


class _WholeCalibrator(_Calibrator):
    """The same, which answers by the whole band."""

    def run(self, steps: Steps) -> Answers:
        n = len(steps.kinds)
        rows, held = np.full((n, 3 * len(self._levels) + 1), np.nan), np.empty(n, np.int64)
        bands = np.empty(n, object)
        scores, values, times = (
            steps.scores[:, 0].tolist(),
            steps.values.tolist(),
            steps.times.tolist(),
        )
        columns = zip(steps.kinds.tolist(), scores, values, times, strict=True)
        for row, (kind, score, value, when) in enumerate(columns):
            time = when if self._aging else None
            if kind == PREDICT:
                bands[row] = band = self._ivapr.predict_one(score, time)
                rows[row] = self._read(band)
            else:
                self._ivapr.learn_one(score, value, time=time)
            held[row] = len(self._ivapr)
        return Answers(rows, held, bands)

    def _read(self, band: PredictiveDistribution) -> Floats:
        ends = band.quantile_ends(self._levels)
        return np.concatenate((band.quantile(self._levels), *ends, [band.mean]))


class Regression:
    """Labels that are numbers, calibrated by inductive Venn-Abers predictive distributions.

    Parameters
    ----------
    settings
        Those of the processor: the levels of the quantiles, and how calibrators forget.
    """

    prediction = RegressionPrediction
    outcome = RegressionOutcome
    score_width = 1

    def __init__(self, settings: Settings) -> None:
        self._levels = settings.quantiles
        self._names = [*map(repr, settings.quantiles)]  # different for any two
        self._options: dict[str, Any] = {
            "window": settings.window,
            "max_age": settings.max_age,
            "half_life": settings.half_life,
            "thresholds": settings.thresholds or None,
            "support": settings.support or None,
        }
        self._bets = betting(settings)
        self._lowest, self._highest = settings.support or (-math.inf, math.inf)
        self.distributions = settings.distributions != "none"
        self._told = settings.distributions == "told"
        self._calibrator = _WholeCalibrator if self.distributions else _Calibrator
        self.answer_width = 3 * len(self._levels) + self.distributions

    def score(self, given: object, id_: str) -> float:
        """Check one score: a finite number."""
        del id_
        return _checks.score(given)

    def value(self, given: object) -> float:
        """Check one label: a finite number, inside the support."""
        try:
            value = _checks.score(given)
        except ScoreError:
            msg = f"label {shown(given)} is not a finite number; drop it, or repair its source"
            raise LabelError(msg) from None
        if not self._lowest <= value <= self._highest:
            ends = (self._lowest, self._highest)
            msg = f"label {shown(given)} lies outside the support {ends}; repair it, or widen that"
            raise LabelError(msg)
        return value

    def columns(self, events: Events) -> tuple[Floats, Floats] | None:
        """Do what `score` and `value` do for all of a batch; None if anything is unusual."""
        n = len(events)
        scores: Column = np.zeros(n) if events.scores is None else events.scores
        values: Column = np.zeros(n) if events.values is None else events.values
        if {scores.dtype.kind, values.dtype.kind} != {"f"}:
            return None
        if not (np.isfinite(scores).all() and np.isfinite(values).all()):
            return None
        told = values[events.labels]
        if ((told < self._lowest) | (told > self._highest)).any():
            return None
        # -0.0 becomes 0.0, as in `score`.
        return scores.reshape(n, 1) + 0.0, np.where(events.labels, values, 0.0) + 0.0

    def are_scores(self, rows: Floats) -> bool:
        """Tell whether rows are finite scores."""
        return bool(np.isfinite(rows).all())

    def are_answers(self, rows: Floats) -> bool:
        """Tell whether rows are three times quantiles, ascending with their levels; and a mean."""
        k = len(self._levels)
        quantiles = rows[:, : 3 * k].reshape(len(rows), 3, k)
        ascending = quantiles[:, :, :-1] <= quantiles[:, :, 1:]
        return bool(ascending.all() and not np.isnan(quantiles).any())

    def are_values(self, values: Floats) -> bool:
        """Tell whether numbers are finite, and inside the support."""
        inside = (self._lowest <= values) & (values <= self._highest)
        return bool((np.isfinite(values) & inside).all())

    def label(self, value: float) -> float:
        """Undo `value`."""
        return value

    def lesson(self, value: float, id_: str) -> tuple[Any, ...]:
        """Give what a learner is told of a label: the label."""
        del id_
        return (self.label(value),)

    def calibrator(self, state: bytes | None = None) -> _Calibrator:
        """Make an empty calibrator, or the one that gave these bytes."""
        none = IVAPR(**self._options)
        ivapr = none if state is None else alike(IVAPR.from_bytes(state), none)
        return self._calibrator(ivapr, self._levels)

    def monitor(self, state: Sequence[Any] | None = None) -> RegressionMonitor:
        """Make a monitor that has seen nothing, or the one that gave this state."""
        if state is None:
            return RegressionMonitor(self._levels, distributions=self.distributions)
        monitor = RegressionMonitor.restore(state)
        require(monitor.levels == self._levels, "levels")
        require((monitor.pit_histogram is not None) == self.distributions, "PIT values")
        return monitor

    def facts(self, rows: Floats, values: Floats) -> Facts:
        """Tell which central intervals covered the label, and where in the distribution it was."""
        quantiles = rows[:, 1 : 1 + len(self._levels)]
        covered = {
            share: (quantiles[:, low] <= values) & (values <= quantiles[:, high])
            for low, high, share in central_pairs(self._levels)
        }
        return Facts({}, None, (rows[:, -2], rows[:, -1]) if self.distributions else None, covered)

    def bets(self) -> DistributionBets:
        """Make bets against the central intervals, and the PIT values if there are any."""
        shares = [share for _, _, share in central_pairs(self._levels)]
        return DistributionBets(shares, pit=self.distributions, **self._bets)

    def stakes(self, said: Floats, settled: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Give which intervals covered the labels, and the ends of the PIT values."""
        facts = self.facts(settled, values)
        columns = [*facts.covered.values(), *(facts.pit or ())] or [np.zeros(len(values))]
        learned = np.column_stack(columns).astype(np.float64)
        return np.zeros((len(said), learned.shape[1])), learned

    def predictions(self, events: Events, answers: Answers) -> Rows[RegressionPrediction]:
        """Word predictions, a row each."""
        more = {"mean": answers.rows[:, self.answer_width]} if self.distributions else {}
        if self._told and answers.bands is not None:
            more["cdf"] = objects([band.to_dict() for band in answers.bands])
        said = self._worded(answers.rows)
        return wording.predictions(RegressionPrediction, events, said, answers.held, more)

    def outcomes(self, settled: Settled) -> Rows[RegressionOutcome]:
        """Word outcomes."""
        rows, at, more = settled.rows, self.answer_width, {}
        if self.distributions:
            more = {"mean": rows[:, at], "crps": rows[:, at + 1]}
        said = self._worded(rows)
        return wording.outcomes(RegressionOutcome, settled, settled.values, said, more)

    def _worded(self, rows: Floats) -> dict[str, Column]:
        parts = np.split(rows[:, 1 : 1 + 3 * len(self._levels)], 3, axis=1)
        return {"score": rows[:, 0]} | {
            name: objects([dict(zip(self._names, row, strict=True)) for row in part.tolist()])
            for name, part in zip(("quantiles", "low", "high"), parts, strict=True)
        }

"""The regression task: a score becomes quantiles of the label, each between two others.

A row is the score, the merged quantiles, those of the upper and those of the lower CDF, each by
level; of a distribution without a band all three are equal. With whole distributions the mean
follows, and all of it is read off one distribution; then the ends of the interval of
`calibrator.coverage`, if there is one.

The interval of `calibrator.coverage`: how it is made of quantiles, checked and scored. Its promise
depends on the calibrator. That of `ivapr` is the widest interval of any CDF in the band, which
covers by theorem with a fixed model and a stream that does not move. That of `protected` begins as
the central one of the mixture, and a tracker moves it, with a bound on any stream.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from abers import validation
from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.exceptions import LabelError, ScoreError
from abers.monitoring import (
    DistributionEProcess,
    RegressionMonitor,
    ScoredRows,
    TrackedRows,
    task_monitor,
)
from abers.monitoring.regression import central_pairs
from abers.regression import CoverageTracker
from abers.regression.scores import interval_score
from abers.serialization import require
from abers.stream.cells import objects
from abers.stream.events import RegressionOutcome, RegressionPrediction
from abers.stream.tasks.base import RowCalibrator, Task, by_name, dicts
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abers.arrays import Floats
    from abers.monitoring import TaskMonitor
    from abers.stream.cells import Column
    from abers.stream.columns import Events
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import (
        AnyCalibrator,
        CalibrationSteps,
        OneStep,
        PredictionRows,
        SettledRows,
    )

__all__ = ["PromisedInterval", "RegressionTask", "TrackedCalibrator"]


class PromisedInterval:
    """An interval that is to cover a share of the labels, one for each prediction.

    Parameters
    ----------
    level
        The share.
    support
        Ends between which all labels lie; infinite if these are not known.
    tracked
        Whether a tracker moves it; otherwise it is that of the band.
    """

    def __init__(self, level: float, support: tuple[float, float], *, tracked: bool) -> None:
        tail = (1.0 - level) / 2.0
        self.levels: tuple[float, ...] = (*validation.level_list([tail, 1.0 - tail]).tolist(),)
        self.tracked = tracked
        self._level, self._ends = level, support

    def tracker(self) -> CoverageTracker | None:
        """Return an empty tracker, if one moves the interval."""
        return CoverageTracker(self._level, self._ends) if self.tracked else None

    def ends(self, quantiles: Floats) -> Floats:
        """Return lower and upper ends, a row each, before a tracker moves them.

        The quantiles are of shape (n, 3, 2): merged, of the upper and of the lower CDF, at
        `levels`. Those of the band are clipped to the support, which contains all labels.
        """
        if self.tracked:
            return quantiles[:, 0]
        band = np.column_stack((quantiles[:, 1, 0], quantiles[:, 2, 1]))
        clipped: Floats = np.clip(band, *self._ends)
        return clipped

    def are_ends(self, low: Floats, high: Floats) -> bool:
        """Return whether numbers can be ends: in order and in the support, or of nothing."""
        lowest, highest = self._ends
        inside = (lowest <= low) & (low <= high) & (high <= highest)
        empty = (low == np.inf) & (high == -np.inf) & self.tracked
        return bool((inside | empty).all())

    def scored(self, low: Floats, high: Floats, labels: Floats) -> TrackedRows:
        """Return intervals and their labels as monitors read them."""
        filled = low <= high
        scores, (lowest, highest) = np.full(len(labels), np.inf), self._ends
        with np.errstate(over="ignore"):  # ends may be as far apart as doubles go
            widths = np.maximum(high - low, 0.0)
            scores[filled] = interval_score(low[filled], high[filled], labels[filled], self._level)
        return TrackedRows(
            level=self._level,
            covered=(low <= labels) & (labels <= high),
            widths=widths,
            whole=np.isinf(widths) | ((low == lowest) & (high == highest)),
            empty=~filled,
            scores=scores,
        )


class TrackedCalibrator(RowCalibrator):
    """A calibrator of predictions with an interval that a tracker moves.

    The tracker takes the same steps as the calibrator, after it: it reads the ends that the
    calibrator predicts, and the calibrator never reads the tracker.

    Parameters
    ----------
    task
        Makes the calibrator, and runs its steps. The ends are in `ends` of its rows.
    tracker
        An empty tracker.
    state
        State of the calibrator to go on with, if any.

    Raises
    ------
    ValueError
        If the state is of a calibrator with other options.
    """

    ends: ClassVar[slice] = slice(-2, None)  # columns

    def __init__(self, task: Task, tracker: CoverageTracker, state: bytes | None = None) -> None:
        super().__init__(task, state)
        self._tracker = tracker

    def load_tracker(self, state: bytes) -> None:
        """Restore the tracker; a ValueError if the state is of one with other options."""
        tracker = CoverageTracker.from_bytes(state)
        for name in ("level", "support", "slack"):
            same = getattr(tracker, name) == getattr(self._tracker, name)
            require(same, f"{name} of a tracker")
        self._tracker = tracker

    @property
    def tracker(self) -> CoverageTracker:
        """The tracker that moves the intervals."""
        return self._tracker

    def run(self, steps: CalibrationSteps) -> PredictionRows:
        """Predict and learn, in order; rows of steps that learn have no meaning."""
        predicted, tracker = super().run(steps), self._tracker
        ends = predicted.rows[:, self.ends]
        numbers = [] if steps.numbers is None else steps.numbers.tolist()
        columns = zip(steps.kinds.tolist(), steps.values.tolist(), numbers, strict=True)
        for row, (kind, value, number) in enumerate(columns):
            if kind == PREDICT:
                ends[row] = tracker.predict_one(*ends[row].tolist(), number=number)
            elif kind == EXPIRE:
                tracker.expire_one(number)
            else:
                tracker.learn_one(value, number=number)
        return predicted


_MEDIAN = 0.5  # its level


class RegressionTask(Task):
    """Labels that are numbers, calibrated by any calibrator of predictive distributions.

    Parameters
    ----------
    settings
        Settings of the processor: levels of the quantiles, coverage of one more interval, and
        options of the calibrator.
    """

    prediction = RegressionPrediction
    outcome = RegressionOutcome
    score_width = 1

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._levels = settings.quantiles
        self._asked = settings.quantiles  # levels at which calibrators compute quantiles
        self._names = [*map(repr, settings.quantiles)]  # different for any two
        given = {"grid": settings.grid, "support": settings.support}
        self._options |= {name: one for name, one in given.items() if one}
        self.make_calibrator()  # refuses options that do not fit together at once
        self._lowest, self._highest = settings.support or (-math.inf, math.inf)
        self.distributions = settings.distributions != "none"
        self._with_bands = settings.distributions == "full"
        self.prediction_width = 3 * len(self._levels) + self.distributions
        self._mean_at = 1 + 3 * len(self._levels)
        if settings.coverage is not None:
            support = (self._lowest, self._highest)
            self._interval = PromisedInterval(settings.coverage, support, tracked=self.mixed)
            self.promised, self.tracked = True, self._interval.tracked
            self.prediction_width += 2
            self._asked = (*self._levels, *self._interval.levels)

    def calibrator(self, state: bytes | None = None) -> RowCalibrator:
        """Return an empty calibrator, or that with this state; a ValueError if it is not one."""
        tracker = self._interval.tracker() if self.tracked else None
        if tracker is None:
            return super().calibrator(state)
        return TrackedCalibrator(self, tracker, state)

    def awaiting_bytes(self) -> int:
        """Return the bytes that calibrator and tracker keep until the label comes."""
        tracker = self._interval.tracker() if self.tracked else None
        return super().awaiting_bytes() + (0 if tracker is None else tracker.awaiting_bytes)

    def score(self, given: object, id_: str) -> float:
        """Return a score, which is a finite number."""
        del id_
        return validation.score(given)

    def value(self, given: object) -> float:
        """Return a label, which is a finite number inside the support."""
        try:
            value = validation.score(given)
        except ScoreError:
            msg = f"label {shown(given)} is not a finite number; drop it, or repair its source"
            raise LabelError(msg) from None
        if not self._lowest <= value <= self._highest:
            ends = (self._lowest, self._highest)
            msg = f"label {shown(given)} lies outside the support {ends}; repair it, or widen that"
            raise LabelError(msg)
        return value

    def columns(self, events: Events) -> tuple[Floats, Floats] | None:
        """Return `score` and `value` of all events of a batch; None if one is unusual."""
        n = len(events)
        scores: Column = np.zeros(n) if events.scores is None else events.scores
        values: Column = np.zeros(n) if events.values is None else events.values
        if {scores.dtype.kind, values.dtype.kind} != {"f"}:
            return None
        if not (np.isfinite(scores).all() and np.isfinite(values).all()):
            return None
        given = values[events.labelled]
        if ((given < self._lowest) | (given > self._highest)).any():
            return None
        # -0.0 becomes 0.0, as in `score`.
        return scores.reshape(n, 1) + 0.0, np.where(events.labelled, values, 0.0) + 0.0

    def are_scores(self, rows: Floats) -> bool:
        """Return whether rows are finite scores."""
        return bool(np.isfinite(rows).all())

    def are_predictions(self, rows: Floats) -> bool:
        """Return whether rows are three times ascending quantiles, and any interval."""
        k = len(self._levels)
        quantiles = rows[:, : 3 * k].reshape(len(rows), 3, k)
        ascending = quantiles[:, :, :-1] <= quantiles[:, :, 1:]
        if np.isnan(quantiles).any() or not ascending.all():
            return False
        return not self.promised or self._interval.are_ends(*rows[:, -2:].T)

    def are_values(self, values: Floats) -> bool:
        """Return whether numbers are finite, and inside the support."""
        inside = (self._lowest <= values) & (values <= self._highest)
        return bool((np.isfinite(values) & inside).all())

    def label(self, value: float) -> float:
        """Return the label of a value, which is the value."""
        return value

    def predict(
        self, calibrator: AnyCalibrator, steps: CalibrationSteps, options: dict[str, Any]
    ) -> tuple[Floats, Column | None]:
        """Return quantiles, or whole distributions and the rows read off them."""
        rows, distributions = self._asked_rows(calibrator, steps, options)
        if self.promised:  # the last two levels are those of the interval
            k, n = len(self._levels), len(rows)
            quantiles, mean = np.split(rows, [3 * len(self._asked)], axis=1)
            quantiles = quantiles.reshape(n, 3, k + 2)
            kept = quantiles[:, :, :k].reshape(n, 3 * k)
            rows = np.column_stack((kept, mean, self._interval.ends(quantiles[:, :, k:])))
        return rows, distributions

    def _asked_rows(
        self, calibrator: AnyCalibrator, steps: CalibrationSteps, options: dict[str, Any]
    ) -> tuple[Floats, Column | None]:
        """Return quantiles at all wanted levels, or also means and distributions."""
        scores, held = steps.scores[:, 0], options["held"]
        if not self.distributions:
            found = calibrator.run(steps.kinds, scores, steps.values, levels=self._asked, **options)
            return np.hstack(found), None
        rows = np.full((len(held), 3 * len(self._asked) + 1), np.nan)
        bands = np.empty(len(held), object)
        nothing: list[Any] = [None] * len(held)
        columns = (steps.kinds, scores, steps.values, options["times"], steps.numbers)
        lists = (nothing if one is None else one.tolist() for one in columns)
        for row, (kind, score, value, time, number) in enumerate(zip(*lists, strict=True)):
            if kind == PREDICT:  # one step at a time
                bands[row] = band = calibrator.predict_one(score, time, number=number)
                ends = band.quantile_ends(self._asked)
                rows[row] = np.concatenate((band.quantile(self._asked), *ends, [band.mean]))
            elif kind == EXPIRE:
                calibrator.expire_one(number)
            else:
                calibrator.learn_one(score, value, time=time, number=number)
            held[row] = len(calibrator)
        return rows, bands

    def step(self, calibrator: AnyCalibrator, one: OneStep) -> Sequence[float]:
        """Run one step, and return quantiles, lower and upper ends of a prediction."""
        if one.kind != LEARN:
            return super().step(calibrator, one)
        calibrator.learn_one(one.score[0], one.value, time=one.time, number=one.number)
        return ()

    def field_values(self, row: Sequence[float]) -> Sequence[Any]:
        """Return score, and quantiles, lower and upper ends by level."""
        return [row[0], *dicts(self._names, row[1 : 1 + 3 * len(self._names)])]

    def monitor(self, states: Mapping[str, Sequence[Any]] | None = None) -> TaskMonitor:
        """Return an empty monitor, or one with states by name."""
        monitor = task_monitor(
            "regression",
            states,
            protected=self.mixed,
            levels=self._levels,
            distributions=self.distributions,
            tracked=self.tracked,
            banded=self.promised and not self.tracked,
        )
        if states and isinstance(monitor, RegressionMonitor):
            require(monitor.levels == self._levels, "levels")
            require((monitor.pit_histogram is not None) == self.distributions, "PIT values")
        return monitor

    def scored_rows(self, rows: Floats, values: Floats) -> ScoredRows:
        """Score the quantiles, and the distributions if there are any."""
        quantiles = rows[:, 1 : 1 + len(self._levels)]
        covered = {
            share: (quantiles[:, low] <= values) & (values <= quantiles[:, high])
            for low, high, share in central_pairs(self._levels)
        }
        whole: dict[str, Any] = {}
        if self.distributions:
            whole = {"crps": rows[:, -3], "pit": (rows[:, -2], rows[:, -1])}
        scored = ScoredRows(
            values, scores=rows[:, 0], quantiles=quantiles, covered=covered, **whole
        )
        if not self.promised:
            return scored
        low, high = self._intervals(rows)
        return replace(scored, tracked=self._interval.scored(low, high, values))

    def e_process(self) -> DistributionEProcess:
        """Return an e-process against the central intervals, and any PIT values."""
        shares = [share for _, _, share in central_pairs(self._levels)]
        levels = [self._levels[at] for at in self._verdict_levels()]
        options: dict[str, Any] = {
            "quantiles": levels,
            "pit": self.distributions,
            "intervals": True,
        }
        return DistributionEProcess(shares, **options, **self.testing)

    def _verdict_levels(self) -> list[int]:
        """Return the places of the levels with verdicts: the lowest, the middle, the highest."""
        n = len(self._levels)
        return sorted({0, n // 2, n - 1})

    def bets(self, issued: Floats, scored: ScoredRows) -> tuple[Floats, Floats]:
        """Return zeros, and what `DistributionEProcess` takes of labels."""
        columns: list[NDArray[Any]] = [*self._measured(scored), *scored.covered.values()]
        if scored.quantiles is not None:
            quantiles = scored.quantiles[:, self._verdict_levels()].T
            columns += [0.5 * (1.0 + np.sign(one - scored.labels)) for one in quantiles]
        columns += scored.pit or ()
        outcomes = np.column_stack(columns).astype(np.float64)
        return np.zeros((len(issued), outcomes.shape[1])), outcomes

    def _measured(self, scored: ScoredRows) -> list[NDArray[Any]]:
        """Return whether labels are below intervals, widths of these, error and distance."""
        n = len(scored)
        if scored.quantiles is None or scored.scores is None:
            return [np.zeros(n)] * (2 * len(scored.covered)) + [np.full(n, np.nan)] * 2
        ends = [scored.quantiles[:, [low, high]].T for low, high, _ in central_pairs(self._levels)]
        with np.errstate(invalid="ignore"):  # of two equal infinite ends
            widths = [np.maximum(high - low, 0.0) for low, high in ends]
        widths = [np.where(np.isnan(one), np.inf, one) for one in widths]
        median = self._levels.index(_MEDIAN) if _MEDIAN in self._levels else None
        middle = np.full(n, np.nan) if median is None else scored.quantiles[:, median]
        distances = (scored.labels - scored.scores, np.abs(scored.labels - middle))
        return [*(scored.labels < low for low, _ in ends), *widths, *distances]

    def labels(self, values: Floats) -> Column:
        """Return the labels of values, which are the values."""
        return values

    def prediction_extras(self, predicted: PredictionRows) -> dict[str, Column]:
        """Return means, distributions and intervals, if predictions have them."""
        rows = predicted.rows
        extras = {"mean": rows[:, self._mean_at]} if self.distributions else {}
        if self._with_bands and predicted.bands is not None:
            extras["cdf"] = objects([band.to_dict() for band in predicted.bands])
        return self._with_intervals(("mean", "cdf"), extras, rows)

    def outcome_extras(self, settled: SettledRows) -> dict[str, Column]:
        """Return means, CRPS, intervals and what these covered, if outcomes have them."""
        rows, extras = settled.rows, {}
        if self.distributions:
            extras = {"mean": rows[:, self._mean_at], "crps": rows[:, -3]}
        if not self.promised:
            return extras
        low, high = self._intervals(rows)
        covered = (low <= settled.values) & (settled.values <= high)
        return self._with_intervals(("mean", "crps"), extras, rows) | {"covered": covered}

    def _with_intervals(
        self, before: Sequence[str], extras: dict[str, Column], rows: Floats
    ) -> dict[str, Column]:
        """Add intervals to the last fields of outputs, after the fields `before`."""
        if not self.promised:
            return extras
        low, high = self._intervals(rows)
        absent = dict.fromkeys(before, np.full(len(rows), None))
        return absent | extras | {"interval_low": low, "interval_high": high}

    def _intervals(self, rows: Floats) -> Floats:
        """Return the lower and the upper ends in rows that begin with the score."""
        first = self._mean_at + self.distributions
        ends: Floats = rows[:, first : first + 2].T
        return ends

    def fields(self, rows: Floats) -> dict[str, Column]:
        """Return the columns of scores and predictions."""
        parts = np.split(rows[:, 1 : 1 + 3 * len(self._levels)], 3, axis=1)
        columns = zip(("quantiles", "low", "high"), parts, strict=True)
        return {"score": rows[:, 0]} | {n: by_name(self._names, part) for n, part in columns}

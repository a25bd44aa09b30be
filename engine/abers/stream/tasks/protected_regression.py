"""The regression task with protected distributions: predictions change the state of a calibrator.

A row is that of the regression task, the ends of the tracked interval if there is one, and the
number of the observation. A protected distribution is no band, so its quantiles are those of its
upper and of its lower CDF too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abers import validation
from abers.monitoring import TrackedRows
from abers.regression import CoverageTracker
from abers.stream.tasks.regression import RegressionTask
from abers.stream.tasks.rows import are_numbers
from abers.stream.tasks.tracked_calibrator import TrackedCalibrator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats
    from abers.monitoring import ScoredRows
    from abers.stream.columns import Column
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import (
        AnyCalibrator,
        CalibrationSteps,
        PredictionRows,
        RowCalibrator,
        SettledRows,
    )

__all__ = ["ProtectedRegressionTask"]


class ProtectedRegressionTask(RegressionTask):
    """Labels that are numbers, calibrated by a protected pool of predictive distributions.

    Parameters
    ----------
    settings
        Settings of the processor: levels of the quantiles, the support, the first weight of the
        base, and the coverage of the tracked interval.
    """

    stateful = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._options["base_weight"] = settings.base_weight
        self.prediction_width += 1
        self.make_calibrator()  # refuses ends that are too far apart at once
        self._coverage = settings.coverage
        if settings.coverage is not None:
            self.tracked = True
            self.prediction_width += 2
            tail = (1.0 - settings.coverage) / 2.0
            self._asked = (*self._levels, *validation.level_list([tail, 1.0 - tail]).tolist())

    def _make_tracker(self) -> CoverageTracker | None:
        """Return an empty tracker; None if there is nothing to track."""
        if self._coverage is None:
            return None
        return CoverageTracker(self._coverage, (self._lowest, self._highest))

    def calibrator(self, state: bytes | None = None) -> RowCalibrator:
        """Return an empty calibrator, or the one with this state; a ValueError if it is not one."""
        tracker = self._make_tracker()
        if tracker is None:
            return super().calibrator(state)
        return TrackedCalibrator(self, tracker, state)

    def awaiting_bytes(self) -> int:
        """Return the bytes that calibrator and tracker keep until the label comes."""
        tracker = self._make_tracker()
        return super().awaiting_bytes() + (0 if tracker is None else tracker.awaiting_bytes)

    def are_predictions(self, rows: Floats) -> bool:
        """Return whether rows are those of a regression, any tracked interval, and a number."""
        if not (super().are_predictions(rows) and are_numbers(rows[:, -1])):
            return False
        if not self.tracked:
            return True
        low, high = rows[:, TrackedCalibrator.ends].T
        inside = (self._lowest <= low) & (low <= high) & (high <= self._highest)
        return bool((inside | ((low == np.inf) & (high == -np.inf))).all())

    def predict(
        self, calibrator: AnyCalibrator, steps: CalibrationSteps, options: dict[str, Any]
    ) -> tuple[Floats, Column | None]:
        """Return quantiles and numbers, or also means, central intervals and distributions."""
        rows, distributions = super().predict(calibrator, steps, options)
        if self.tracked:  # the last two levels are those of the interval
            k, n = len(self._levels), len(rows)
            quantiles, mean = np.split(rows, [3 * len(self._asked)], axis=1)
            quantiles = quantiles.reshape(n, 3, k + 2)
            kept = quantiles[:, :, :k].reshape(n, 3 * k)
            rows = np.column_stack((kept, mean, quantiles[:, 0, k:]))
        return np.column_stack((rows, options["numbers"])), distributions

    def scored_rows(self, rows: Floats, values: Floats) -> ScoredRows:
        """Score the quantiles, and distributions and tracked intervals if there are any."""
        scored = super().scored_rows(rows, values)
        if self._coverage is None:
            return scored
        low, high = self._intervals(rows)
        tracked = TrackedRows(
            level=self._coverage,
            covered=(low <= values) & (values <= high),
            widths=np.maximum(high - low, 0.0),
            whole=(low == self._lowest) & (high == self._highest),
            empty=low > high,
        )
        return replace(scored, tracked=tracked)

    def prediction_extras(self, predicted: PredictionRows) -> dict[str, Column]:
        """Return means, bands and tracked intervals, if predictions have them."""
        extras = super().prediction_extras(predicted)
        return self._with_intervals(("mean", "cdf"), extras, predicted.rows)

    def outcome_extras(self, settled: SettledRows) -> dict[str, Column]:
        """Return means, CRPS, tracked intervals and what these covered, if outcomes have them."""
        extras = super().outcome_extras(settled)
        if not self.tracked:
            return extras
        low, high = self._intervals(settled.rows)
        covered = (low <= settled.values) & (settled.values <= high)
        before = ("mean", "crps")
        return self._with_intervals(before, extras, settled.rows) | {"covered": covered}

    def _with_intervals(
        self, before: Sequence[str], extras: dict[str, Column], rows: Floats
    ) -> dict[str, Column]:
        """Add tracked intervals to the last fields of outputs, after the fields `before`."""
        if not self.tracked:
            return extras
        low, high = self._intervals(rows)
        absent = dict.fromkeys(before, np.full(len(rows), None))
        return absent | extras | {"interval_low": low, "interval_high": high}

    def _intervals(self, rows: Floats) -> Floats:
        """Return the lower and the upper ends in rows that begin with the score."""
        first = self._mean_at + self.distributions
        ends: Floats = rows[:, first : first + 2].T
        return ends

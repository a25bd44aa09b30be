"""The binary task: a score becomes a Venn-Abers interval for the probability of label 1.

Governing rule: nothing is computed here that `abers.VennAbers` does not
compute; a row is score, p0, p1. A baseline, which says one probability, says it
as both ends.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from abers._saved import require
from abers._shown import shown
from abers.calibration import (
    BetaCalibration,
    DirectIsotonic,
    Isotonic,
    Platt,
    Uncalibrated,
    VennAbers,
    _checks,
    log_merge,
)
from abers.exceptions import ScoreError
from abers.monitoring import BinaryMonitor, CalibrationBets
from abers.stream import wording
from abers.stream.bets import betting
from abers.stream.events import Outcome, Prediction
from abers.stream.facts import Facts, of_binary
from abers.stream.tasks import Answers, alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.calibration._baseline import Baseline
    from abers.stream.columns import Column, Events, Rows
    from abers.stream.settings import Settings
    from abers.stream.tasks import Calibrator, Settled, Steps

    Floats = NDArray[np.float64]

__all__ = ["Binary"]


_BASELINES: dict[str, type[Baseline]] = {
    "platt": Platt,
    "dir": DirectIsotonic,
    "isotonic": Isotonic,
    "beta": BetaCalibration,
    "uncalibrated": Uncalibrated,
}


def _either(p0: Floats, p1: Floats) -> Floats:
    """Merge ends that are equal: a baseline may well say 0 or 1, and is judged by it."""
    del p0
    return p1


class _Calibrator:
    """An incremental Venn-Abers calibrator, as the processor drives it."""

    def __init__(self, venn_abers: VennAbers) -> None:
        self._venn_abers = venn_abers
        self._aging = venn_abers.max_age is not None or venn_abers.half_life is not None

    def run(self, steps: Steps) -> Answers:
        held = np.empty(len(steps.kinds), np.int64)
        times = steps.times if self._aging else None
        p0, p1 = self._venn_abers.run(
            steps.kinds, steps.scores[:, 0], steps.values, times=times, held=held
        )
        return Answers(np.column_stack((p0, p1)), held)

    def __len__(self) -> int:
        return len(self._venn_abers)

    def to_bytes(self) -> bytes:
        return self._venn_abers.to_bytes()


class _Baseline:
    """A calibrator that says one probability, as the processor drives it."""

    def __init__(self, baseline: Baseline) -> None:
        self._baseline = baseline
        self._aging = baseline.max_age is not None or baseline.half_life is not None

    def run(self, steps: Steps) -> Answers:
        held = np.empty(len(steps.kinds), np.int64)
        times = steps.times if self._aging else None
        p = self._baseline.run(
            steps.kinds, steps.scores[:, 0], steps.values, times=times, held=held
        )
        return Answers(np.column_stack((p, p)), held)

    def __len__(self) -> int:
        return len(self._baseline)

    def to_bytes(self) -> bytes:
        return self._baseline.to_bytes()


class Binary:
    """Binary labels, calibrated by inductive Venn-Abers prediction.

    Parameters
    ----------
    settings
        Those of the processor: what scores are, and how calibrators forget.
    """

    prediction = Prediction
    outcome = Outcome
    score_width = 1
    answer_width = 2
    distributions = False

    def __init__(self, settings: Settings) -> None:
        self._baseline = _BASELINES.get(settings.calibrator or "")
        self._merge = log_merge if self._baseline is None else _either
        self._probabilities = settings.scores == "probability"
        self._bets = betting(settings)
        self._smallest = 0.0 if self._probabilities else -sys.float_info.max
        self._largest = 1.0 if self._probabilities else sys.float_info.max
        self._forgetting: dict[str, Any] = {
            "window": settings.window,
            "max_age": settings.max_age,
            "half_life": settings.half_life,
        }

    def score(self, given: object, id_: str) -> float | list[float]:
        """Check one score: a finite number, in [0, 1] where scores are probabilities."""
        del id_
        return self._checked(given)

    def _checked(self, given: object) -> float:
        if type(given) is float and self._smallest <= given <= self._largest:
            return given
        score = _checks.score(given)
        if not self._smallest <= score <= self._largest:
            msg = f"score {shown(given)} is not a probability in [0, 1]; scores are declared to be"
            raise ScoreError(msg)
        return score

    def value(self, given: object) -> float:
        """Check one label: 0, 1, False or True."""
        return float(_checks.label(given))

    def columns(self, events: Events) -> tuple[Floats, Floats] | None:
        """Do what `score` and `value` do for all of a batch; None if anything is unusual."""
        n = len(events)
        scores: Column = np.zeros(n) if events.scores is None else events.scores
        values: Column = np.zeros(n, bool) if events.values is None else events.values
        plain = scores.dtype.kind == "f" and values.dtype.kind in "ib"
        if not plain or not 0 <= values.min() <= values.max() <= 1:
            return None
        if not self._smallest <= scores.min() <= scores.max() <= self._largest:  # nor a NaN
            return None
        return scores.reshape(n, 1), np.where(events.labels, values, 0.0)

    def are_scores(self, rows: Floats) -> bool:
        """Tell whether rows are finite scores, in [0, 1] where they are probabilities."""
        return bool(((rows >= self._smallest) & (rows <= self._largest)).all())

    def are_answers(self, rows: Floats) -> bool:
        """Tell whether rows are two probabilities in order."""
        p0, p1 = rows.T
        return bool(((p0 >= 0.0) & (p0 <= p1) & (p1 <= 1.0)).all())

    def are_values(self, values: Floats) -> bool:
        """Tell whether numbers are 0 or 1."""
        return bool(((values == 0.0) | (values == 1.0)).all())

    def label(self, value: float) -> int:
        """Undo `value`."""
        return int(value)

    def lesson(self, value: float, id_: str) -> tuple[Any, ...]:
        """Give what a learner is told of a label: the label."""
        del id_
        return (self.label(value),)

    def calibrator(self, state: bytes | None = None) -> Calibrator:
        """Make an empty calibrator, or the one that gave these bytes."""
        if (kind := self._baseline) is not None:
            empty = kind(**self._forgetting)
            return _Baseline(empty if state is None else alike(kind.from_bytes(state), empty))
        none = VennAbers(**self._forgetting)
        return _Calibrator(none if state is None else alike(VennAbers.from_bytes(state), none))

    def monitor(self, state: Sequence[Any] | None = None) -> BinaryMonitor:
        """Make a monitor that has seen nothing, or the one that gave this state."""
        if state is None:
            return BinaryMonitor(raw=self._probabilities, read=self._read)
        monitor = BinaryMonitor.restore(state, read=self._read)
        require((monitor.raw is not None) == self._probabilities, "views")
        return monitor

    def facts(self, rows: Floats, values: Floats) -> Facts:
        """Judge both ends' merge, and the score where it is a probability."""
        score, p0, p1, p = self._read(rows)
        raw = {"raw": of_binary(score, values)} if self._probabilities else {}
        return Facts(raw | {"calibrated": of_binary(p, values)}, p1 - p0)

    def bets(self) -> CalibrationBets:
        """Make bets against the probability of label 1."""
        return CalibrationBets(**self._bets)

    def stakes(self, said: Floats, settled: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Give the probabilities, and the labels."""
        del settled
        return self._read(said)[3][:, np.newaxis], values[:, np.newaxis]

    def predictions(self, events: Events, answers: Answers) -> Rows[Prediction]:
        """Word predictions, a row each."""
        return wording.predictions(Prediction, events, self._worded(answers.rows), answers.held)

    def outcomes(self, settled: Settled) -> Rows[Outcome]:
        """Word outcomes."""
        return wording.outcomes(
            Outcome, settled, settled.values.astype(np.int64), self._worded(settled.rows)
        )

    def _worded(self, rows: Floats) -> dict[str, Column]:
        score, p0, p1, p = self._read(rows)
        return {"score": score, "p0": p0, "p1": p1, "p": p}

    def _read(self, rows: Floats) -> tuple[Column, Column, Column, Column]:
        """Give score, lower and upper end, and their merge."""
        score, p0, p1 = rows.T
        return score, p0, p1, self._merge(p0, p1)

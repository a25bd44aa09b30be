"""The binary task: a score becomes a Venn-Abers interval for the probability of label 1.

Governing rule: nothing is computed here that `abers.VennAbers` does not
compute; a row is score, p0, p1.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from abers._shown import shown
from abers.calibration import VennAbers, _checks, log_merge
from abers.exceptions import ScoreError
from abers.monitoring import BinaryMonitor
from abers.stream.events import Outcome, Prediction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.stream.events import Observation
    from abers.stream.settings import Settings
    from abers.stream.tasks import Settled, Steps

    Floats = NDArray[np.float64]

__all__ = ["Binary"]


class _Calibrator:
    """An incremental Venn-Abers calibrator, as the processor drives it."""

    def __init__(self, venn_abers: VennAbers) -> None:
        self._venn_abers = venn_abers
        self._aging = venn_abers.max_age is not None or venn_abers.half_life is not None

    def run(self, steps: Steps) -> tuple[Floats, NDArray[np.int64]]:
        held = np.empty(len(steps.kinds), np.int64)
        times = steps.times if self._aging else None
        p0, p1 = self._venn_abers.run(
            steps.kinds, steps.scores[:, 0], steps.values, times=times, held=held
        )
        return np.column_stack((p0, p1)), held

    def to_bytes(self) -> bytes:
        return self._venn_abers.to_bytes()


class Binary:
    """Binary labels, calibrated by inductive Venn-Abers prediction.

    Parameters
    ----------
    settings
        Those of the processor: what scores are, and how calibrators forget.
    """

    score_width = 1
    answer_width = 2

    def __init__(self, settings: Settings) -> None:
        self._probabilities = settings.scores == "probability"
        self._smallest = 0.0 if self._probabilities else -sys.float_info.max
        self._largest = 1.0 if self._probabilities else sys.float_info.max
        self._forgetting: dict[str, Any] = {
            "window": settings.window,
            "max_age": settings.max_age,
            "half_life": settings.half_life,
        }

    def score(self, given: object) -> float:
        """Check one score: a finite number, in [0, 1] where scores are probabilities."""
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

    def plain(self, scores: list[Any], values: list[Any]) -> bool:
        """Tell whether `score` and `value` would take all of these as they are."""
        if not {*map(type, scores)} <= {float} or not {*map(type, values)} <= {int, bool}:
            return False
        inside = not scores or self._smallest <= min(scores) <= max(scores) <= self._largest
        # A NaN gets past min and max, but not into a sum unseen.
        return inside and sum(scores) - sum(scores) == 0.0 and {*values} <= {0, 1}

    def label(self, value: float) -> int:
        """Undo `value`."""
        return int(value)

    def calibrator(self, state: bytes | None = None) -> _Calibrator:
        """Make an empty calibrator, or the one that gave these bytes."""
        if state is None:
            return _Calibrator(VennAbers(**self._forgetting))
        return _Calibrator(VennAbers.from_bytes(state))

    def monitor(self, state: Sequence[Any] | None = None) -> BinaryMonitor:
        """Make a monitor that has seen nothing, or the one that gave this state."""
        if state is None:
            return BinaryMonitor(raw=self._probabilities)
        return BinaryMonitor.restore(state)

    def predictions(
        self, events: Sequence[Observation], rows: Floats, held: NDArray[np.int64]
    ) -> list[Prediction]:
        """Word predictions, a row each: score, p0, p1."""
        score, p0, p1 = rows.T
        return list(
            map(
                Prediction,
                [e.id for e in events],
                [e.time for e in events],
                [e.model for e in events],
                score.tolist(),
                p0.tolist(),
                p1.tolist(),
                log_merge(p0, p1).tolist(),
                held.tolist(),
                [e.segment for e in events],
                [e.extra for e in events],
            )
        )

    def outcomes(self, settled: Settled) -> list[Outcome]:
        """Word outcomes."""
        score, p0, p1 = settled.rows.T
        return list(
            map(
                Outcome,
                [e.id for e in settled.events],
                settled.told,
                [e.model for e in settled.events],
                settled.times,
                settled.values.astype(np.int64).tolist(),
                score.tolist(),
                p0.tolist(),
                p1.tolist(),
                log_merge(p0, p1).tolist(),
                settled.segments,
            )
        )

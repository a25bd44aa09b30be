"""The answer about forecasts: whether they tell the truth now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from abers.backends import core
from abers.monitoring.answers import Sums, answers_of
from abers.monitoring.verdict import Words
from abers.monitoring.verdict_sequence import VerdictSequence
from abers.saveable import CopiedWhole

if TYPE_CHECKING:
    from abers._core import AnswerSums
    from abers.monitoring.answers import Answers
    from abers.notebook.forecast_rows import ForecastRows

__all__ = ["WARM_UP", "ForecastAnswers", "answer_about_model"]

WARM_UP = 50
"""Number of the first forecasts, which fix the groups of the first answers and are in no number."""

_WORDS = Words("forecasts")


def answer_about_model(sums: Sums) -> Answers:
    """Return the answers without those that need a calibrator."""
    found = answers_of([sums])
    return replace(found, answers=[found["model"]])


class ForecastAnswers(CopiedWhole):
    """The first of the three answers, about forecasts that nothing calibrates.

    Parameters
    ----------
    tolerance
        Ratio of odds within which forecasts are right, at least 1.

    Attributes
    ----------
    verdicts
        `VerdictSequence` of the same forecasts; the answer names its incidents.
    """

    def __init__(self, tolerance: float) -> None:
        self.verdicts = VerdictSequence("raw", tolerance, words=_WORDS)
        self._tolerance, self._count = tolerance, 0
        self._sums = self._empty()

    def _empty(self) -> AnswerSums:
        made: AnswerSums = core.AnswerSums(self._tolerance, 1)
        return made

    def add(self, rows: ForecastRows) -> None:
        """Add forecasts with their labels, in the order of time."""
        self.verdicts.add(rows.forecasts, rows.labels, rows.times)
        first, n = self._count, len(rows.labels)
        begin, p = max(min(WARM_UP - first, n), 0), rows.forecasts
        self._sums.skip(p[:begin], p[:begin])
        numbers = np.arange(first + begin, first + n)
        counted = (p[begin:], p[begin:], rows.labels[begin:], numbers, rows.times[begin:])
        self._sums.add(*counted)
        self._count += n

    def answers(self) -> Answers:
        """Return the answer, with all that it is made of."""
        sequence = self.verdicts
        sums = Sums(
            now=self._sums.now(),
            whole=self._sums.whole(),
            trail=self._sums.trail(),
            warm_up=self._sums.skipped,
            came=self._count,
            grace_period=WARM_UP,
            views=["raw"],
            incidents={} if sequence.began is None else {"raw": sequence.began},
            parts=(),
            tolerance=self._tolerance,
        )
        return answer_about_model(sums)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and copy all attributes; sums of the core by their state."""
        return {**vars(self), "_sums": self._sums.save()}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Restore all attributes."""
        sums = saved.pop("_sums")
        vars(self).update(saved)
        self._sums = self._empty()
        self._sums.load(sums)

"""The multi-class task: scores of some classes become their probabilities, each in an interval.

Governing rule: nothing is computed here that the calibrators of
`abers.calibration` do not compute; a row is the scores, the probabilities, the
lower and the upper ends, each in the order of the classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from abers._saved import require
from abers._shown import shown
from abers.calibration import OneVsOne, OneVsRest, _checks
from abers.exceptions import LabelError, ScoreError
from abers.monitoring import CalibrationBets, MultiClassMonitor
from abers.stream import wording
from abers.stream.bets import betting
from abers.stream.columns import objects
from abers.stream.events import MultiClassOutcome, MultiClassPrediction
from abers.stream.facts import Facts, of_classes
from abers.stream.tasks import Answers, alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.stream.columns import Column, Events, Rows
    from abers.stream.settings import Settings
    from abers.stream.tasks import Settled, Steps

    Floats = NDArray[np.float64]

__all__ = ["MultiClass"]

_CALIBRATORS: dict[str, type[OneVsRest | OneVsOne]] = {
    "one-vs-rest": OneVsRest,
    "one-vs-one": OneVsOne,
}
_EPSILON = 1e-9  # that probabilities may be above 1
_ROUNDING = 0.01  # probabilities that were written with few digits still sum to about 1


class _Calibrator:
    """A multi-class calibrator, as the processor drives it."""

    def __init__(self, calibrator: OneVsRest | OneVsOne) -> None:
        self._calibrator = calibrator
        self._aging = calibrator.max_age is not None or calibrator.half_life is not None

    def run(self, steps: Steps) -> Answers:
        held = np.empty(len(steps.kinds), np.int64)
        times = steps.times if self._aging else None
        labels = steps.values.astype(np.int64)
        answers = self._calibrator.run(steps.kinds, steps.scores, labels, times=times, held=held)
        return Answers(np.hstack(answers), held)

    def __len__(self) -> int:
        return len(self._calibrator)

    def to_bytes(self) -> bytes:
        return self._calibrator.to_bytes()


class MultiClass:
    """One of several labels, calibrated by one-vs-rest or one-vs-one Venn-Abers prediction.

    Parameters
    ----------
    settings
        Those of the processor: the classes, what scores are, and how calibrators forget.
    """

    prediction = MultiClassPrediction
    outcome = MultiClassOutcome
    distributions = False

    def __init__(self, settings: Settings) -> None:
        self._classes = settings.classes
        self._numbers = {name: number for number, name in enumerate(settings.classes)}
        self._kind = _CALIBRATORS[settings.calibrator or "one-vs-rest"]
        self._probabilities = settings.scores == "probability"
        # The score of a pair is a share, and a share of what is negative is none.
        self._nonnegative = self._probabilities or self._kind is OneVsOne
        self._bets = betting(settings)
        self._forgetting: dict[str, Any] = {
            "window": settings.window,
            "max_age": settings.max_age,
            "half_life": settings.half_life,
        }
        self.score_width = len(self._classes)
        self.answer_width = 3 * len(self._classes)

    def score(self, given: object, id_: str) -> list[float]:
        """Check the scores of one observation: by class, finite; one left out is 0."""
        del id_
        if not isinstance(given, Mapping):
            msg = f"score {shown(given)} is no mapping; write {{class: score, …}}"
            raise ScoreError(msg)
        if unknown := [name for name in given if name not in self._numbers]:
            msg = f"score of class {shown(unknown[0])}, which is not among {shown(self._classes)}"
            raise ScoreError(msg)
        row = [_checks.score(given.get(name, 0.0)) for name in self._classes]
        if not self._right(np.array([row])):
            rule = "probabilities that sum to 1" if self._probabilities else "0 or more"
            msg = f"scores {shown(dict(given))} are not {rule}; mend them, or set scores"
            raise ScoreError(msg)
        return row

    def value(self, given: object) -> float:
        """Check one label: a class, or a whole number that is written like one."""
        whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
        with suppress(KeyError, ValueError):  # not among them, or of thousands of digits
            if whole or isinstance(given, str):
                return float(self._numbers[str(given)])
        msg = f"label {shown(given)} is not among the classes {shown(self._classes)}"
        raise LabelError(msg)

    def columns(self, events: Events) -> tuple[Floats, Floats] | None:
        """Do what `score` and `value` do for all of a batch; None if anything is unusual."""
        scores, values = np.zeros((len(events), len(self._classes))), np.zeros(len(events))
        if events.scores is not None:
            table = self._table(events.scores[~events.labels].tolist())
            if table is None:
                return None
            scores[~events.labels] = table
        if events.values is not None:
            told = events.values[events.labels].tolist()
            if not {*map(type, told)} <= {str} or not {*told} <= self._numbers.keys():
                return None
            values[events.labels] = [self._numbers[name] for name in told]
        return scores, values

    def _table(self, given: list[Any]) -> Floats | None:
        """Make rows of mappings that name every class and no other, with floats."""
        if not {*map(type, given)} <= {dict} or any(
            one.keys() != self._numbers.keys() for one in given
        ):
            return None
        rows = [[one[name] for name in self._classes] for one in given]
        if not {type(score) for row in rows for score in row} <= {float}:
            return None
        table = np.array(rows, float).reshape(-1, len(self._classes)) + 0.0  # as in `score`
        return table if self._right(table) else None

    def _right(self, table: Floats) -> bool:
        if not np.isfinite(table).all() or (self._nonnegative and (table < 0.0).any()):
            return False
        if not self._probabilities:
            return True
        with np.errstate(over="ignore"):  # an infinite sum is none of 1
            return bool((np.abs(table.sum(axis=1) - 1.0) <= _ROUNDING).all())

    def are_scores(self, rows: Floats) -> bool:
        """Tell whether rows are scores of all classes."""
        return self._right(rows)

    def are_answers(self, rows: Floats) -> bool:
        """Tell whether rows are probabilities, and their lower and upper ends."""
        return bool(((rows >= 0.0) & (rows <= 1.0 + _EPSILON)).all())

    def are_values(self, values: Floats) -> bool:
        """Tell whether numbers are those of classes."""
        return bool(np.isin(values, np.arange(len(self._classes))).all())

    def label(self, value: float) -> str:
        """Undo `value`."""
        return self._classes[int(value)]

    def lesson(self, value: float, id_: str) -> tuple[Any, ...]:
        """Give what a learner is told of a label: the label."""
        del id_
        return (self.label(value),)

    def calibrator(self, state: bytes | None = None) -> _Calibrator:
        """Make an empty calibrator, or the one that gave these bytes."""
        none = self._kind(self._classes, **self._forgetting, max_classes=max(2, len(self._classes)))
        return _Calibrator(none if state is None else alike(self._kind.from_bytes(state), none))

    def monitor(self, state: Sequence[Any] | None = None) -> MultiClassMonitor:
        """Make a monitor that has seen nothing, or the one that gave this state."""
        if state is None:
            return MultiClassMonitor(raw=self._probabilities)
        monitor = MultiClassMonitor.restore(state)
        require((monitor.raw is not None) == self._probabilities, "views")
        return monitor

    def facts(self, rows: Floats, values: Floats) -> Facts:
        """Judge the probabilities, and the scores where they are probabilities."""
        labels = values.astype(np.int64)
        score, p, low, high = np.split(rows, 4, axis=1)
        raw = {"raw": of_classes(score, labels)} if self._probabilities else {}
        widths = (high - low)[np.arange(len(labels)), labels]
        return Facts(raw | {"calibrated": of_classes(p, labels)}, widths)

    def bets(self) -> CalibrationBets:
        """Make bets against the probability of the class that has most of it."""
        return CalibrationBets(**self._bets)

    def stakes(self, said: Floats, settled: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Give the largest probabilities, and whether the labels were of those classes."""
        k = len(self._classes)
        most = said[:, k : 2 * k].max(axis=1)
        hits = settled[:, k : 2 * k].argmax(axis=1) == values
        return np.minimum(most, 1.0)[:, np.newaxis], hits[:, np.newaxis].astype(np.float64)

    def predictions(self, events: Events, answers: Answers) -> Rows[MultiClassPrediction]:
        """Word predictions, a row each."""
        return wording.predictions(
            MultiClassPrediction, events, self._worded(answers.rows), answers.held
        )

    def outcomes(self, settled: Settled) -> Rows[MultiClassOutcome]:
        """Word outcomes."""
        labels = objects([self.label(value) for value in settled.values.tolist()])
        return wording.outcomes(MultiClassOutcome, settled, labels, self._worded(settled.rows))

    def _worded(self, rows: Floats) -> dict[str, Column]:
        parts = np.split(rows, 4, axis=1)
        return {
            name: objects([dict(zip(self._classes, row, strict=True)) for row in part.tolist()])
            for name, part in zip(("score", "p", "low", "high"), parts, strict=True)
        }

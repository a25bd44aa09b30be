"""Intervals around the predictions of a model, as wide as errors were where it was as unsure.

The set behind `abers.regression.IVAPR` does the mathematics: it learns errors in place of labels.
"""

from __future__ import annotations

import math
import struct
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
)

import numpy as np

from abers import validation
from abers.arrays import LEARN, ONE, PREDICT
from abers.backends import core
from abers.base import Capabilities
from abers.exceptions import LabelError, ParameterError, ScoreError
from abers.mathematics import Forgetting, Many, One, Steps
from abers.regression.coverage_tracker import PredictionInterval, PredictionIntervals
from abers.regression.distribution_calibrator import BoundedCalibrator
from abers.regression.ivapr import dump_held, held_rows, load_held
from abers.serialization import pack, require, unpack
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from abers._core import PredictiveSet
    from abers.arrays import Floats, Integers

    Prediction: TypeAlias = "float | Sequence[float]"

__all__ = ["EVERYWHERE", "ConformalInterval", "LevelCalibrator"]

EVERYWHERE = (-np.inf, np.inf)
_LEVEL_STRUCT = struct.Struct("<d")

S = TypeVar("S")  # a score


class LevelCalibrator(BoundedCalibrator[S, One, Many], Generic[S, One, Many]):
    """A calibrator with one level, and a set of scores and numbers of weight 1."""

    _ends: tuple[float, float] = EVERYWHERE
    _ends_name: ClassVar[str] = "support"

    def __init__(
        self,
        level: float,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        super().__init__(window, max_age, half_life)
        self._level = validation.fraction(level, "level")
        rule = self._forgetting
        ages = (rule.max_age or 0.0, rule.half_life or 0.0)
        self._held = cast("PredictiveSet", core.PredictiveSet(rule.window or 0, *ages))

    @property
    def level(self) -> float:
        """The probability with which an interval is to cover the label."""
        return self._level

    def _options(self) -> list[str]:
        return [str(self._level), *super()._options()]

    def _save(self) -> bytes:
        held = dump_held(self._held, EVERYWHERE, np.empty(0))
        return pack([_LEVEL_STRUCT.pack(self._level), held])

    def _load(self, payload: memoryview) -> None:
        packed_level, packed_set = unpack(payload)
        (level,) = _LEVEL_STRUCT.unpack(packed_level)
        held, header, grid = load_held(packed_set)
        require((header.lo, header.hi) == EVERYWHERE, "support")
        require(not len(grid), "grid")
        weights = held_rows(held)[2]
        require(held.total == held.size * ONE and not (weights % ONE).any(), "weights")
        self._forget_by(Forgetting.of(held))
        self._level, self._held = validation.fraction(level, "level"), held


Error: TypeAlias = Literal["absolute", "cqr"]
_KINDS: tuple[Error, ...] = get_args(Error)


class ConformalInterval(LevelCalibrator["Prediction", PredictionInterval, PredictionIntervals]):
    """Put an interval around each prediction of a model of your own.

    The calibrator learns how far labels were from predictions, as an isotonic function of a
    difficulty: any number that is larger where larger errors are expected, in any unit. An interval
    is as wide as the quantile of the errors at its difficulty.

    A score is what a model says of an observation: ``prediction`` or ``(prediction, difficulty)``;
    with `score` "cqr" ``(low, high)`` or ``(low, high, difficulty)``, where low and high are two
    predicted quantiles. Without a difficulty it is the prediction, and with "cqr" high - low.

    At most one of `window`, `max_age` and `half_life` may be set.

    Parameters
    ----------
    level
        The probability with which an interval is to cover the label, in (0, 1).
    score
        What the error of a prediction is: "absolute" for its distance from the label; "cqr"
        (conformalized quantile regression) for the distance of the label from the nearer of two
        predicted quantiles, negative between them. Then both ends move by the same margin.
    window, max_age, half_life
        How to forget, as in `abers.VennAbers`.

    Raises
    ------
    ParameterError
        If the level is not inside (0, 1), `score` is unknown, or a rule of forgetting is invalid.

    Notes
    -----
    **Guarantee.** If the model and its difficulty were fixed before the labels learned here, and
    observations are exchangeable, an interval covers the label with a probability of at least
    `level`, for any number of labels, also with a `window`. This holds also given t, the isotonic
    quantile of the errors fitted with the true label, which is at most the margin of the interval.
    A half-life, a model that keeps learning, or drift void it;
    `abers.regression.CoverageTracker` keeps the share of covered labels on any sequence.

    The interval has exactly the labels y with the property that the quantile fitted with y is at
    least the error of y. With few labels at a difficulty it has infinite ends, and these are part
    of the guarantee. With "cqr" it may be empty.

    **Weights** are refused: unequal weights need that of the query in the fit too.

    **Removal.** The calibrator keeps errors. So it removes any observation with the same difficulty
    and the same error.

    **Rounding.** An end is moved outwards by a last digit where a label there would have an error
    that rounds to the margin.

    **Times** and **threads** are as in `abers.VennAbers`. A prediction takes about 0.1 ms with
    10,000 labels and 0.4 ms with 100,000.

    References
    ----------
    van der Laan & Alaa (2025), arXiv 2502.05676, section 4; Romano, Patterson & Candes (2019),
    Conformalized quantile regression; Henzi, Ziegel & Gneiting (2021), Isotonic distributional
    regression, which has all isotonic quantiles.

    Examples
    --------
    >>> from abers.batch import ConformalInterval
    >>> calibrator = ConformalInterval(0.5)
    >>> calibrator.learn_many([(4.0, 1.0), (7.0, 1.0), (5.0, 2.0)], [4.5, 6.0, 8.0])
    >>> calibrator.predict_one((6.0, 1.0))
    PredictionInterval(low=5.0, high=7.0)
    >>> calibrator.predict_many([(6.0, 1.0), (6.0, 2.0)]).high.tolist()
    [7.0, 9.0]

    >>> quantiles = ConformalInterval(0.5, score="cqr")
    >>> quantiles.learn_many([(3.0, 5.0), (4.0, 6.0), (1.0, 3.0)], [5.5, 4.5, 2.75])
    >>> quantiles.predict_one((2.0, 4.0))
    PredictionInterval(low=2.25, high=3.75)
    """

    capabilities = Capabilities(
        task="regression", score="prediction", answer="prediction interval", weights=False
    )
    _magic: ClassVar[bytes] = b"abersCI\x01"
    _lowest = math.nan  # a number is not all of a score

    def __init__(
        self,
        level: float,
        score: Error = "absolute",
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
    ) -> None:
        super().__init__(level, window, max_age, half_life)
        if not isinstance(score, str) or score not in _KINDS:
            msg = f"score={shown(score)} is unknown; use {', '.join(_KINDS)}"
            raise ParameterError(msg)
        self._error: Error = score

    @property
    def score(self) -> Error:
        """What the error of a prediction is."""
        return self._error

    def _options(self) -> list[str]:
        level, *rule = super()._options()
        return [level, *([] if self._error == "absolute" else [f"score={self._error!r}"]), *rule]

    # Scores: columns of the lower and the upper prediction, which may be the same, and difficulty

    def _score(self, score: object) -> list[float]:
        return [float(each) for each in self._scores([score])[:, 0]]

    def _scores(self, scores: ArrayLike) -> Floats:
        names = ("prediction",) if self._error == "absolute" else ("low", "high")
        rule = f"a score is ({', '.join(names)}) or ({', '.join(names)}, difficulty)"
        table = validation.array(scores, rule)
        if table.size == 0:
            return np.empty((3, 0))
        if table.ndim == 1:
            table = table[:, np.newaxis]
        ends = len(names)
        if table.ndim != 2 or table.shape[1] - ends not in {0, 1}:  # noqa: PLR2004 - rows, columns
            msg = f"scores are of shape {table.shape}; {rule}"
            raise ScoreError(msg)
        low, *others = (validation.scores(column) for column in table.T)
        high = low if self._error == "absolute" else others[0]
        crossed = np.flatnonzero(low > high)
        if crossed.size:
            at = crossed[0]
            msg = f"row {at}: low {low[at]} is above high {high[at]}; sort the quantiles"
            raise ScoreError(msg)
        if table.shape[1] > ends:
            return np.array([low, high, others[-1]])
        return np.array([low, high, low if ends == 1 else self._width_of(low, high)])

    @staticmethod
    def _width_of(low: Floats, high: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return validation.scores(high - low)

    # Steps

    def _predict(
        self, score: Sequence[float], weight: int, time: float, number: int
    ) -> PredictionInterval:
        found, _ = self._take(_step(PREDICT, score, 0.0, time), None)
        return PredictionInterval(float(found.low[0]), float(found.high[0]))

    def _learn(self, score: Any, label: float, weight: int, time: float, number: int) -> bool:
        difficulty, error = self._errors(_step(LEARN, score, label, time))
        return super()._learn(float(difficulty[0]), float(error[0]), weight, time, number)

    def _remove(self, score: Any, label: float, weight: int) -> bool:
        difficulty, error = self._errors(_step(LEARN, score, label, math.nan))
        return super()._remove(float(difficulty[0]), float(error[0]), weight)

    def _take(self, steps: Steps, held: Integers | None) -> tuple[PredictionIntervals, int]:
        difficulties, errors = self._errors(steps)
        quantiles = np.full((3, len(errors), 1), np.nan)
        done = self._held.run(
            *(steps.kinds, difficulties, errors, steps.weights, steps.times),
            *(np.array([self._level]), quantiles, held),
        )
        margins = quantiles[2, :, 0]  # of the lower CDF: no CDF of the band has larger ones
        low, high = -_end(-steps.scores[0], margins), _end(steps.scores[1], margins)
        return PredictionIntervals(low, high), done

    def _errors(self, steps: Steps) -> tuple[Floats, Floats]:
        """Return difficulties and errors; that of a prediction is 0."""
        low, high, difficulties = steps.scores
        predicts = steps.kinds == PREDICT
        with np.errstate(over="ignore"):
            errors = np.maximum(low - steps.labels, steps.labels - high)
        errors = np.where(predicts, 0.0, errors) + 0.0  # -0.0 becomes 0.0
        infinite = np.flatnonzero(np.isinf(errors))
        if infinite.size:
            at = infinite[0]
            msg = (
                f"row {steps.row(at)}: label {steps.labels[at]!r} is further from its prediction "
                "than numbers reach; drop the observation or scale labels down"
            )
            raise LabelError(msg)
        return np.ascontiguousarray(difficulties), errors

    def _save(self) -> bytes:
        return pack([bytes([_KINDS.index(self._error)]), super()._save()])

    def _load(self, payload: memoryview) -> None:
        kind, rest = unpack(payload)
        require(len(kind) == 1 and kind[0] < len(_KINDS), "score")
        super()._load(memoryview(rest))
        self._error = _KINDS[kind[0]]


def _step(kind: int, score: Sequence[float], label: float, time: float) -> Steps:
    """Return a batch of one step."""
    times = None if math.isnan(time) else np.array([time])
    column = np.array(score)[:, np.newaxis]
    return Steps(np.array([kind], np.uint8), column, np.array([label]), None, times)


def _end(predicted: Floats, margins: Floats) -> Floats:
    """Return upper ends that no label above them has an error, as rounded, within the margin.

    The error y - predicted ascends with y. If the next number after predicted + margin is within
    the margin, then for all y within it, y - predicted is below the next number after the margin.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        ends = predicted + margins
        beyond = np.nextafter(ends, np.inf) - predicted
        return np.where(beyond <= margins, predicted + np.nextafter(margins, np.inf), ends)

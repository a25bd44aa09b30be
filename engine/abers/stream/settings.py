"""What shapes the state of a processor.

Governing rule: two processors with equal settings that are fed the same events
hold the same state, so all that makes a difference stands here, and a snapshot
carries it. A state goes on only with equal settings, but for those of admission.
"""

from __future__ import annotations

import math
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from abers._shown import shown
from abers._texts import fits
from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "CALIBRATORS",
    "DISTRIBUTIONS",
    "LARGEST_TIME",
    "OF_ADMISSION",
    "OF_PROBABILITIES",
    "QUANTILES",
    "Settings",
    "ascend",
]

CALIBRATORS = {
    "binary": ("ivap", "cvap", "platt", "isotonic", "dir", "beta", "uncalibrated"),
    "multiclass": ("one-vs-rest", "one-vs-one"),
    "regression": ("ivapr",),
}
"""Kinds of calibrators by task, the usual one first."""
OF_PROBABILITIES = ("beta", "uncalibrated")
"""Those that need scores in [0, 1]."""
DISTRIBUTIONS = ("none", "judged", "told")
"""What becomes of whole distributions, the usual one first."""
QUANTILES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
"""Levels that bound the central intervals of 95, 90, 80 and 50 per cent, and the median."""

OF_ADMISSION = ("max_models", "retire_after", "max_id_bytes", "max_name_bytes")
"""Settings that decide what comes in, and what makes room for it: they may change where all that is
held still fits, since the entries of a journal say what they came to."""

LARGEST_TIME = 1 << 53  # whole numbers below are exact as doubles, and in every JSON reader
_MOST = (1 << 31) - 1  # entries are numbered with 32 bits
_MOST_FOLDS = 100
_PARTS = 10  # of the shortest span: one wrong time makes things at most so much older
_SECOND = 1000
_DAY = 24 * 3600 * _SECOND


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The task, the calibrators, and the limits of a processor; times in milliseconds.

    Attributes
    ----------
    task
        What is predicted: the probability of label 1, those of several classes, or the
        distribution of a label that is a number.
    classes
        The classes of a multi-class task.
    quantiles
        The levels at which a regression task tells the distribution, ascending.
    thresholds
        Where it knows the distribution, ascending, so that a prediction takes microseconds for
        each; by default at every label held, which takes time in proportion to those.
    distributions
        What becomes of the whole of them: "judged" adds their mean to a prediction, and their CRPS
        and PIT values to the scores; "told" does that, and adds the band to each prediction.
    support
        The ends between which all labels lie, where the mean and the CRPS put the masses beyond
        the labels seen; by default the smallest and the largest label held.
    calibrator
        Its kind; None is that which is usual for the task: "ivap", "one-vs-rest" or "ivapr".
    folds
        How many the calibrator "cvap" has.
    scores
        Whether scores are probabilities (one outside [0, 1] is a bad record, and the raw
        scores are judged beside the calibrated ones), logits, or any numbers.
    window, max_age, half_life
        How each calibrator forgets, as in `abers.VennAbers`; at most one of them.
    learner
        Name of what scores the features; None if each observation brings its score.
    label_wait
        How long an observation waits for its label, and a label for its observation.
    lateness
        How far behind the largest event time so far an event may be without counting as
        late; expiry waits so much longer.
    max_ahead
        How far an event time may be ahead of the time its record was written.
    max_jump
        How far one event alone moves the clock of its model, but where events are rarer; further,
        three events of different ids must agree. None is a tenth of the shortest span of time in
        these settings.
    dedup_for, dedup_max
        How long, and how many, finished ids are remembered to know a duplicate by; None
        remembers them for `label_wait`.
    max_pending
        How many observations wait for labels at most; beyond that the oldest goes.
    max_early
        How many labels wait for observations at most; beyond that the oldest goes.
    max_bytes
        How many bytes the ids and features of all that waits, and finished ids, take at most;
        beyond that the oldest finished ids go first, then labels, then observations.
    max_models
        How many models, and how many segments of all models, are kept apart at most.
    retire_after
        How far the clock of a model may be behind those of the others when there are `max_models`;
        further, and all of the model is forgotten when a batch begins. None retires no model.
    max_id_bytes
        How many bytes an id has at most, in UTF-8.
    max_name_bytes
        How many bytes a model, a segment or a class has at most, in UTF-8.
    monitors
        Whether predictions are scored when their labels arrive.
    tests
        Whether bets are made against them too, see `abers.monitoring.CalibrationBets`; not without
        monitors.
    tests_after
        How many labels a calibrator must have learned before its predictions are bet against: while
        it knows little, they cannot mean what they say.
    alarm_distance
        How many observations with labels lie at least between false alarms, on average.
    alarm_quiet
        After how many without evidence of a change an episode is over: one alarm is made of each.
    """

    task: Literal["binary", "multiclass", "regression"] = "binary"
    classes: tuple[str, ...] = ()
    quantiles: tuple[float, ...] = QUANTILES
    thresholds: tuple[float, ...] = ()
    distributions: Literal["none", "judged", "told"] = "none"
    support: tuple[float, ...] = ()
    calibrator: str | None = None
    folds: int = 5
    scores: Literal["probability", "logit", "any"] = "any"
    window: int | None = None
    max_age: int | None = None
    half_life: int | None = None
    learner: str | None = None
    label_wait: int = 7 * _DAY
    lateness: int = 0
    max_ahead: int = 300 * _SECOND
    max_jump: int | None = None
    dedup_for: int | None = None
    dedup_max: int = 1_000_000
    max_pending: int = 1_000_000
    max_early: int = 100_000
    max_bytes: int = 1 << 29
    max_models: int = 1_000
    retire_after: int | None = None
    max_id_bytes: int = 256
    max_name_bytes: int = 256
    monitors: bool = True
    tests: bool = True
    tests_after: int = 200
    alarm_distance: int = 1_000_000
    alarm_quiet: int = 10_000

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in ("label_wait", "lateness", "max_ahead", "max_bytes"):
            self._require(name, 0, LARGEST_TIME)
        self._require("dedup_max", 0, _MOST)
        self._require("folds", 2, _MOST_FOLDS)
        self._require("tests_after", 0, _MOST)
        self._require("alarm_distance", 2, _MOST)
        for name in ("max_pending", "max_early", "max_models", "alarm_quiet"):
            self._require(name, 1, _MOST)
        self._require("max_id_bytes", 1, _MOST)
        self._require("max_name_bytes", 1, _MOST)
        for name in ("window", "max_age", "half_life"):
            if getattr(self, name) is not None:
                self._require(name, 1, _MOST if name == "window" else LARGEST_TIME)
        if sum(one is not None for one in (self.window, self.max_age, self.half_life)) > 1:
            msg = "window, max_age and half_life exclude each other; give at most one"
            raise ParameterError(msg)
        for name in ("dedup_for", "max_jump", "retire_after"):
            if getattr(self, name) is not None:
                self._require(name, 0, LARGEST_TIME)
        if self.distributions not in DISTRIBUTIONS:
            msg = f"distributions={shown(self.distributions)} is none of {', '.join(DISTRIBUTIONS)}"
            raise ParameterError(msg)
        self._keep("classes", _text, "texts")
        self._keep("quantiles", _real, "numbers")
        self._keep("thresholds", _real, "numbers")
        self._keep("support", _real, "numbers")
        self._require_task()

    @property
    def jump(self) -> int:
        """How far one event alone moves the clock of its model, in milliseconds."""
        if self.max_jump is not None:
            return self.max_jump
        spans = (self.label_wait, self.dedup_for, self.max_age, self.half_life)
        return min((span for span in spans if span), default=LARGEST_TIME) // _PARTS

    def _require_task(self) -> None:
        if self.task not in (tasks := tuple(CALIBRATORS)):
            msg = f"task={shown(self.task)} is none of {', '.join(tasks)}"
            raise ParameterError(msg)
        if self.calibrator is not None and self.calibrator not in CALIBRATORS[self.task]:
            known = ", ".join(CALIBRATORS[self.task])
            msg = f"calibrator={shown(self.calibrator)} is none for a {self.task} task: {known}"
            raise ParameterError(msg)
        if self.calibrator in OF_PROBABILITIES and self.scores != "probability":
            msg = f"calibrator={shown(self.calibrator)} is for probabilities; declare scores such"
            raise ParameterError(msg)
        several = self.task == "multiclass"
        distinct = len({*self.classes}) == len(self.classes)
        if several and (len(self.classes) < 2 or not distinct):  # noqa: PLR2004 - makes a choice
            msg = f"classes={shown(self.classes)} are not two or more different texts"
            raise ParameterError(msg)
        if long := [one for one in self.classes if not fits(one, self.max_name_bytes)]:
            msg = (
                f"class {shown(long[0])} takes {len(long[0].encode()):,} bytes, and "
                f"max_name_bytes={self.max_name_bytes}; shorten it, or raise max_name_bytes"
            )
            raise ParameterError(msg)
        if self.classes and not several:
            msg = f"classes={shown(self.classes)} belong to a multiclass task; leave them out"
            raise ParameterError(msg)
        if self.task == "regression":
            self._require_distribution()
        elif self.distributions != "none":
            msg = f"distributions belong to a regression task, not to a {self.task} one"
            raise ParameterError(msg)
        if self.support:
            self._require_support()

    def _require_distribution(self) -> None:
        if self.scores == "probability":
            msg = "scores of a regression task are no probabilities; set scores to any"
            raise ParameterError(msg)
        if not self.quantiles or not ascend(self.quantiles, 0.0, 1.0):
            msg = f"quantiles={shown(self.quantiles)} are not ascending levels between 0 and 1"
            raise ParameterError(msg)
        if not ascend(self.thresholds):
            msg = f"thresholds={shown(self.thresholds)} are not ascending finite numbers"
            raise ParameterError(msg)

    def _require_support(self) -> None:
        if self.distributions == "none":
            msg = f"support={shown(self.support)} is for distributions; have them judged or told"
            raise ParameterError(msg)
        if len(self.support) != 2 or not ascend(self.support):  # noqa: PLR2004 - a pair
            msg = f"support={shown(self.support)} is no pair of finite ends in order"
            raise ParameterError(msg)
        low, high = self.support
        if any(not low <= one <= high for one in self.thresholds):
            msg = f"support={shown(self.support)} does not span the thresholds; widen it"
            raise ParameterError(msg)

    def _keep(self, name: str, read: Callable[[Any], str | float], what: str) -> None:
        """Keep what is listed as a snapshot gives it back: in a tuple."""
        given = getattr(self, name)
        try:
            kept = tuple(map(read, _listed(given)))
        except (TypeError, ValueError, OverflowError):
            msg = f"{name}={shown(given)} is not a list of {what}"
            raise ParameterError(msg) from None
        msgspec.structs.force_setattr(self, name, kept)

    def _require(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        if type(value) is not int or not least <= value <= most:
            msg = f"{name}={shown(value)} is not a whole number between {least} and {most}"
            raise ParameterError(msg)


def _listed(given: Any) -> Any:  # noqa: ANN401
    """Refuse a text, which can be iterated over too."""
    if isinstance(given, str):
        raise TypeError
    return given


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # half of a surrogate pair cannot be written down
    return value


def _real(value: object) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError
    return float(value)


def ascend(values: Sequence[float], low: float = -math.inf, high: float = math.inf) -> bool:
    """Tell whether numbers ascend strictly between two ends.

    Examples
    --------
    >>> ascend([0.1, 0.9], 0.0, 1.0), ascend([0.1, 0.1]), ascend([0.0, 0.5], 0.0, 1.0)
    (True, False, False)
    """
    return all(a < b for a, b in pairwise([low, *values, high]))

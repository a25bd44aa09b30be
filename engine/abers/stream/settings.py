"""Settings of a processor: all that shapes its state.

Processors with equal settings that take the same events have the same state. A snapshot has the
settings, and is restored only with equal ones, except for those of validation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from abers import registry
from abers.exceptions import ParameterError
from abers.stream.distribution_settings import require_distribution, require_support
from abers.stream.setting_values import (
    ascend,
    checked_real,
    require_choice,
    require_forgetting,
    require_learn_after,
    require_unlabelled,
    text,
)
from abers.stream.texts import fits
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CALIBRATORS",
    "DISTRIBUTIONS",
    "LARGEST_TIME",
    "OF_VALIDATION",
    "PROBABILITIES",
    "QUANTILES",
    "Settings",
    "ascend",
]

CALIBRATORS = {task: registry.names(task) for task in ("binary", "multiclass", "regression")}
"""Names of calibrators by task, the default first."""
DISTRIBUTIONS = ("none", "scored", "full")
"""Uses of whole distributions, the default first."""
PROBABILITIES = ("protected", "merged")
"""Ways to make one probability of an interval and a score."""
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "task": tuple(CALIBRATORS),
    "distributions": DISTRIBUTIONS,
    "scores": ("probability", "logit", "any"),
    "probability": (None, *PROBABILITIES),
}
QUANTILES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
"""Levels that bound the central intervals of 95, 90, 80 and 50 per cent, and the median."""

OF_VALIDATION = ("max_models", "retire_after", "max_id_bytes", "max_name_bytes")
"""Settings that decide which events are valid, and which models are retired. They may change as
long as the state fits, since journal entries have their results."""

LARGEST_TIME = 1 << 53  # whole numbers below are exact as doubles, and in every JSON reader
_MAX_ENTRIES = (1 << 31) - 1  # entries are numbered with 32 bits
_MOST_FOLDS = 100
# Kinds of scores that say probabilities, which are protected by default.
_SAYING = {"binary": ("probability", "logit"), "multiclass": ("probability",)}
_PROTECTED_CLASSES = 100  # time and memory of that grow with their square
_PARTS = 10  # of the shortest span: one wrong time ages entries by no more
_DAY = 24 * 3_600_000
_RANGES = {
    **dict.fromkeys(("label_timeout", "allowed_lateness", "max_clock_skew"), (0, LARGEST_TIME)),
    **dict.fromkeys(("max_bytes", "dedup_ttl", "max_jump", "retire_after"), (0, LARGEST_TIME)),
    "learn_after": (0, LARGEST_TIME),
    **dict.fromkeys(("max_age", "half_life", "average_run_time"), (1, LARGEST_TIME)),
    **dict.fromkeys(("dedup_max_ids", "grace_period"), (0, _MAX_ENTRIES)),
    **dict.fromkeys(("max_pending", "max_early", "max_models", "cooldown"), (1, _MAX_ENTRIES)),
    **dict.fromkeys(("max_id_bytes", "max_name_bytes", "window"), (1, _MAX_ENTRIES)),
    "average_run_length": (2, _MAX_ENTRIES),
    "folds": (2, _MOST_FOLDS),
}
_OPTIONAL = {
    *("window", "max_age", "half_life", "dedup_ttl", "max_jump", "retire_after", "learn_after"),
    *("average_run_time", "coverage"),
}
"""Numbers that may be None."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The task, the calibrators, and the limits of a processor; times in milliseconds.

    Attributes
    ----------
    task
        What is predicted: the probability of label 1, those of several classes, or the
        distribution of a label that is a number.
    classes
        Classes of a multi-class task, all of them.
    quantiles
        Levels of the quantiles that a regression task predicts, ascending.
    grid
        Thresholds at which the calibrator "ivapr" computes the distribution, ascending; a
        prediction takes microseconds for each. By default every label held is one.
    distributions
        Use of whole distributions: "scored" adds their mean to a prediction, and their CRPS and PIT
        values to the scores; "full" also adds the band to each prediction.
    support
        Ends between which all labels lie, where mean and CRPS put the masses beyond the labels
        seen; by default the smallest and the largest label held. "protected" requires it.
    calibrator
        Its name in `abers.registry`, or the import path of your own, "package.module:Class"; None
        is the default of the task: "ivap", "one-vs-rest" or "ivapr". "none" serves scores that are
        probabilities as they are, and learns nothing: only monitors and tests run.
    probability
        Which probability is predicted: "protected", whose log loss exceeds that of the score by a
        bounded price, or "merged", made of the interval alone. None is "protected" for "ivap" and
        "cvap" if scores are probabilities or logits, for "one-vs-rest" if they are probabilities of
        at most 100 classes, and for calibrators named "protected"; else "merged". More classes can
        be protected too, but time and memory grow with the square of their number.
    raw_weight
        Weight of the score in the protected probability at first, between 0 and 1; of K scores
        that of their median.
    base_weight
        Weight of the base in the distribution of "protected" at first, between 0 and 1.
    coverage
        Share of labels that one more interval of each prediction of "protected" is to cover, as
        `abers.regression.CoverageTracker` moves it; None predicts no such interval.
    folds
        Number of folds of the calibrator "cvap".
    scores
        Whether scores are probabilities (one outside [0, 1] is a dead letter, and the raw scores
        are scored beside the calibrated ones), logits (scored likewise), or any numbers.
    window, max_age, half_life
        How each calibrator forgets, as in `abers.VennAbers`; at most one of them, and none with
        "protected".
    learner
        Name of the learner that scores features; None if observations have scores.
    label_timeout
        How long an observation waits for its label, and a label for its observation.
    unlabelled
        Label of an observation whose own has not come within `label_timeout`: 0, 1, or a class. It
        is learned once, at the time of the observation and `label_timeout`; a label that comes
        later gives a late outcome, for another `label_timeout`. None drops the observation.
    learn_after
        How old an observation is, by the clock of its model, when its label is learned, even if
        that came earlier; with two classes and Venn-Abers calibrators alone. By default labels are
        learned in the order of predictions where delays tell the label, and with `unlabelled` when
        the wait is over.
    allowed_lateness
        How far behind the largest event time so far an event may be without counting as late;
        expiry waits so much longer.
    max_clock_skew
        How far an event time may be ahead of the time at which its record was written.
    max_jump
        How far one event alone moves the clock of its model, unless events are rarer; further,
        three events of different ids must agree. None is a tenth of the shortest span of time in
        these settings.
    dedup_ttl, dedup_max_ids
        How long, and how many of a model, finished ids are remembered, to recognize duplicates;
        None remembers them for `label_timeout`.
    max_pending, max_early
        Largest number of observations of a model that wait for labels, and of labels of a model
        that wait for observations; beyond that its oldest expires.
    max_bytes
        Largest number of bytes of all that waits and of finished ids, of all models: 180 for an
        observation, 110 for others, ids, features, and what a protected prediction keeps. Beyond
        that the oldest finished ids go first, then labels, then observations, of whatever model.
    max_models
        Largest number of models, and of segments of all models.
    retire_after
        How far the clock of a model may be behind those of the others when there are `max_models`;
        a model further behind is forgotten when a batch begins. None retires no model.
    max_id_bytes
        Largest size of an id, in bytes of UTF-8.
    max_name_bytes
        Largest size of a model, a segment or a class, in bytes of UTF-8.
    monitors
        Whether predictions are scored when their labels arrive.
    tests
        Whether they are tested too, see `abers.monitoring.CalibrationEProcess`; not without
        monitors.
    grace_period
        Number of labels that a calibrator must have learned before its predictions are tested: with
        few labels they cannot be calibrated.
    tolerance
        Ratio of odds, of at least 1, by which forecasts may be off without an alarm: 1.25 tolerates
        0.444 to 0.556 for 0.5, and 0.004 to 0.00625 for 0.005.
    average_run_length
        Lower bound of the mean number of observations with labels between false alarms.
    average_run_time
        Lower bound of the mean event time between false alarms instead; None counts observations.
    cooldown
        Number of observations without evidence of a change after which an incident ends; each
        incident makes one alarm.
    """

    task: Literal["binary", "multiclass", "regression"] = "binary"
    classes: tuple[str, ...] = ()
    quantiles: tuple[float, ...] = QUANTILES
    grid: tuple[float, ...] = ()
    distributions: Literal["none", "scored", "full"] = "none"
    support: tuple[float, ...] = ()
    calibrator: str | None = None
    probability: Literal["protected", "merged"] | None = None
    raw_weight: float = 0.25
    base_weight: float = 0.5
    coverage: float | None = None
    folds: int = 5
    scores: Literal["probability", "logit", "any"] = "any"
    window: int | None = None
    max_age: int | None = None
    half_life: int | None = None
    learner: str | None = None
    label_timeout: int = 7 * _DAY
    unlabelled: int | str | None = None
    learn_after: int | None = None
    allowed_lateness: int = 0
    max_clock_skew: int = 300_000
    max_jump: int | None = None
    dedup_ttl: int | None = None
    dedup_max_ids: int = 1_000_000
    max_pending: int = 1_000_000
    max_early: int = 100_000
    max_bytes: int = 1 << 29
    max_models: int = 1_000
    retire_after: int | None = None
    max_id_bytes: int = 256
    max_name_bytes: int = 256
    monitors: bool = True
    tests: bool = True
    grace_period: int = 200
    tolerance: float = 1.25
    average_run_length: int = 1_000_000
    average_run_time: int | None = None
    cooldown: int = 10_000

    def __post_init__(self) -> None:
        """Refuse settings that are out of range, or do not fit together."""
        for name, known in _CHOICES.items():
            require_choice(name, getattr(self, name), known)
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            if type(value) is not int or not least <= value <= most:
                msg = f"{name}={shown(value)} is not a whole number between {least} and {most}"
                raise ParameterError(msg)
        if sum(one is not None for one in (self.window, self.max_age, self.half_life)) > 1:
            msg = "window, max_age and half_life exclude each other; give at most one"
            raise ParameterError(msg)
        for name in ("raw_weight", "base_weight", "coverage"):
            share = getattr(self, name)
            if share is None and name in _OPTIONAL:
                continue
            if type(share) is not float or not 0.0 < share < 1.0:
                msg = f"{name}={shown(share)} is not a number between 0 and 1, without the ends"
                raise ParameterError(msg)
        self._keep_tolerance()
        self._keep("classes", text, "texts")
        for name in ("quantiles", "grid", "support"):
            self._keep(name, checked_real, "numbers")
        self._require_task()

    @property
    def jump(self) -> int:
        """How far one event alone moves the clock of its model, in milliseconds."""
        if self.max_jump is not None:
            return self.max_jump
        spans = (self.label_timeout, self.dedup_ttl, self.max_age, self.half_life)
        return min((span for span in spans if span), default=LARGEST_TIME) // _PARTS

    @property
    def labels_after(self) -> int | None:
        """Age of observations at which labels are learned; None if they have their own order."""
        if self.learn_after is None and self.unlabelled is not None:
            return self.label_timeout + self.allowed_lateness
        return self.learn_after

    @property
    def protected(self) -> bool:
        """Whether the probability is protected."""
        forms = registry.protected_forms(self.task)
        if self.probability is not None or self._named not in forms:
            return self.probability == "protected" or self._named in forms.values()
        return self.has_raw_view and len(self.classes) <= _PROTECTED_CLASSES

    @property
    def has_raw_view(self) -> bool:
        """Whether scores say probabilities: as they are, or as the logits of label 1."""
        return self.scores in _SAYING.get(self.task, ())

    @property
    def views(self) -> tuple[str, ...]:
        """Views that are tested: "raw" probabilities, and "calibrated" unless those are served."""
        if not self.has_raw_view:
            return ("calibrated",)
        return ("raw",) if self.calibrator_name == registry.NONE else ("raw", "calibrated")

    @property
    def calibrator_name(self) -> str:
        """Name of the calibrator that predicts: the protected form if the probability is."""
        forms = registry.protected_forms(self.task) if self.protected else {}
        return forms.get(self._named, self._named)

    @property
    def _named(self) -> str:
        return self.calibrator or CALIBRATORS[self.task][0]

    def _require_probability(self) -> None:
        """Check that the calibrator makes the probability that is asked for."""
        kind, forms = self._named, registry.protected_forms(self.task)
        those = (*forms, *forms.values())
        if self.probability == "protected" and kind not in those:
            which = f"the calibrators {', '.join(those)}" if those else "other tasks"
            msg = f"probability='protected' is for {which}, not for {shown(kind)}; leave it out"
            raise ParameterError(msg)
        if self.probability == "merged" and kind in forms.values():
            other = next(name for name, form in forms.items() if form == kind)
            msg = (
                f"calibrator={kind!r} makes protected probabilities, no merged ones; set "
                f"calibrator={other!r}, or leave probability out"
            )
            raise ParameterError(msg)
        name = self.calibrator_name
        if registry.is_path(name):  # not imported before it is made
            return
        able = registry.capabilities(name, self.task)
        if able.of_probabilities and self.scores != "probability":
            key = "calibrator" if self.calibrator == name else "probability"
            msg = f"{key}={shown(name)} is for probabilities; set scores = 'probability'"
            raise ParameterError(msg)
        require_forgetting(self, name, able)

    def _require_task(self) -> None:
        """Check the settings that depend on the task."""
        if self.calibrator is not None:
            registry.require(self.calibrator, self.task)
        self._require_probability()
        several = self.task == "multiclass"
        distinct = len({*self.classes}) == len(self.classes)
        if several and (len(self.classes) < 2 or not distinct):  # noqa: PLR2004 - makes a choice
            msg = f"classes={shown(self.classes)} are not two or more different texts; list all"
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
            require_distribution(self.scores, self.quantiles, self.grid)
            if self.calibrator == "protected":
                self._require_protection()
        elif self.distributions != "none":
            msg = f"distributions belong to a regression task, not to a {self.task} one"
            raise ParameterError(msg)
        if self.support:
            whole = self.distributions != "none" or self.calibrator == "protected"
            require_support(self.support, self.grid, used=whole)
        self._require_coverage()
        require_unlabelled(self)
        require_learn_after(self)

    def _require_coverage(self) -> None:
        named = (self.task, self.calibrator)
        if self.coverage is not None and named != ("regression", "protected"):
            of = "a regression with calibrator = 'protected'"
            msg = f"coverage={shown(self.coverage)} is for {of}; leave it out"
            raise ParameterError(msg)

    def _keep_tolerance(self) -> None:
        given = self.tolerance
        if type(given) not in {int, float} or not 1.0 <= given < math.inf:
            msg = f"tolerance={shown(given)} is not a ratio of odds, a number of at least 1"
            raise ParameterError(msg)
        msgspec.structs.force_setattr(self, "tolerance", float(given))

    def _require_protection(self) -> None:
        """Check that there is a support, and no grid."""
        of = shown(self.calibrator)
        if not self.support:
            msg = f"calibrator={of} needs the ends of all labels; set support = (lowest, highest)"
            raise ParameterError(msg)
        if self.grid:
            msg = f"grid={shown(self.grid)} is not for {of}; leave it out"
            raise ParameterError(msg)

    def _keep(self, name: str, read: Callable[[Any], str | float], what: str) -> None:
        """Convert a list to a tuple, as a snapshot has it."""
        given = getattr(self, name)
        values: Any = None if isinstance(given, str) else given  # a string can be iterated over too
        try:
            kept = tuple(map(read, values))
        except (TypeError, ValueError, OverflowError):
            msg = f"{name}={shown(given)} is not a list of {what}"
            raise ParameterError(msg) from None
        msgspec.structs.force_setattr(self, name, kept)

"""Settings of a processor: all that shapes its state.

Processors with equal settings that take the same events have the same state. A snapshot has the
settings, and is restored only with equal ones, except for those of validation.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from abers import registry
from abers.calibration.sets import ALL
from abers.exceptions import ParameterError
from abers.stream.option import (
    LARGEST_TIME,
    Option,
    OptionValues,
    attributes,
    count,
    declared,
    found_by,
    read_all,
    share,
    shown,
    span,
)
from abers.stream.setting_rules import (
    QUANTILES,
    RULES,
    ascend,
    calibrator_of,
    has_raw_view,
    is_protected,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from abers.stream.option import Problem

__all__ = [
    "CALIBRATORS",
    "DISTRIBUTIONS",
    "LARGEST_TIME",
    "OF_VALIDATION",
    "QUANTILES",
    "CalibrationSettings",
    "Settings",
    "ascend",
    "require_none",
    "setting_options",
]

_MOST_FOLDS = 100


class CalibrationSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The task, the calibrator and the learner; a part of `abers.stream.Settings`."""

    task: Annotated[
        Literal["binary", "multiclass", "regression"],
        Option(
            "task.kind",
            "What is predicted: the probability of label 1, those of several classes, or the "
            "distribution of a number.",
            'It is "binary", "multiclass" or "regression".',
            flag="--task",
            metavar="TASK",
            group="Input",
        ),
    ] = "binary"
    classes: Annotated[
        tuple[str, ...],
        Option("task.classes", 'The classes of a multiclass task, such as ["cat", "dog", "owl"].'),
    ] = ()
    quantiles: Annotated[
        tuple[float, ...],
        Option("task.quantiles", "Levels of the quantiles that a regression predicts, ascending."),
    ] = QUANTILES
    grid: Annotated[
        tuple[float, ...],
        Option(
            "calibrator.grid",
            'Values of the label at which "ivapr" computes the distribution, such as [10, 20, 50].',
            "A prediction then takes microseconds for each. If empty, the distribution is "
            "computed everywhere, at a cost that grows with the labels.",
        ),
    ] = ()
    distributions: Annotated[
        Literal["none", "scored", "full"],
        Option(
            "calibrator.distributions",
            "How much of the whole distributions of a regression is written, besides their "
            "quantiles.",
            '"scored" adds the mean to each prediction and scores it by its CRPS. "full" also '
            "writes the whole band with each prediction. Each pending observation then keeps its "
            "distribution, so bound them by `calibrator.window` or by `limits.max_pending`.",
            flag="--distributions",
            group="Calibrator",
        ),
    ] = "none"
    support: Annotated[
        tuple[float, ...],
        Option(
            "calibrator.support",
            "The two ends between which all labels lie.",
            "For example [0, 100]. The mean and the CRPS put the masses beyond the labels seen "
            "there; a label outside is a bad record. If empty, these are the smallest and the "
            "largest label kept. "
            '"protected" needs them; the closer they are, the stronger its promise.',
            flag="--support",
            metavar="LOW HIGH",
            group="Calibrator",
        ),
    ] = ()
    calibrator: Annotated[
        str | None,
        Option(
            "calibrator.kind",
            "The calibrator; the first of each task is the default.",
            'For a binary task "ivap", which returns the Venn-Abers interval, or "cvap", which '
            'does so by folds; for comparison also "platt", "isotonic", "dir" (direct isotonic '
            'regression) and "beta", which return one probability ("beta" needs probabilities). '
            'For several classes "one-vs-rest" or "one-vs-one". "protected" is "ivap" or '
            '"one-vs-rest" with protected probabilities, and "protected-cvap" "cvap" with them. '
            '"none" serves probabilities, of two classes or several, as they are: nothing is '
            'learned, and only monitors and tests run. For a regression "ivapr", or "protected", '
            "which needs `calibrator.support`. A class of your own is named by its import path, "
            '"package.module:Class".',
            flag="--calibrator",
            metavar="NAME",
            group="Calibrator",
            example="platt",
        ),
    ] = None
    probability: Annotated[
        Literal["protected", "merged"] | None,
        Option(
            "calibrator.probability",
            "Which probability is predicted with the interval.",
            'The loss of "protected" exceeds that of the score by at most a bounded amount, under '
            "drift and late labels, and it "
            'may lie outside the interval; "merged" is made of the interval alone. Default: '
            '"protected" for "ivap" and "cvap" if scores are probabilities or logits, and for '
            '"one-vs-rest" if they are probabilities of at most 100 classes; else "merged".',
            flag="--probability",
            group="Calibrator",
            example="merged",
        ),
    ] = None
    raw_weight: Annotated[
        float,
        share(
            "calibrator.raw_weight",
            "Weight of the score in the protected probability at first, between 0 and 1.",
            "A larger one lowers the bound on the loss above that of the score, and raises those "
            "against the calibrators. Of K scores it is the weight of their median.",
        ),
    ] = 0.25
    base_weight: Annotated[
        float,
        share(
            "calibrator.base_weight",
            'Weight of the base in the distribution of "protected" at first, between 0 and 1.',
            "A larger one lowers the bound on the loss above that of the base, and raises those "
            "against the other methods.",
        ),
    ] = 0.5
    coverage: Annotated[
        float | None,
        share(
            "calibrator.coverage",
            "Share of labels that one more interval of each prediction is to cover.",
            'It is between 0 and 1, and only for a regression. With "ivapr" it is the interval of '
            "the band, and the share is at least this by theorem, with a fixed model and a stream "
            'that does not move; with "protected" a bound on the coverage holds on any stream, and '
            "where labels are late it costs some width. Default: no such interval.",
            flag="--coverage",
            metavar="LEVEL",
            group="Calibrator",
            example=0.8,
        ),
    ] = None
    folds: Annotated[
        int,
        Option(
            "calibrator.folds",
            'Number of folds of "cvap".',
            "Each fold has a copy of the learner that never learns the fold. Without a learner a "
            "score is one number for all folds, or a list with one number from each model.",
            least=2,
            most=_MOST_FOLDS,
        ),
    ] = 5
    label_rates: Annotated[
        tuple[float, ...],
        Option(
            "calibrator.label_rates",
            "Shares of the labels of class 0, and of class 1, that ever come.",
            "With [0.5, 1] one in two labels of class 0 never comes, and each of class 1 does. "
            "Predictions then are about all observations, and not about those with labels; tests, "
            "verdicts and scores compare what they say of observations with labels. It is for the "
            'calibrator "ivap" with merged probabilities. Labels are learned when they come; if '
            "those of one class come later, set `limits.learn_after` to an age by which all have.",
            flag="--label-rates",
            metavar="OF_0 OF_1",
            group="Calibrator",
            example=[0.5, 1.0],
        ),
    ] = ALL
    scores: Annotated[
        Literal["any", "probability", "logit"],
        Option(
            "task.scores",
            "Kind of the scores.",
            '"probability" refuses a score outside [0, 1], and with several classes those that do '
            "not sum to 1, and compares the raw probabilities with the calibrated ones. "
            '"logit" and "any" accept every finite number; logits are compared too.',
            flag="--scores",
            group="Input",
        ),
    ] = "any"
    window: Annotated[
        int | None,
        count(
            "calibrator.window",
            "Number of the newest labels that are kept.",
            "A calibrator forgets by at most one of `calibrator.window`, `calibrator.max_age` and "
            '`calibrator.half_life`, and "protected" numbers by a window alone. By default these '
            "keep 5,000 labels, and all others every label.",
            flag="--window",
            metavar="N",
            group="Calibrator",
            example=100_000,
        ),
    ] = None
    max_age: Annotated[
        int | None,
        span(
            "calibrator.max_age",
            "Age beyond which a label is forgotten, counted from its observation.",
            least=1,
            flag="--max-age",
            metavar="SPAN",
            group="Calibrator",
            example="30d",
        ),
    ] = None
    half_life: Annotated[
        int | None,
        span(
            "calibrator.half_life",
            "Time in which the weight of a label halves.",
            least=1,
            flag="--half-life",
            metavar="SPAN",
            group="Calibrator",
            example="7d",
        ),
    ] = None
    learner: Annotated[
        str | None,
        Option(
            "learner.name",
            "The learner that scores the features and learns from each label.",
            '"bayes", "forest", "logistic" (two classes only), "softmax", "tree", or the full name '
            'of a river classifier. For a regression "forest", "linear", "tree", or the full name '
            'of a river regressor. Default: "logistic", "softmax" for several classes, "linear" '
            "for a regression.",
            flag="--learner",
            metavar="NAME",
            group="Input",
            example="logistic",
        ),
    ] = None


CALIBRATORS = {task: registry.names(task) for task in ("binary", "multiclass", "regression")}
"""Names of calibrators by task, the default first."""
DISTRIBUTIONS = ("none", "scored", "full")
"""Uses of whole distributions, the default first."""

OF_VALIDATION = ("max_models", "retire_after", "max_id_bytes", "max_name_bytes")
"""Settings that decide which events are valid, and which models are retired. They may change as
long as the state fits, since journal entries have their results."""

_PARTS = 10  # of the shortest span: one wrong time ages entries by no more
_DAY = 24 * 3_600_000


class Settings(CalibrationSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The task, the calibrators, and the limits of a processor; times in milliseconds.

    Its options are declared here alone: configurations, flags, their checks and their
    documentation are made from these declarations.
    """

    label_timeout: Annotated[
        int,
        span(
            "limits.label_timeout",
            "How long an observation waits for its label, and a label for its observation.",
        ),
    ] = 7 * _DAY
    unlabelled: Annotated[
        int | str | None,
        Option(
            "input.unlabelled",
            "The label of an observation without its own within `limits.label_timeout`.",
            "It is learned once, at the time of the observation plus `limits.label_timeout`; a "
            "label that comes later is not learned, and its outcome is marked late. By default "
            "the observation is dropped.",
        ),
    ] = None
    learn_after: Annotated[
        int | None,
        span(
            "limits.learn_after",
            "How old an observation is when its label is learned, even if that came earlier.",
            "With Venn-Abers calibrators other than one-vs-one, for those who know how late labels "
            "are. By default labels are learned in the order of predictions where the "
            "delays seen tell the label, where a label is assumed when the wait is over, and with "
            "`calibrator.label_rates` when they come.",
            example="30d",
        ),
    ] = None
    allowed_lateness: Annotated[
        int,
        span(
            "limits.allowed_lateness",
            "How far an event may be behind the latest one without counting as late.",
            "Expiry waits this much longer.",
        ),
    ] = 0
    max_clock_skew: Annotated[
        int,
        span(
            "limits.max_clock_skew",
            "How far an event may be ahead of the time at which its record was written or "
            "arrived, if that is known.",
            "Further ahead, it is a bad record.",
        ),
    ] = 300_000
    max_jump: Annotated[
        int | None,
        span(
            "limits.max_jump",
            "How far one event alone moves the clock of its model, unless events are rarer.",
            "Further, three events with different ids must agree. Default: a tenth of the shortest "
            "of `limits.label_timeout`, `limits.dedup_ttl`, `calibrator.max_age` and "
            "`calibrator.half_life`.",
            example="1h",
        ),
    ] = None
    dedup_ttl: Annotated[
        int | None,
        span(
            "limits.dedup_ttl",
            "How long a finished id is remembered, in addition to `limits.allowed_lateness`, to "
            "recognize duplicates.",
            "Default: `limits.label_timeout`.",
            example="1d",
        ),
    ] = None
    dedup_max_ids: Annotated[
        int,
        count(
            "limits.dedup_max_ids",
            "Maximum number of finished ids of a model that are remembered.",
            least=0,
        ),
    ] = 1_000_000
    max_pending: Annotated[
        int,
        count(
            "limits.max_pending",
            "Maximum number of pending observations of a model; beyond that its oldest is evicted.",
        ),
    ] = 1_000_000
    max_early: Annotated[
        int,
        count(
            "limits.max_early",
            "Maximum number of labels of a model that wait for observations; beyond that its "
            "oldest is a bad record.",
        ),
    ] = 100_000
    max_bytes: Annotated[
        int,
        Option(
            "limits.max_bytes",
            "Maximum bytes of pending observations and labels, and of finished ids, of all models "
            "together.",
            "An observation counts 180 and anything else 110, with ids, features, and what "
            "protected predictions keep until their labels come. Beyond that the oldest finished "
            "ids of all models are dropped first, then labels, then observations. Labels that came "
            "and wait for earlier ones may take as many bytes again for each model.",
            least=0,
            most=LARGEST_TIME,
        ),
    ] = 1 << 29
    max_models: Annotated[
        int,
        count(
            "limits.max_models",
            "Maximum number of models, and of pairs of model and segment; an event of one more is "
            "a bad record.",
            "It may be raised on an existing state.",
        ),
    ] = 1_000
    retire_after: Annotated[
        int | None,
        span(
            "limits.retire_after",
            "How long a model is silent before it may be retired, by the clocks of the other "
            "models.",
            "Default: never. When there are `limits.max_models`, or as many pairs, all models "
            "silent for longer are removed, with all that they learned. Labels that wait for their "
            "observations are then bad records. It may be changed on an existing state.",
            example="30d",
        ),
    ] = None
    max_id_bytes: Annotated[
        int,
        count(
            "limits.max_id_bytes",
            "Maximum bytes of an id, in UTF-8; an event with a longer one is a bad record.",
            "It may be raised on an existing state.",
        ),
    ] = 256
    max_name_bytes: Annotated[
        int,
        count(
            "limits.max_name_bytes",
            "Maximum bytes of a model, a segment or a class, in UTF-8; an event with a longer one "
            "is a bad record.",
            "It may be raised on an existing state.",
        ),
    ] = 256
    monitors: Annotated[
        bool,
        Option("monitoring.enabled", "Whether each prediction is scored when its label arrives."),
    ] = True
    tests: Annotated[
        bool,
        Option(
            "monitoring.tests",
            "Whether sequential tests run on the predictions, and raise an alarm when these are "
            "off by more than the tolerance.",
            "Without monitors there are no tests.",
        ),
    ] = True
    grace_period: Annotated[
        int,
        count(
            "monitoring.grace_period",
            "Number of labels that a calibrator must have learned before its predictions are "
            "tested.",
            "Early predictions are not calibrated.",
            least=0,
        ),
    ] = 200
    tolerance: Annotated[
        float,
        Option(
            "monitoring.tolerance",
            "Ratio of odds by which predictions may be off without an alarm, at least 1.",
            "With 1.25, 0.5 may stand for 0.444 to 0.556, and 0.005 for 0.004 to 0.00625. The raw "
            "scores, where they are probabilities, and the calibrated ones are tested apart, and "
            "both raise alarms.",
            least=1.0,
            most=1000.0,
        ),
    ] = 1.25
    average_run_length: Annotated[
        int,
        count(
            "monitoring.average_run_length",
            "Number of labelled observations between two false alarms of a view: at least this "
            "many, on average.",
            least=2,
        ),
    ] = 1_000_000
    average_run_time: Annotated[
        int | None,
        span(
            "monitoring.average_run_length",
            "Mean event time between two false alarms of a view, at least, instead of a number.",
            least=1,
            example="30d",
        ),
    ] = None
    cooldown: Annotated[
        int,
        count(
            "monitoring.cooldown",
            "Number of labelled observations without evidence of a change after which an alarm is "
            "over, and the next is a new one.",
        ),
    ] = 10_000

    def __post_init__(self) -> None:
        """Refuse settings that are out of range, or do not fit together."""
        given = msgspec.structs.asdict(self)
        read, problems = read_all(setting_options(), given)
        values = OptionValues(setting_options(), read, given)
        require_none([*problems, *found_by(RULES, values)])
        for name, value in read.items():
            if value is not given[name]:  # a list, which a snapshot has as a tuple
                msgspec.structs.force_setattr(self, name, value)

    def values(self) -> OptionValues:
        """Return the settings for further rules."""
        given = msgspec.structs.asdict(self)
        return OptionValues(setting_options(), given, given)

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
        if self.learn_after is None and self.label_rates != ALL:
            return 0  # in the order of predictions they would wait for those that never come
        return self.learn_after

    @property
    def protected(self) -> bool:
        """Whether the probability is protected."""
        return is_protected(self)

    @property
    def has_raw_view(self) -> bool:
        """Whether scores say probabilities: as they are, or as the logits of label 1."""
        return has_raw_view(self)

    @property
    def views(self) -> tuple[str, ...]:
        """Views that are tested: "raw" probabilities, and "calibrated" unless those are served."""
        if not self.has_raw_view:
            return ("calibrated",)
        return ("raw",) if self.calibrator_name == registry.NONE else ("raw", "calibrated")

    @property
    def calibrator_name(self) -> str:
        """Name of the calibrator that predicts: the protected form if the probability is."""
        return calibrator_of(self)


@cache
def setting_options() -> Mapping[str, Option]:
    """Return the options of `Settings` by name."""
    return declared(Settings)


def require_none(problems: Iterable[Problem]) -> None:
    """Raise a ParameterError for mistakes, in the words of a call."""
    if found := [shown(one, "python") for one in problems]:
        raise ParameterError("\n".join(found))


Settings.__doc__ = (
    f"{inspect.cleandoc(Settings.__doc__ or '')}\n\n{attributes(setting_options())}\n"
)

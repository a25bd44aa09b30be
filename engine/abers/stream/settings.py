"""Settings of a processor: all that shapes its state.

Processors with equal settings that take the same events have the same state. A snapshot has the
settings, and is restored only with equal ones, except for those of validation.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Annotated

import msgspec

from abers import registry
from abers.calibration.label_rates import ALL
from abers.exceptions import ParameterError
from abers.stream.calibration_settings import CalibrationSettings
from abers.stream.declarations import LARGEST_TIME, count, span
from abers.stream.option import Option, attributes, declared, shown
from abers.stream.option_values import OptionValues, found_by, read_all
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
    "PROBABILITIES",
    "QUANTILES",
    "Settings",
    "ascend",
    "require_none",
    "setting_options",
]

CALIBRATORS = {task: registry.names(task) for task in ("binary", "multiclass", "regression")}
"""Names of calibrators by task, the default first."""
DISTRIBUTIONS = ("none", "scored", "full")
"""Uses of whole distributions, the default first."""
PROBABILITIES = ("protected", "merged")
"""Ways to make one probability of an interval and a score."""

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
            "Whether sequential tests run on the predictions, and raise an alarm when they become "
            "miscalibrated.",
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

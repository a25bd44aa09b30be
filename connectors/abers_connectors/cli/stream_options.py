"""Options of `abers replay` and `abers report` about a stream and its labels."""

from __future__ import annotations

from typing import Annotated, Literal

from abers_connectors.cli.options import calibrator_option, input_option, time_option

__all__ = [
    "DelayOption",
    "ProbabilityOption",
    "ScoresOption",
    "SinceOption",
    "TaskOption",
    "UntilOption",
]

TaskOption = Annotated[
    str | None,
    input_option(
        "TASK",
        "Task of a file, from its labels: binary (0 or 1, the default), multiclass (see --score), "
        "regression (numbers).",
    ),
]
ScoresOption = Annotated[
    Literal["any", "probability", "logit", "percent"] | None,
    input_option(
        None,
        "Kind of the scores in a file (default probability if they lie in [0, 1], else any). "
        "Percentages become probabilities as they are read.",
        show_default=False,
    ),
]
ProbabilityOption = Annotated[
    Literal["protected", "merged"] | None,
    calibrator_option(
        None,
        "What ivap, cvap and one-vs-rest predict. protected: a probability with a loss above that "
        "of the score by at most a bounded amount (default if scores are probabilities; for ivap "
        "and cvap also if they are logits). merged: one computed from the interval alone.",
        show_default=False,
    ),
]
DelayOption = Annotated[
    str | None,
    time_option(
        "DELAY",
        "Release a label after N further observations of its model (default 50), or after a "
        'duration of event time such as "6h" or "7d". A column of label times needs none.',
    ),
]
SinceOption = Annotated[
    str | None,
    time_option("TIME", "Skip earlier events: RFC 3339 or milliseconds, for topics also @OFFSET."),
]
UntilOption = Annotated[str | None, time_option("TIME", "Skip events at this time or later.")]

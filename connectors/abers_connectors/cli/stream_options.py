"""Options of `abers replay` and `abers report` about a stream and its labels."""

from __future__ import annotations

from typing import Annotated, Literal

from abers_connectors.cli.options import declared_option, time_option

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
    declared_option("--task", more="binary (default), multiclass (see --score) or regression."),
]
ScoresOption = Annotated[
    Literal["any", "probability", "logit", "percent"] | None,
    declared_option(
        "--scores",
        more="Of a file they are probabilities by default if they lie in [0, 1], else any. "
        "Percentages become probabilities as they are read.",
        show_default=False,
    ),
]
ProbabilityOption = Annotated[
    Literal["protected", "merged"] | None,
    declared_option(
        "--probability",
        more="protected: a probability with a loss above that of the score by at most a bounded "
        "amount (default if scores are probabilities; for ivap and cvap also if they are logits). "
        "merged: one computed from the interval alone.",
        show_default=False,
    ),
]
DelayOption = Annotated[
    str | None,
    declared_option(
        "--delay",
        more='N further observations of its model (default 50), or a duration such as "6h" or "7d" '
        "of event time. A column of label times needs none.",
    ),
]
SinceOption = Annotated[
    str | None,
    time_option("TIME", "Skip earlier events: RFC 3339 or milliseconds, for topics also @OFFSET."),
]
UntilOption = Annotated[str | None, time_option("TIME", "Skip events at this time or later.")]

"""Options of `abers replay`, and what can be checked of them before anything is opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from abers.exceptions import ParameterError
from abers_connectors.config.layers import Layers
from abers_connectors.config.units import milliseconds
from abers_connectors.config.value_types import Lateness

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "Period",
    "ReplayOptions",
    "given",
    "has_topics",
    "lateness",
    "report_format",
    "require_in_file",
]

Period: TypeAlias = tuple[int, int]
"""First event time in milliseconds, and the first one after it."""

_DELAY = Lateness(observations=50)


class ReplayOptions(NamedTuple):
    """Options of the command, by their names; None where one was not given."""

    stream: str
    delay: str | None = None
    output: str | None = None
    learner: str | None = None
    columns: Mapping[str, str | None] = {}  # of a file, by field
    scores: str | None = None
    task: str | None = None
    positive: Sequence[str] = ()  # labels that mean 1
    timezone: str | None = None
    calibrator: str | None = None
    probability: str | None = None
    distributions: bool = False
    support: tuple[float, float] | None = None
    coverage: float | None = None
    forgetting: Mapping[str, int | str | None] = {}  # at most one of window, max_age, half_life
    from_: str | None = None
    since: str | None = None
    until: str | None = None
    models: Sequence[str] = ()  # models to read; all if empty
    speed: str = "max"
    compare: str | None = None
    report: str | None = None
    reference: str | None = None
    live: bool = False
    save_state: str | None = None
    workers: int = 1  # processes

    @property
    def configured(self) -> bool:
        """Whether the stream is a configuration."""
        return Path(self.stream).suffix == ".toml"

    @property
    def lateness(self) -> Lateness:
        """Delay of labels that have no times of their own, without a configuration."""
        return _DELAY if self.delay is None else lateness(self.delay)


def lateness(text: str, option: str = "--delay") -> Lateness:
    """Read the delay of labels that an option has: a number of observations, or a duration.

    >>> lateness("500"), lateness("6h")
    (Lateness(observations=500, span=None), Lateness(observations=None, span=21600000))
    """
    if text.isdecimal() and text.isascii():
        return Lateness(observations=int(text))
    if (span := milliseconds(text)) is None:
        msg = f'{option} {text}: write a number of observations, or a duration such as "6h" or "7d"'
        if option == "--delays":
            msg += ", and commas between several"
        raise ParameterError(msg)
    return Lateness(span=span)


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def has_topics(options: ReplayOptions) -> bool:
    """Return whether the options name a configuration that reads topics."""
    return options.configured and "kafka" in Layers.read(options.stream, os.environ, {}).values


def report_format(path: str) -> str:
    """Return the format of a report, "html" or "json", by its suffix; or raise a ParameterError."""
    suffix = Path(path).suffix.lower()
    if suffix not in {".html", ".json"}:
        msg = f"--report {path}: name a file that ends in .html, for a page, or .json, for numbers"
        raise ParameterError(msg)
    return suffix[1:]


def require_in_file(options: ReplayOptions) -> None:
    """Raise a ParameterError for options that belong into the configuration."""
    misplaced = {
        "delay": options.delay,
        "learner": options.learner,
        "scores": options.scores,
        "task": options.task,
        "positive": options.positive or None,
        "timezone": options.timezone,
        "calibrator": options.calibrator,
        "probability": options.probability,
        "distributions": options.distributions or None,
        "support": options.support,
        "coverage": options.coverage,
        **options.columns,
        **options.forgetting,
    }
    for name in given(misplaced):
        option = name.replace("_", "-")
        msg = f"--{option} does not go with a configuration; write it into {options.stream}"
        raise ParameterError(msg)

"""Options of `abers replay`, and what can be checked of them before anything is opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from abers.exceptions import ParameterError
from abers_connectors.config.layers import Layers

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Period", "ReplayOptions", "given", "has_topics", "report_format", "require_in_file"]

Period: TypeAlias = tuple[int, int]
"""First event time in milliseconds, and the first one after it."""

_DELAY = 50  # observations


class ReplayOptions(NamedTuple):
    """Options of the command, by their names; None where one was not given."""

    stream: str
    delay: int | None = None
    output: str | None = None
    learner: str | None = None
    columns: Mapping[str, str | None] = {}  # of a file, by field
    scores: str | None = None
    task: str | None = None
    calibrator: str | None = None
    probability: str | None = None
    distributions: bool = False
    support: tuple[float, float] | None = None
    forgetting: Mapping[str, int | str | None] = {}  # at most one of window, max_age, half_life
    from_: str | None = None
    since: str | None = None
    until: str | None = None
    speed: str = "max"
    compare: str | None = None
    report: str | None = None
    reference: str | None = None
    live: bool = False
    save_state: str | None = None

    @property
    def configured(self) -> bool:
        """Whether the stream is a configuration."""
        return Path(self.stream).suffix == ".toml"

    @property
    def label_delay(self) -> int:
        """Number of further observations before a label is released, without a configuration."""
        return _DELAY if self.delay is None else self.delay


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
        "calibrator": options.calibrator,
        "probability": options.probability,
        "distributions": options.distributions or None,
        "support": options.support,
        **options.columns,
        **options.forgetting,
    }
    for name in given(misplaced):
        option = name.replace("_", "-")
        msg = f"--{option} does not go with a configuration; write it into {options.stream}"
        raise ParameterError(msg)

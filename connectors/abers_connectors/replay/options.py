"""Options of `abers replay`.

An option that a configuration has a key for has this key's value: it beats the environment, which
beats the file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from abers.exceptions import ParameterError
from abers_connectors.config.layers import Layers
from abers_connectors.config.values import Lateness, milliseconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "Period",
    "ReplayOptions",
    "arguments",
    "csv_of",
    "flag_of",
    "given",
    "has_topics",
    "keys_of",
    "lateness",
    "report_format",
]

Period: TypeAlias = tuple[int, int]
"""First event time in milliseconds, and the first one after it."""

_DELAY = Lateness(observations=50)
_COLUMN_FLAGS = {"model": "model-column", "segment": "segment-column"}
_CHARACTERS = {"delimiter": (",", ";", "|", "\t"), "decimal": (".", ",")}
_NAMES = {"\t": "tab"}
_DESCRIBED = (
    *("task", "scores", "timezone", "learner", "delimiter", "decimal", "calibrator"),
    *("probability", "support", "label_rates", "coverage", "since", "until"),
)
_TABS = {"\\t": "\t", "tab": "\t"}  # as a shell passes them


class ReplayOptions(NamedTuple):
    """Options of the command, by their names; None where one was not given."""

    stream: str
    delay: str | None = None
    output: str | None = None
    learner: str | None = None
    columns: Mapping[str, str | None] = {}  # of a file, by field
    labels: str | None = None  # a second file
    delimiter: str | None = None
    decimal: str | None = None
    scores: str | None = None
    task: str | None = None
    positive: Sequence[str] = ()  # labels that mean 1
    timezone: str | None = None
    calibrator: str | None = None
    probability: str | None = None
    distributions: bool = False
    support: tuple[str, str] | None = None
    label_rates: tuple[str, str] | None = None
    coverage: str | None = None
    forgetting: Mapping[str, str | None] = {}  # at most one of window, max_age, half_life
    from_: str | None = None
    since: str | None = None
    until: str | None = None
    models: Sequence[str] = ()  # to read; all if empty
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
    def percent(self) -> bool:
        """Whether scores are percentages."""
        return self.scores == "percent"

    @property
    def score(self) -> str | dict[str, str] | None:
        """Column of the scores, or columns by class, as in "low=p_low,high=p_high"."""
        text = self.columns.get("score")
        pairs = [one.partition("=") for one in (text or "").split(",")]
        if len(pairs) < 2 or not all(name and column for name, _, column in pairs):  # noqa: PLR2004
            return text
        return {name.strip(): column.strip() for name, _, column in pairs}

    @property
    def kind(self) -> str:
        """Task of a file."""
        return self.task or ("multiclass" if isinstance(self.score, dict) else "binary")

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


def report_format(path: str, option: str = "--report") -> str:
    """Return the format of a report, "html" or "json", by its suffix.

    Another suffix is a ParameterError that names the option.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in {".html", ".json"}:
        msg = f"{option} {path}: name a file that ends in .html, for a page, or .json, for numbers"
        raise ParameterError(msg)
    return suffix[1:]


def flag_of(field: str) -> str:
    """Return the flag that names the column of a field.

    >>> flag_of("label_time"), flag_of("model")
    ('--label-time', '--model-column')
    """
    return f"--{_COLUMN_FLAGS.get(field, field).replace('_', '-')}"


def keys_of(options: ReplayOptions) -> dict[str, Any]:
    """Return the values that options have for the keys of a configuration, by dotted path.

    >>> keys_of(ReplayOptions("a.toml", timezone="UTC", forgetting={"window": "9"}))
    {'input.timezone': 'UTC', 'calibrator.window': 9}
    """
    classes = options.score if isinstance(options.score, dict) else {}
    delimiter = options.delimiter
    compared = "merged" if options.compare and options.label_rates else None  # as a table has them
    found = {
        "task.kind": options.task or ("multiclass" if classes else None),
        "task.classes": [*classes] or None,
        "task.scores": "probability" if options.percent else options.scores,
        "learner.name": options.learner,
        "input.percent": options.percent or None,
        "input.labels": options.labels,
        "input.delay": None if options.delay is None else options.lateness,
        "input.pos_label": options.positive or None,
        "input.timezone": options.timezone,
        "input.delimiter": delimiter and _TABS.get(delimiter, delimiter),
        "input.decimal": options.decimal,
        **{f"input.fields.{one}": column for one, column in options.columns.items()},
        "input.fields.score": options.score,
        "calibrator.kind": options.calibrator,
        "calibrator.probability": options.probability or compared,
        "calibrator.distributions": "full" if options.distributions else None,
        "calibrator.support": options.support and [*map(_number, options.support)],
        "calibrator.label_rates": options.label_rates and [*map(_number, options.label_rates)],
        "calibrator.coverage": options.coverage and _number(options.coverage),
        **{f"calibrator.{one}": _number(text) for one, text in given(options.forgetting).items()},
    }
    return given(found)


def csv_of(options: ReplayOptions) -> dict[str, Any]:
    """Return how CSV is read, as a source takes it; a ParameterError if no CSV is like that."""
    keys = keys_of(options)
    for one, allowed in _CHARACTERS.items():
        value = keys.get(f"input.{one}", allowed[0])
        if value not in allowed:
            names = ", ".join(f'"{_NAMES.get(name, name)}"' for name in allowed)
            msg = f"--{one} {value}: write one of {names}"
            raise ParameterError(msg)
    return {one: keys[f"input.{one}"] for one in ("delimiter", "decimal") if f"input.{one}" in keys}


def arguments(options: ReplayOptions) -> list[str]:
    """Return the arguments that describe the input and the calibrator of a replay.

    >>> arguments(ReplayOptions("a.csv", columns={"score": "p"}, positive=["yes"]))
    ['a.csv', '--score', 'p', '--positive', 'yes']
    >>> arguments(ReplayOptions("a.csv", label_rates=("0.5", "1"), forgetting={"max_age": "7d"}))
    ['a.csv', '--label-rates', '0.5', '1', '--max-age', '7d']
    """
    named = {
        "labels": options.labels,
        **{flag_of(one)[2:]: column for one, column in options.columns.items()},
        **{one: getattr(options, one) for one in _DESCRIBED},
        **options.forgetting,
    }
    repeated = {"positive": options.positive, "model": options.models}
    pairs = [
        *given(named).items(),
        *((name, one) for name, many in repeated.items() for one in many),
    ]
    flags = ["--distributions"] if options.distributions else []
    return [options.stream, *(word for name, one in pairs for word in _words(name, one)), *flags]


def _words(name: str, value: str | Sequence[str]) -> list[str]:
    """Return an option and its values, as a command line has them."""
    return [f"--{name.replace('_', '-')}", *([value] if isinstance(value, str) else value)]


def _number(text: str) -> float | str:
    """Return a number that a flag has; all else as it was written."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text

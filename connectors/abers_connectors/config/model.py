"""The configuration of a stream processor.

A flag beats the environment, which beats the file, which beats the default. All mistakes are
reported at once. deploy/abers.example.toml explains every key.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast
from zoneinfo import ZoneInfo

import msgspec

from abers.exceptions import ConfigError
from abers.learners.river_adapters import USUAL
from abers.stream.cells import BadRecordError, Fields
from abers.stream.option import Front, Option, OptionValues, Problem, shown
from abers.stream.schema_columns import Readers
from abers.stream.settings import Settings, setting_options
from abers.stream.times import TimeReader
from abers_connectors.config import sections
from abers_connectors.config.layers import (
    OF_SETTINGS,
    SECTIONS,
    Keys,
    Layers,
    LocatedProblem,
    OptionsError,
    RawValues,
    dotted,
    options,
    read_sections,
    unread_variables,
)
from abers_connectors.config.rules import conflicts, label_reader
from abers_connectors.config.values import DROP, Section, milliseconds, section_options
from abers_connectors.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers.stream.schema_columns import Kind

__all__ = ["Config", "load"]

_KEY = "input.unlabelled"


def setting_values(settings: Mapping[str, Any], raw: RawValues) -> OptionValues:
    """Return the settings that could be read, and as they were given, for rules."""
    given = {name: raw.get(one.key) for name, one in setting_options().items()}
    written = {name: value for name, value in given.items() if value is not None}
    return OptionValues(setting_options(), settings, written)


def read_settings(found: Mapping[str, Any], raw: RawValues) -> dict[str, Any]:
    """Return the settings that could be read; those that are not given have their default."""
    usual = setting_options()
    values = {
        name: found.get(key, usual[name].default)
        for key, name in OF_SETTINGS.items()
        if key in found or raw.get(key) is None
    }
    return values | _run_length(values) | _learner(values, raw) | _unlabelled(found, raw)


def _run_length(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the average run length as the processor has it: a number, or a time."""
    length = values.get("average_run_length")
    if not isinstance(length, str):
        return {"average_run_time": None}
    usual = setting_options()["average_run_length"].default
    return {"average_run_length": usual, "average_run_time": milliseconds(length)}


def _learner(values: Mapping[str, Any], raw: RawValues) -> dict[str, Any]:
    """Return the learner: in a section without a name it is the usual one of the task."""
    named = values.get("learner")
    if raw.get("learner") is None or named is not None or "task" not in values:
        return {}
    return {"learner": USUAL[values["task"]]}


def _unlabelled(found: Mapping[str, Any], raw: RawValues) -> dict[str, Any]:
    """Return the label that is assumed, read as the task has labels; nothing if it cannot be."""
    given, kind = raw.get(_KEY), found.get("task.kind", "binary")
    if given is None or given == DROP:
        return {"unlabelled": None}
    if _KEY not in found:
        return {}
    if kind == "regression":
        return {"unlabelled": given}
    try:
        read = label_reader(raw, kind)
        return {} if read is None else {"unlabelled": read.one(given)}
    except BadRecordError:
        return {}


class Config(Section, frozen=True, kw_only=True):
    """A whole configuration; usually made by `load`.

    >>> Config(input=sections.InputSection(observations="scores.jsonl")).settings().label_timeout
    604800000
    """

    stream: Settings = Settings()
    input: sections.InputSection = sections.InputSection()
    output: sections.OutputSection = sections.OutputSection()
    kafka: sections.KafkaSection | None = None
    schema_registry: sections.SchemaRegistrySection | None = None
    state: sections.StateSection = sections.StateSection()
    http: sections.HttpSection = sections.HttpSection()
    serve: sections.ServeSection | None = None
    alerts: sections.AlertsSection = sections.AlertsSection()
    telemetry: sections.TelemetrySection = sections.TelemetrySection()
    front: Literal["toml", "flag"] = "toml"  # where its user writes options

    def settings(self) -> Settings:
        """Return the settings of the processor, with durations in milliseconds."""
        return self.stream

    def values(self) -> dict[str, Any]:
        """Return the value of each key; those of settings as the processor has them."""
        found = {key: getattr(self.stream, name) for key, name in OF_SETTINGS.items()}
        for path, kind in SECTIONS.items():
            if kind is not None and (section := _at(self, path)) is not None:
                names = section_options(kind, path)
                found |= {f"{path}.{name}": getattr(section, name) for name in names}
        return {key: found[key] for key in options() if key in found}

    @property
    def learns(self) -> bool:
        """Whether a learner scores the features of observations."""
        served = self.serve is not None and self.serve.learner is not None
        return served or self.stream.learner is not None

    @property
    def second_input(self) -> bool:
        """Whether labels come from a file or a topic of their own."""
        return (self.input.labels if self.kafka is None else self.kafka.labels) is not None

    @property
    def finds_models(self) -> bool:
        """Whether routers find the model of a label by its id."""
        return self.input.label_fields.model == sections.OF_OBSERVATION

    @property
    def topic_formats(self) -> tuple[sections.TopicFormat, sections.TopicFormat]:
        """Formats of the records of both inputs, where they are topics."""
        first = cast("sections.TopicFormat", self.input.format or "json")
        return first, self.input.label_format or first

    @property
    def labelled(self) -> bool:
        """Whether each record of the first input is an observation with its label."""
        return self.input.delay is not None or self.input.fields.label_time is not None

    @property
    def first_kind(self) -> Kind:
        """What the records of the first input are."""
        return "labelled" if self.labelled else "mixed" if self.second_input else "log"

    def reads(self) -> Readers:
        """Return how values are read."""
        zone, stream = self.input.timezone, self.stream
        time = TimeReader(None if zone is None else ZoneInfo(zone))
        positive = self.input.pos_label
        of_task = Readers.of(stream.task, stream.classes, stream.calibrator, positive)
        readers = of_task._replace(time=time, front=self.front)
        return readers.in_percent() if self.input.percent else readers

    def fields(self) -> Fields:
        """Return the fields of the first input; a learner finds its features at "x" by default."""
        given = msgspec.structs.asdict(self.input.fields)
        if self.stream.learner is not None and given["x"] is None:
            given["x"] = "x"
        return Fields(**given)

    def label_fields(self) -> Fields:
        """Return the fields of the second input, by default those of the first."""
        given = msgspec.structs.asdict(self.input.label_fields)
        return replace(self.fields(), **{name: one for name, one in given.items() if one})


def _at(config: Config, path: str) -> Any:  # noqa: ANN401 - a section, or None
    found: Any = config
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    front: Literal["toml", "flag"] = "toml",
) -> Config:
    """Read a configuration; a ConfigError lists all mistakes.

    The path is that of a TOML file, or None if flags and environment suffice. Flags are values by
    dotted path, which beat all others: ``{"input.delay": 50}``. In the environment
    ``ABERS_INPUT__DELAY=50`` is the same; a variable without a double underscore is not read, and
    a mistake if it is nearly that of a key.
    With the front "flag" the mistakes in flags are said as the command has these options, and an
    OptionsError if there are no others.

    >>> config = load(flags={"input.observations": "scores.csv", "input.delay": "2d"}, environ={})
    >>> config.input.delay
    Lateness(observations=None, span=172800000)
    """
    layers = Layers.read(path, environ, flags or {})
    found, problems = read_sections(layers.values)
    raw = RawValues(layers.values)
    settings = read_settings(found, raw)
    problems += [
        LocatedProblem(tuple(key.split(".")), text)
        for key, text in conflicts(raw, setting_values(settings, raw))
    ]
    unread = [*map(printable, unread_variables(environ))]
    if lines := [*layers.problems, *(_line(layers, one, front) for one in problems), *unread]:
        of_flags = len(lines) == sum(layers.is_flag(one.path) for one in problems)
        raise (OptionsError if front == "flag" and of_flags else ConfigError)(lines)
    return Config(
        stream=Settings(**settings),
        front="toml" if path is not None else front,
        **{name: _built(name, found) for name in _present(layers.values)},
    )


def _line(layers: Layers, problem: LocatedProblem, front: Front) -> str:
    """Return a mistake as its user writes the option."""
    option = _option(problem.path)
    if front != "flag" or not layers.is_flag(problem.path) or option is None:
        return layers.line(problem)
    text = (problem.text,) if isinstance(problem.text, str) else problem.text
    return printable(shown(Problem(option, text), front))


def _option(path: Keys) -> Option | None:
    """Return the option at a path, or the option that has this part in its value."""
    keys = (dotted(path[:size]) for size in range(len(path), 0, -1))
    return next((options()[key] for key in keys if key in options()), None)


def _present(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sections to make: those that are given, without parts of others."""
    for name, kind in SECTIONS.items():
        if kind is not None and "." not in name and values.get(name) is not None:
            yield name


def _built(path: str, found: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the class of a section
    """Return a section, with the sections in it."""
    kind = cast("type[Section]", SECTIONS[path])
    within = {one.removeprefix(f"{path}."): one for one in SECTIONS if one.startswith(f"{path}.")}
    names = [name for name in section_options(kind, path) if f"{path}.{name}" in found]
    values = {name: found[f"{path}.{name}"] for name in names}
    return kind(**values, **{name: _built(one, found) for name, one in within.items()})

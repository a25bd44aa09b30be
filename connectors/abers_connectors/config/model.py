"""The configuration of a stream processor.

A flag beats the environment, which beats the file, which beats the default. All mistakes are
reported at once. deploy/abers.example.toml explains every key.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

from pydantic import ValidationError, model_validator

from abers.exceptions import ConfigError
from abers.learners.river_adapters import USUAL
from abers.stream.fields import Fields
from abers.stream.schema_columns import Readers
from abers.stream.settings import Settings
from abers.stream.times import TimeReader
from abers_connectors.config import sections
from abers_connectors.config.layers import Layers, LocatedProblem
from abers_connectors.config.problems import problems_of
from abers_connectors.config.rules import conflicts
from abers_connectors.config.value_types import DROP, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Config", "load"]


class Config(Section):
    """A whole configuration; usually made by `load`.

    >>> config = Config(input=sections.InputSection(observations="scores.jsonl"))
    >>> config.settings().label_timeout
    604800000
    """

    task: sections.TaskSection = sections.TaskSection()
    calibrator: sections.CalibratorSection = sections.CalibratorSection()
    learner: sections.LearnerSection | None = None
    input: sections.InputSection = sections.InputSection()
    output: sections.OutputSection = sections.OutputSection()
    kafka: sections.KafkaSection | None = None
    schema_registry: sections.SchemaRegistrySection | None = None
    limits: sections.LimitsSection = sections.LimitsSection()
    state: sections.StateSection = sections.StateSection()
    http: sections.HttpSection = sections.HttpSection()
    monitoring: sections.MonitoringSection = sections.MonitoringSection()
    alerts: sections.AlertsSection = sections.AlertsSection()
    telemetry: sections.TelemetrySection = sections.TelemetrySection()

    @model_validator(mode="after")
    def _agree(self) -> Config:
        """Refuse keys that contradict each other."""
        given = self.model_dump(exclude_unset=True)
        if found := [f"{path}: {text}" for path, text in conflicts(given)]:
            raise ConfigError(found)
        return self

    def settings(self) -> Settings:
        """Return the settings of the processor, with durations in milliseconds."""
        return Settings(
            task=self.task.kind,
            classes=self.task.classes,
            quantiles=self.task.quantiles,
            calibrator=self.calibrator.kind,
            scores=self.task.scores,
            learner=self.learner_name(),
            unlabelled=self.unlabelled,
            monitors=self.monitoring.enabled,
            **self.monitoring.model_dump(exclude={"enabled", "average_run_length"}),
            **self.monitoring.run_length(),
            **self.calibrator.model_dump(exclude={"kind"}),
            **self.limits.model_dump(),
        )

    @property
    def second_input(self) -> bool:
        """Whether labels come from a file or a topic of their own."""
        return (self.input.labels if self.kafka is None else self.kafka.labels) is not None

    @property
    def topic_formats(self) -> tuple[sections.TopicFormat, sections.TopicFormat]:
        """Formats of the records of both inputs, where they are topics."""
        first = cast("sections.TopicFormat", self.input.format or "json")
        return first, self.input.label_format or first

    def learner_name(self) -> str | None:
        """Return the name of the learner, by default the usual one of the task, or None."""
        return (self.learner.name or USUAL[self.task.kind]) if self.learner else None

    @property
    def unlabelled(self) -> Any:  # noqa: ANN401 - as the task has labels
        """The label of an observation whose own does not come; None if it is dropped."""
        given = self.input.unlabelled
        return None if given == DROP else self.reads().label.one(given)

    @property
    def labelled(self) -> bool:
        """Whether each record of the first input is an observation with its label."""
        return self.input.delay is not None or self.input.fields.label_time is not None

    def reads(self) -> Readers:
        """Return how values are read."""
        zone = self.input.timezone
        time = TimeReader(None if zone is None else ZoneInfo(zone))
        task, calibrator = self.task, self.calibrator.kind
        of_task = Readers.of(task.kind, task.classes, calibrator, self.input.pos_label)
        readers = of_task._replace(time=time)
        return readers.in_percent() if self.input.percent else readers

    def fields(self) -> Fields:
        """Return the fields of the first input; a learner finds its features at "x" by default."""
        given = self.input.fields.model_dump()
        if self.learner and given["x"] is None:
            given["x"] = "x"
        return Fields(**given)

    def label_fields(self) -> Fields:
        """Return the fields of the second input, by default those of the first."""
        return replace(self.fields(), **self.input.label_fields.model_dump(exclude_none=True))


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Config:
    """Read a configuration; a ConfigError lists all mistakes.

    The path is that of a TOML file, or None if flags and environment suffice. Flags are values by
    dotted path, which beat all others: ``{"input.delay": 50}``. In the environment
    ``ABERS_INPUT__DELAY=50`` is the same; a variable without a double underscore is not read.

    >>> config = load(flags={"input.observations": "scores.csv", "input.delay": "2d"}, environ={})
    >>> config.input.delay
    Lateness(observations=None, span=172800000)
    """
    layers = Layers.read(path, environ, flags or {})
    found = list(layers.problems)
    try:
        config = Config.model_validate(layers.values)
    except ValidationError as error:
        found += [layers.line(one) for one in problems_of(error, Config)]
    found += [
        layers.line(LocatedProblem(tuple(path.split(".")), text))
        for path, text in conflicts(layers.values)
    ]
    if found:
        raise ConfigError(found)
    return config

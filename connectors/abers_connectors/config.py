"""What a stream processor is told to do, as it stands in a TOML file.

Governing rule: a flag beats the environment, which beats the file, which beats
the default; and all mistakes are told at once. What each key means stands in
deploy/abers.example.toml, and nowhere else.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from abers.exceptions import ConfigError
from abers.learners.river import USUAL
from abers.stream.settings import QUANTILES, Settings
from abers_connectors._config_checks import conflicts, dead_letters_beside
from abers_connectors._config_errors import problems_of
from abers_connectors._config_kafka import Alerts, Http, Kafka, Security
from abers_connectors._config_layers import Layers, dotted
from abers_connectors._config_types import (
    MOST,
    Count,
    Delay,
    Duration,
    Features,
    File,
    LabelValues,
    Name,
    Names,
    Numbers,
    Score,
    Section,
    Span,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.fields import Fields
    from abers_connectors.reads import Reads

__all__ = [
    "Alerts",
    "Calibrator",
    "Config",
    "Http",
    "Input",
    "InputFields",
    "Kafka",
    "LabelFields",
    "Learner",
    "Limits",
    "Monitoring",
    "Output",
    "Security",
    "State",
    "Task",
    "load",
]

Calibrators = Literal[
    "ivap",
    "cvap",
    "platt",
    "isotonic",
    "dir",
    "beta",
    "uncalibrated",
    "one-vs-rest",
    "one-vs-one",
    "ivapr",
]

_SECOND, _DAY = 1000, 86_400_000


class Task(Section):
    """Section [task]: what is predicted."""

    kind: Literal["binary", "multiclass", "regression"] = "binary"
    scores: Literal["any", "probability", "logit"] = "any"
    classes: Names = ()
    quantiles: Numbers = QUANTILES


class Calibrator(Section):
    """Section [calibrator]: which it is, and how it forgets."""

    kind: Calibrators | None = None
    folds: Annotated[int, Field(ge=2, le=100)] = 5
    thresholds: Numbers = ()
    distributions: Literal["none", "judged", "told"] = "none"
    support: Numbers = ()
    window: Count | None = None
    max_age: Span | None = None
    half_life: Span | None = None


class Learner(Section):
    """Section [learner]: what scores the features."""

    name: Name | None = None


class InputFields(Section):
    """Section [input.fields]: which field is what."""

    id: Name = "id"
    time: Name = "time"
    model: Name = "model"
    segment: Name | None = None
    score: Score = "score"
    x: Features | None = None
    label: Name = "label"
    extra: Names = ()


class LabelFields(Section):
    """Section [input.label_fields]: where the fields of the second input differ."""

    id: Name | None = None
    time: Name | None = None
    model: Name | None = None
    label: Name | None = None


class Input(Section):
    """Section [input]: where observations and labels come from."""

    observations: File | None = None
    labels: File | None = None
    format: Literal["csv", "jsonl", "parquet"] | None = None
    delay: Delay | None = None
    positive: LabelValues = ()
    max_record_bytes: Count = 1 << 20
    fields: InputFields = InputFields()
    label_fields: LabelFields = LabelFields()


class Output(Section):
    """Section [output]: where predictions, outcomes and bad records go."""

    predictions: File = "-"
    outcomes: File | None = None
    dead_letters: File | None = None
    on_bad_record: Literal["dead-letter", "stop"] = "dead-letter"
    max_dead_per_1000: Annotated[int, Field(ge=0, le=1000)] = 100

    @property
    def dead_letters_path(self) -> str:
        """Where bad records go: by default beside the predictions."""
        return self.dead_letters or dead_letters_beside(self.predictions)


class Limits(Section):
    """Section [limits]: how long and how much is kept, in milliseconds of event time."""

    label_wait: Duration = 7 * _DAY
    lateness: Duration = 0
    max_ahead: Duration = 300 * _SECOND
    max_jump: Duration | None = None
    dedup_for: Duration | None = None
    dedup_max: Annotated[int, Field(ge=0, le=MOST)] = 1_000_000
    max_pending: Count = 1_000_000
    max_early: Count = 100_000
    max_bytes: Annotated[int, Field(ge=0)] = 1 << 29
    max_models: Count = 1_000
    retire_after: Duration | None = None
    max_id_bytes: Count = 256
    max_name_bytes: Count = 256


class State(Section):
    """Section [state]: what a stopped run goes on from."""

    path: File | None = None
    every: Count = 100_000
    shared: bool = False
    keep: Count = 3


class Monitoring(Section):
    """Section [monitoring]: whether predictions are judged, and bet against."""

    enabled: bool = True
    tests: bool = True
    tests_after: Annotated[int, Field(ge=0, le=MOST)] = 200
    alarm_distance: Annotated[int, Field(ge=2, le=MOST)] = 1_000_000
    alarm_quiet: Count = 10_000


class Config(Section):
    """A whole configuration; usually made by `load`.

    Examples
    --------
    >>> config = Config(input=Input(observations="scores.jsonl"))
    >>> config.settings().label_wait
    604800000
    """

    task: Task = Task()
    calibrator: Calibrator = Calibrator()
    learner: Learner | None = None
    input: Input = Input()
    output: Output = Output()
    kafka: Kafka | None = None
    limits: Limits = Limits()
    state: State = State()
    http: Http = Http()
    monitoring: Monitoring = Monitoring()
    alerts: Alerts = Alerts()

    @model_validator(mode="after")
    def _agree(self) -> Config:
        """Refuse keys that contradict each other."""
        if found := list(conflicts(self.model_dump(exclude_unset=True))):
            raise ConfigError([f"{dotted(one.path)}: {one.text}" for one in found])
        return self

    def settings(self) -> Settings:
        """Give what shapes the state of the processor.

        Returns
        -------
        Settings
            All durations in milliseconds.
        """
        return Settings(
            task=self.task.kind,
            classes=self.task.classes,
            quantiles=self.task.quantiles,
            calibrator=self.calibrator.kind,
            scores=self.task.scores,
            learner=self.learner_name(),
            monitors=self.monitoring.enabled,
            **self.monitoring.model_dump(exclude={"enabled"}),
            **self.calibrator.model_dump(exclude={"kind"}),
            **self.limits.model_dump(),
        )

    @property
    def second_input(self) -> bool:
        """Whether labels come from a file or a topic of their own."""
        return (self.input.labels if self.kafka is None else self.kafka.labels) is not None

    def learner_name(self) -> str | None:
        """Name what scores the features, by default the usual one of the task; None if nothing."""
        return (self.learner.name or USUAL[self.task.kind]) if self.learner else None

    def reads(self) -> Reads:
        """Tell how scores and labels are read."""
        from abers_connectors import reads  # noqa: PLC0415 - nobody else needs numpy here

        if self.task.kind == "multiclass":
            return reads.multiclass(self.task.classes)
        if self.task.kind == "regression":
            return reads.regression()
        if self.calibrator.kind == "cvap":
            return reads.cross(self.input.positive)
        return reads.binary(self.input.positive)

    def fields(self) -> Fields:
        """Give the mapping of the first input; features are at "x" if a learner is to score."""
        from abers_connectors.fields import Fields  # noqa: PLC0415

        given = self.input.fields.model_dump()
        if self.learner and given["x"] is None:
            given["x"] = "x"
        return Fields(**given)

    def label_fields(self) -> Fields:
        """Give the mapping of the second input, which is that of the first where not told."""
        from dataclasses import replace  # noqa: PLC0415

        return replace(self.fields(), **self.input.label_fields.model_dump(exclude_none=True))


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Config:
    """Read a configuration.

    Parameters
    ----------
    path
        Of a TOML file; None if flags and environment say everything.
    flags
        Values that beat all others, by dotted path: ``{"input.delay": 50}``.
    environ
        The environment: ``ABERS_INPUT__DELAY=50`` is the same. A variable without a double
        underscore is not part of the configuration.

    Returns
    -------
    Config
        The configuration.

    Raises
    ------
    ConfigError
        If anything is wrong with it; the error lists all that is.

    Examples
    --------
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
    found += [layers.line(one) for one in conflicts(layers.values)]
    if found:
        raise ConfigError(found)
    return config

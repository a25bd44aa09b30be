"""A configuration in words.

Governing rule: what does not hold is not mentioned, and defaults are said like
everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from abers.stream.settings import CALIBRATORS
from abers_connectors._config_kafka_words import service_inputs, service_outputs, service_rest
from abers_connectors._config_moments import counted, duration
from abers_connectors.files.naming import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.config import Alerts, Calibrator, Config, Input, Limits, Output, State
    from abers_connectors.fields import Fields

__all__ = ["described"]

_PARTS = {"record:key": "the key of the record", "record:timestamp": "the time of the record"}
_HEADER = "record:header:"
_SCORES = {
    "any": "any finite number",
    "logit": "logits",
    "probability": "probabilities, judged beside the calibrated ones",
}


def described(config: Config) -> dict[str, str]:
    """Say what a configuration means.

    Parameters
    ----------
    config
        The configuration.

    Returns
    -------
    dict
        A sentence for each part.
    """
    kafka = config.kafka
    learner = f"the learner {config.learner_name()}" if config.learner else "the records"
    return {
        "task": _task(config),
        "scores": f"{_SCORES[config.task.scores]}, from {learner}",
        "calibrator": f"{config.calibrator.kind or CALIBRATORS[config.task.kind][0]}, "
        f"{_forgetting(config.calibrator)}",
        **(_inputs(config) if kafka is None else service_inputs(kafka)),
        **_records(config),
        **(_outputs(config.output) if kafka is None else service_outputs(kafka, config.output)),
        **_limits(config.limits, config.settings().jump),
        **({"state": _state(config.state)} if kafka is None else service_rest(config, kafka)),
        "monitoring": "on" if config.monitoring.enabled else "off",
        **_alerts(config.alerts),
    }


def _alerts(alerts: Alerts) -> dict[str, str]:
    if alerts.webhook is None:
        return {}
    return {"alarms": f"each is told to {urlsplit(alerts.webhook).hostname}"}


def _task(config: Config) -> str:
    if config.task.kind == "multiclass":
        return f"the probabilities of {', '.join(config.task.classes)} (multiclass)"
    if config.task.kind == "regression":
        levels = ", ".join(f"{level:g}" for level in config.task.quantiles)
        whole = {"none": "", "judged": "the mean and ", "told": "the distribution, the mean and "}
        first = whole[config.calibrator.distributions]
        return f"{first}the quantiles {levels} of the label (regression)"
    return "the probability of label 1 (binary)"


def _forgetting(calibrator: Calibrator) -> str:
    if calibrator.window is not None:
        return f"keeps the last {counted(calibrator.window, 'label')}"
    if calibrator.max_age is not None:
        return f"forgets labels after {duration(calibrator.max_age)}"
    if calibrator.half_life is not None:
        return f"halves the weight of a label every {duration(calibrator.half_life)}"
    return "keeps every label"


def _inputs(config: Config) -> dict[str, str]:
    given = config.input
    if given.observations is None:
        return {}
    found = {"observations": f"{_place(given.observations, 'input')}, {_labels_of(given)}"}
    if given.labels is not None:
        found["labels"] = f"{_place(given.labels, 'input')}, merged by event time"
    return found


def _records(config: Config) -> dict[str, str]:
    """Say how the records of the inputs are understood."""
    fields = config.fields()
    found = {"fields": ", ".join(_fields(fields, scored=config.learner is None))}
    if config.second_input:
        second = config.label_fields()
        names = ("id", "time", "model", "label")
        found["fields of labels"] = ", ".join(_field(name, getattr(second, name)) for name in names)
    if config.task.kind != "binary":
        return found
    ones = ", ".join(map(repr, config.input.positive))
    found["label 1"] = f"{ones}; all else is 0" if ones else "1 or true; label 0 is 0 or false"
    return found


def _labels_of(given: Input) -> str:
    if given.labels is not None:
        return "without labels"
    if given.delay is None:
        return "labels among them"
    count, span = given.delay
    late = duration(span or 0) if count is None else counted(count, "observation")
    return f"each with its label, which is released {late} later"


def _fields(fields: Fields, *, scored: bool) -> Iterator[str]:
    yield from (_field(name, getattr(fields, name)) for name in ("id", "time", "model"))
    if fields.segment:
        yield _field("segment", fields.segment)
    if scored:
        paths = {"score": fields.score} if isinstance(fields.score, str) else fields.score
        yield from (_field(name, path) for name, path in paths.items())
    else:
        yield _field("features", " ".join(fields.features))
    yield _field("label", fields.label)
    if fields.extra:
        yield _field("passed through", " ".join(fields.extra))


def _field(name: str, path: str) -> str:
    if path.startswith("const:"):
        return f"{name} always {path.removeprefix('const:')}"
    if path == "row" and name in ("id", "time"):
        return f"{name} the number of the record"
    return f"{name} in {_PARTS.get(path) or path.replace(_HEADER, 'the header ')}"


def _outputs(output: Output) -> dict[str, str]:
    found = {"predictions": _place(output.predictions, "output")}
    if output.outcomes is not None:
        found["outcomes"] = _place(output.outcomes, "output")
    if output.on_bad_record == "stop":
        return found | {"bad records": "the first one ends the run"}
    place = _place(output.dead_letters_path, "output")
    most = output.max_dead_per_1000
    return found | {"bad records": f"{place}; more than {most:,} of 1,000 end the run"}


def _state(state: State) -> str:
    if state.path is None:
        return "none is kept"
    return f"{state.path}, every {counted(state.every, 'record')}"


def _place(path: str, direction: str) -> str:
    return f"standard {direction}" if path == STANDARD else path


def _limits(limits: Limits, jump: int) -> dict[str, str]:
    memory = limits.label_wait if limits.dedup_for is None else limits.dedup_for
    pending, early = f"{limits.max_pending:,}", f"{limits.max_early:,}"
    return {
        "waiting": f"{duration(limits.label_wait)} for a label or an observation; "
        f"at most {pending} observations and {early} labels",
        "late": f"an event over {duration(limits.lateness)} behind the latest one",
        "too far ahead": f"an event over {duration(limits.max_ahead)} ahead of its record",
        "clocks": f"one event alone moves that of its model by at most {duration(jump)}",
        "duplicates": f"known for {duration(memory + limits.lateness)}, among the last "
        f"{limits.dedup_max:,} finished ids",
        "models": f"at most {limits.max_models:,}, and as many segments in all{_retiring(limits)}",
        "lengths": f"ids of at most {limits.max_id_bytes:,} bytes; models, segments and classes "
        f"of at most {limits.max_name_bytes:,}",
    }


def _retiring(limits: Limits) -> str:
    if limits.retire_after is None:
        return ""
    return f"; beyond that those silent for over {duration(limits.retire_after)} are forgotten"

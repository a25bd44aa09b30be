"""The meaning of a configuration, for `abers check`: some lines on each part of it.

Each phrase names the keys that it is about, so that what differs from the defaults can be shown
apart. Parts without effect have no phrase, and passwords are never shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from abers import registry
from abers.calibration.label_rates import ALL
from abers.monitoring.answers.formats import per_cent
from abers.stream.fields import ROW, constant
from abers.stream.setting_rules import usual_calibrator
from abers_connectors.config.options import options
from abers_connectors.config.phrases import Line, Meaning
from abers_connectors.config.serve_description import NOT_SERVED, request_lines
from abers_connectors.config.service_description import (
    pages,
    service_lines,
    topic_inputs,
    topic_outputs,
)
from abers_connectors.config.units import counted, duration
from abers_connectors.files.formats import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers.stream.option import Option
    from abers.stream.settings import Settings
    from abers_connectors.config import sections
    from abers_connectors.config.model import Config

__all__ = ["described", "other_values", "usual_keys"]

_PARTS = {"record:key": "the record key", "record:timestamp": "the record timestamp"}
_HEADER = "record:header:"
_SCORES = {
    "any": "scores are any numbers",
    "logit": "raw scores are logits",
    "probability": "raw scores are probabilities",
}
_PROMISES = {
    "ivapr": "by theorem with a fixed model and a stream that does not move",
    "protected": "on any stream",
}
_OF_TOPICS = ("http.", "telemetry.", "state.shared", "state.retain")
_OF_TASK = ("task.", "calibrator.", "learner.")


def described(config: Config) -> dict[str, list[Line]]:
    """Return the lines on each part of a configuration, by the name of the part."""
    kafka, settings = config.kafka, config.settings()
    task = {"Task": [Line((*_task(settings), *_scores(config)))]}
    calibrates = {
        "Calibrates": [Line(tuple(_calibrates(settings)))],
        "Waits": [Line(tuple(_waits(settings)))],
        "Watches": [Line((*_watches(settings), *_alarms(config)))],
    }
    if config.serve is not None:
        read = request_lines(config, config.serve, _label(config, "label"))
        return {**task, **read, **calibrates, "Serves": [Line((pages(config.http),))]}
    inputs = _file_inputs(config) if kafka is None else topic_inputs(config, kafka)
    outputs = _file_outputs(config) if kafka is None else topic_outputs(config, kafka)
    return {
        **task,
        "Reads": [*inputs, *_fields(config), *_label_fields(config)],
        "Writes": [Line(tuple(outputs))],
        **calibrates,
        **({} if kafka is None else service_lines(config, kafka)),
    }


def usual_keys(config: Config) -> frozenset[str]:
    """Return the keys that have their default."""
    found = {key for key, value in config.values().items() if value == options()[key].default}
    timed = config.settings().average_run_time is not None
    return frozenset(found - ({"monitoring.average_run_length"} if timed else set()))


def other_values(config: Config, meaning: Mapping[str, list[Line]]) -> Iterator[tuple[Option, Any]]:
    """Yield the options that no phrase is about, with their values.

    Those of the task and of single fields are left out if they have their default.
    """
    lines = (one for of_part in meaning.values() for one in of_part)
    stated = {key for one in lines for phrase in one.phrases for key in phrase.keys}
    usual = usual_keys(config)
    of_files = () if config.kafka is not None else _OF_TOPICS
    unused = of_files if config.serve is None else NOT_SERVED
    for key, value in config.values().items():
        option = options()[key]
        if key in stated or key.startswith(unused):
            continue
        limit = option.kind in {int, float} and not key.startswith(_OF_TASK)
        if limit or key not in usual:
            yield option, value


def _task(settings: Settings) -> Iterator[Meaning]:
    if settings.task == "multiclass":
        many = len(settings.classes)
        names = ", ".join(settings.classes)
        yield Meaning(f"{many} classes: {names}", ("task.kind", "task.classes"))
    elif settings.task == "regression":
        yield Meaning("numbers", ("task.kind",))
        levels = ", ".join(f"{level:g}" for level in settings.quantiles)
        yield Meaning(f"quantiles {levels}", ("task.quantiles",))
        if settings.distributions != "none":
            whole = " and the whole distribution" if settings.distributions == "full" else ""
            yield Meaning(f"the mean{whole}", ("calibrator.distributions",))
    else:
        yield Meaning("two classes", ("task.kind",))


def _scores(config: Config) -> Iterator[Meaning]:
    settings = config.settings()
    yield Meaning(_SCORES[settings.scores], ("task.scores",))
    if config.input.percent:
        yield Meaning("read in per cent", ("input.percent",))
    if settings.learner is not None:
        yield Meaning(f"made by the learner {settings.learner}", ("learner.name",))
    elif config.serve is not None and (file := config.serve.learner) is not None:
        yield Meaning(f"made by the learner in {file}", ("serve.learner",))


def _calibrates(settings: Settings) -> Iterator[Meaning]:
    kind = usual_calibrator(settings)
    yield Meaning(kind, ("calibrator.kind",))
    if kind == registry.NONE:
        yield Meaning("scores are served as they are, and nothing is learned")
        return
    yield _kept(settings)
    if settings.task == "regression":
        if settings.coverage is not None:
            share = per_cent(settings.coverage, None)
            words = f"an interval for {share} of the labels, {_PROMISES[kind]}"
            yield Meaning(words, ("calibrator.coverage",))
    elif settings.protected:
        yield Meaning("p is protected", ("calibrator.probability",))
    elif settings.probability == "merged" or kind in registry.protected_forms(settings.task):
        yield Meaning("p is merged from the interval", ("calibrator.probability",))
    if settings.label_rates != ALL:
        of_0, of_1 = (per_cent(rate, None) for rate in settings.label_rates)
        words = f"taken as known: labels come for {of_0} of class 0 and {of_1} of class 1"
        yield Meaning(words, ("calibrator.label_rates",))


def _kept(settings: Settings) -> Meaning:
    """Return which labels a calibrator keeps."""
    if settings.window is not None:
        return Meaning(f"the last {counted(settings.window, 'label')}", ("calibrator.window",))
    if settings.max_age is not None:
        age = duration(settings.max_age)
        return Meaning(f"labels of the last {age}", ("calibrator.max_age",))
    if settings.half_life is not None:
        age = duration(settings.half_life)
        return Meaning(f"the weight of a label halves in {age}", ("calibrator.half_life",))
    return Meaning(
        "all labels", ("calibrator.window", "calibrator.max_age", "calibrator.half_life")
    )


def _waits(settings: Settings) -> Iterator[Meaning]:
    wait = duration(settings.label_timeout)
    yield Meaning(f"{wait} for a label", ("limits.label_timeout",))
    if (label := settings.unlabelled) is not None:
        words = f"then it counts as label {label}, and a later one is not learned"
        yield Meaning(words, ("input.unlabelled",))
    if settings.learn_after is not None:
        age = duration(settings.learn_after)
        words = f"a label is learned when its observation is {age} old"
        yield Meaning(words, ("limits.learn_after",))


def _watches(settings: Settings) -> Iterator[Meaning]:
    if not settings.monitors:
        yield Meaning("nothing", ("monitoring.enabled",))
        return
    if not settings.tests:
        yield Meaning("scores, without tests and alarms", ("monitoring.tests",))
        return
    odds = f"{settings.tolerance:g} times the odds"
    yield Meaning(f"alarm beyond {odds}", ("monitoring.tolerance",))
    time, length = settings.average_run_time, settings.average_run_length
    least = duration(time) if time else counted(length, "label")
    words = f"{least} on average between false alarms"
    yield Meaning(words, ("monitoring.average_run_length",))


def _alarms(config: Config) -> Iterator[Meaning]:
    if (webhook := config.alerts.webhook) is not None:
        yield Meaning(f"alarms are sent to {urlsplit(webhook).hostname}", ("alerts.webhook",))


def _file_inputs(config: Config) -> Iterator[Line]:
    given = config.input
    if given.observations is None:
        return
    file = Meaning(_file(given.observations, "input"), ("input.observations",))
    if given.labels is not None:
        second = Meaning(f"{_file(given.labels, 'input')} for the labels", ("input.labels",))
        yield Line((file, second))
    elif config.labelled:
        yield Line((file,))
    else:
        yield Line((file, Meaning("observations and labels mixed")))


def _fields(config: Config) -> Iterator[Line]:
    """Yield which field is what: those that name an observation, and those with its values."""
    fields, zone = config.fields(), config.input.timezone
    time = _field("time", fields.time)
    named = [_field("id", fields.id)]
    of_zone = () if zone is None else ("input.timezone",)
    named.append(
        Meaning(time.text + ("" if zone is None else f" ({zone})"), (*time.keys, *of_zone))
    )
    named.append(_field("model", fields.model))
    if fields.segment:
        named.append(_field("segment", fields.segment))
    yield Line(tuple(named), " · ")
    if config.settings().learner is not None:
        valued = [Meaning(f"features {' '.join(fields.features)}", ("input.fields.x",))]
    elif isinstance(fields.score, str):
        valued = [_field("score", fields.score)]
    else:
        paths = " ".join(f"{name}={path}" for name, path in fields.score.items())
        valued = [Meaning(f"scores {paths}", ("input.fields.score",))]
    if not config.second_input:
        valued.append(_label(config, fields.label))
    if fields.passthrough:
        kept = f"passed through {' '.join(fields.passthrough)}"
        valued.append(Meaning(kept, ("input.fields.passthrough",)))
    yield Line(tuple(valued), " · ")


def _label_fields(config: Config) -> Iterator[Line]:
    """Yield the fields of the second input, if there is one."""
    if not config.second_input:
        return
    second = config.label_fields()
    section = "input.label_fields"
    named = [_field(name, getattr(second, name), section) for name in ("id", "time", "model")]
    label = _label(config, second.label)
    yield Line((*named, label._replace(keys=(*label.keys, f"{section}.label"))), " · ")


def _label(config: Config, path: str) -> Meaning:
    """Return where a label is, which values mean 1, and when it is known."""
    field, given = _field("label", path), config.input
    ones = ", ".join(map(str, given.pos_label)) or "1, true"
    values = f" ({ones})" if config.settings().task == "binary" else ""
    late, keys = "", (*field.keys, "input.pos_label")
    if given.fields.label_time is not None:
        late, keys = f" at {given.fields.label_time}", (*keys, "input.fields.label_time")
    elif given.delay is not None:
        late, keys = f", {given.delay}", (*keys, "input.delay")
    return Meaning(f"{field.text}{values}{late}", keys)


def _field(name: str, path: str, section: str = "input.fields") -> Meaning:
    keys = (f"{section}.{name}",)
    if (value := constant(path)) is not None:
        return Meaning(f"{name} always {value}", keys)
    if path == ROW and name in {"id", "time"}:
        return Meaning(f"{name} is the record number", keys)
    return Meaning(f"{name} {_PARTS.get(path) or path.replace(_HEADER, 'the header ')}", keys)


def _file_outputs(config: Config) -> Iterator[Meaning]:
    output, state = config.output, config.state
    yield Meaning(f"predictions to {_file(output.predictions, 'output')}", ("output.predictions",))
    if output.outcomes is not None:
        yield Meaning(f"outcomes to {_file(output.outcomes, 'output')}", ("output.outcomes",))
    yield from _unreadable(output)
    if state.path is None:
        yield Meaning("state not saved", ("state.path", "state.snapshot_every", "state.key_file"))
    else:
        every = counted(state.snapshot_every, "record")
        keys = ("state.path", "state.snapshot_every")
        yield Meaning(f"state to {state.path}, every {every}", keys)


def _unreadable(output: sections.OutputSection) -> Iterator[Meaning]:
    if output.on_bad_record == "stop":
        words = "the first unreadable record stops the run"
        yield Meaning(words, ("output.on_bad_record", "output.max_dead_letter_ratio"))
        return
    file = _file(output.dead_letters_path, "output")
    yield Meaning(f"unreadable records to {file}", ("output.on_bad_record", "output.dead_letters"))
    most = per_cent(output.max_dead_letter_ratio, None)
    yield Meaning(f"stops if over {most} are unreadable", ("output.max_dead_letter_ratio",))


def _file(path: str, direction: str) -> str:
    return f"standard {direction}" if path == STANDARD else path

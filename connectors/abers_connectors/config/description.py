"""The meaning of a configuration, for `abers check`: some lines on each part of it.

Each phrase names the keys that it is about, so that what differs from the defaults can be shown
apart. Parts without effect have no phrase, and passwords are never shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from abers import registry
from abers.calibration.sets import ALL
from abers.monitoring.formats import per_cent
from abers.stream.cells import ROW, constant
from abers.stream.setting_rules import usual_calibrator
from abers_connectors.config.layers import options
from abers_connectors.config.values import counted, duration, moment
from abers_connectors.files import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from abers.stream.option import Option
    from abers.stream.settings import Settings
    from abers_connectors.config import sections
    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import ServeSection

__all__ = ["Line", "described", "other_values", "pages", "usual_keys"]


class Meaning(NamedTuple):
    """Words on the values of some keys."""

    text: str
    keys: tuple[str, ...] = ()


class Line(NamedTuple):
    """Phrases in a line, with what stands between two of them."""

    phrases: tuple[Meaning, ...]
    between: str = "; "

    def __str__(self) -> str:
        """Return the words alone.

        >>> str(Line((Meaning("7 days for a label"), Meaning("then it is dropped"))))
        '7 days for a label; then it is dropped'
        """
        return self.between.join(phrase.text for phrase in self.phrases)


_STARTS = {"earliest": "at the earliest records", "latest": "at new records"}
_LOST = {
    "stop": "lost records stop the run",
    "earliest": "lost records are skipped, up to the earliest that remains",
    "latest": "lost records are skipped, with all others up to the end",
}
_FORMATS = {
    "json": "",
    "avro": " in Avro",
    "protobuf": " in Protobuf",
    "json-schema": " in JSON with a schema",
}


def topic_inputs(config: Config, kafka: sections.KafkaSection) -> Iterator[Line]:
    """Yield the brokers, the schema registry and the topics that are read."""
    brokers = ", ".join(kafka.bootstrap_servers)
    security = kafka.security
    keys = ("kafka.bootstrap_servers", *_keys_below("kafka.security"))
    yield Line((Meaning(f"{brokers}, {_security(security)}", keys),))
    if (registry := config.schema_registry) is not None:
        yield Line((_registry(registry),))
    first, second = map(_FORMATS.get, config.topic_formats)
    found = Meaning(f"topic {kafka.observations}{first}", ("kafka.observations", "input.format"))
    if kafka.labels is None:
        yield Line((found, Meaning("observations and labels mixed", ("kafka.labels",))))
        return
    labels = f"topic {kafka.labels}{second} for the labels"
    merged = Meaning("merged by record timestamp")
    yield Line((found, Meaning(labels, ("kafka.labels", "input.label_format")), merged))


def topic_outputs(config: Config, kafka: sections.KafkaSection) -> Iterator[Meaning]:
    """Yield the topics that are written."""
    output = config.output
    written = _FORMATS[output.format or "json"]
    for name, of_format in (("predictions", written), ("outcomes", written), ("alerts", "")):
        if (topic := getattr(kafka, name)) is not None:
            what = "alarms" if name == "alerts" else name
            yield Meaning(f"{what} to topic {topic}{of_format}", (f"kafka.{name}", "output.format"))
    if output.on_bad_record == "stop":
        yield Meaning("the first unreadable record stops the run", ("output.on_bad_record",))
    else:
        keys = ("output.on_bad_record", "kafka.dead_letters", "output.max_dead_letter_ratio")
        yield Meaning(f"unreadable records to topic {kafka.dead_letters}", keys)
        yield Meaning("stops if it never read one, and 1,000 are unreadable")
    yield Meaning(f"changelog to topic {kafka.changelog}", ("kafka.changelog",))


def service_lines(config: Config, kafka: sections.KafkaSection) -> dict[str, list[Line]]:
    """Return the lines on how a service runs, and what it serves."""
    names = ("application_id", "group_instance_id", "client", "group_protocol")
    application, instance, client, protocol = (getattr(kafka, name) for name in names)
    runs = (
        Meaning(
            f"as {application}, instance {instance}", tuple(f"kafka.{one}" for one in names[:2])
        ),
        Meaning(f"by {client}", ("kafka.client",)),
        Meaning(f"group protocol {protocol}", ("kafka.group_protocol",)),
    )
    lost = Meaning(_LOST[kafka.on_offset_out_of_range], ("kafka.on_offset_out_of_range",))
    starts = Line((*_starts(kafka), lost))
    return {
        "Runs": [Line(runs), starts, Line((_state(config.state),))],
        "Serves": [Line((pages(config.http), *_telemetry(config)))],
    }


def _telemetry(config: Config) -> Iterator[Meaning]:
    if (collector := config.telemetry.endpoint) is not None:
        words = f"metrics and traces are sent to {collector} by OTLP"
        yield Meaning(words, ("telemetry.endpoint",))


def _registry(registry: sections.SchemaRegistrySection) -> Meaning:
    user = "" if registry.username is None else f", as {registry.username}"
    if registry.token_file is not None:
        user = f", with the token in {registry.token_file}"
    stops = registry.on_unavailable == "stop"
    away = "stops the run" if stops else "makes records unreadable"
    wait = duration(registry.timeout)
    words = f"schemas of {registry.url}{user}; no answer within {wait} {away}"
    return Meaning(words, _keys_below("schema_registry"))


def _keys_below(section: str) -> tuple[str, ...]:
    """Return all keys of a section: the values of some show too much of a login."""
    return tuple(key for key in options() if key.startswith(f"{section}."))


def _security(security: sections.SecuritySection) -> str:
    found = "encrypted" if security.encrypted else "not encrypted"
    if security.encrypted and not security.check_hostname:
        found += ", host names not checked"
    if security.certfile is not None:
        found += f", with the certificate {security.certfile}"
    if security.mechanism is not None:
        found += f", {_login(security)} by {security.mechanism}"
    return found


def _login(security: sections.SecuritySection) -> str:
    if security.by_password:
        return f"as {security.username}"
    if security.mechanism == "AWS_MSK_IAM":
        return f"with the credentials of AWS for {security.aws_region}"
    if security.mechanism == "GSSAPI":
        return "with a Kerberos ticket"
    if security.token_endpoint_url is not None:
        issuer = urlsplit(security.token_endpoint_url).hostname
        return f"as client {security.client_id} of {issuer}"
    return f"with the token in {security.token_file or 'the environment'}"


def _starts(kafka: sections.KafkaSection) -> Iterator[Meaning]:
    start = kafka.starting_offset
    where = _STARTS[start] if isinstance(start, str) else f"at the records from {moment(start)}"
    words = f"starts {where}, or at its committed offsets"
    yield Meaning(words, ("kafka.starting_offset",))
    if kafka.publish_from is not None:
        words = f"predictions before {moment(kafka.publish_from)} are not published"
        yield Meaning(words, ("kafka.publish_from",))


def _state(state: sections.StateSection) -> Meaning:
    keys = ("state.path", "state.shared", "state.retain", "state.snapshot_every")
    if state.path is None:
        return Meaning("state in the changelog, without snapshots", keys)
    where = "shared by all machines" if state.shared else "of this machine"
    return Meaning(
        f"state in the changelog, and snapshots in {state.path} {where}: "
        f"the last {state.retain:,}, one every {counted(state.snapshot_every, 'record')}",
        keys,
    )


def pages(http: sections.HttpSection) -> Meaning:
    """Return what a service shows, and where."""
    if not http.enabled:
        return Meaning("neither page nor metrics", ("http.enabled",))
    host = f"[{http.host}]" if ":" in http.host else http.host
    scheme = "http" if http.certfile is None else "https"
    words = f"page, health and metrics at {scheme}://{host}:{http.port or 'any free port'}"
    return Meaning(words, ("http.enabled", "http.host", "http.port"))


NOT_SERVED = ("input.", "output.", "state.", "telemetry.")
"""Beginnings of keys that no server reads, but those that a phrase names."""


def request_lines(config: Config, serve: ServeSection, label: Meaning) -> dict[str, list[Line]]:
    """Return the lines on the rows of requests, and on the state."""
    value = "x" if config.learns else "score"
    rows = Meaning(f"predictions: id, {value}, model, segment, time", ("input.timezone",))
    labels = Meaning(
        f"labels: id, {label.text.removeprefix('label ')}, model, time", ("input.pos_label",)
    )
    state = Meaning(f"state to {serve.data}", ("serve.data", "state.key_file"))
    return {
        "Reads": [Line((Meaning("rows of requests"),)), Line((rows,)), Line((labels,))],
        "Writes": [Line((state,))],
    }


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

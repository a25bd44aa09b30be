"""Rules between the keys of a configuration.

A key that would have no effect is refused, not ignored. Each rule skips values of a wrong type,
because `problems` reports those. So one pass finds all mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

from abers import registry
from abers.exceptions import MissingExtraError, ParameterError
from abers.learners.river_adapters import LEARNERS, REGRESSORS, make, make_multi, make_regressor
from abers.stream.cells import BadRecordError, Fields, constant
from abers.stream.option import REMOVE, SET, Phrase, Quoted, found_by, written
from abers.stream.readers import ClassReader, LabelReader
from abers.stream.setting_rules import RULES, unable
from abers.stream.settings import CALIBRATORS, Settings
from abers.suggestions import closest
from abers_connectors.config.kafka_sections import NAMED_AFTER_APPLICATION
from abers_connectors.config.layers import INPUTS, OUTPUTS, Found, RawValues, is_name, option
from abers_connectors.config.sections import (
    OF_OBSERVATION,
    FileFormat,
    TopicFormat,
    dead_letters_beside,
    default_client,
)
from abers_connectors.config.security_rules import security_conflicts
from abers_connectors.config.values import DROP, milliseconds
from abers_connectors.files import STANDARD, FileUse, clashes, default_format, file_format
from abers_connectors.sinks.base import SINKS
from abers_connectors.sources.registry import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers.stream.option import OptionValues, Part, Problem
    from abers.stream.readers import CellReader
    from abers_connectors.config.layers import Text

__all__ = ["conflicts", "format_of", "label_reader", "unlabelled"]

_KEY = "input.unlabelled"


def unlabelled(values: RawValues) -> Found:
    """Find a label that the task does not have, and a time to wait that is not set."""
    given = values.get(_KEY)
    if given == DROP or not isinstance(given, str | int | float):
        return
    kind = values.get("task.kind") or "binary"
    if kind == "regression":
        return
    if values.get("limits.label_timeout") is None:
        needs = ("needs ", values.ref("limits.label_timeout"))
        yield _KEY, (*needs, '; set how long a label may take, such as "30d"')
    try:
        if (read := label_reader(values, kind)) is not None:
            read.one(given)
    except BadRecordError as error:
        yield _KEY, (*error.text, f'; or write "{DROP}"')


def label_reader(values: RawValues, kind: object) -> CellReader | None:
    """Return the reader of labels; None if the keys that it depends on are wrong."""
    if kind == "multiclass":
        names = values.strings("task.classes")
        return ClassReader(names) if names else None
    positive = values.get("input.pos_label") or ()
    plain = isinstance(positive, list | tuple)
    usable = plain and all(isinstance(one, str | int | float) for one in positive)
    return LabelReader(positive) if usable and kind == "binary" else None


_FILE_FORMATS, _TOPIC_FORMATS = get_args(FileFormat), get_args(TopicFormat)
_REGISTERED = _TOPIC_FORMATS[1:]
_KEYS = ("input.format", "input.label_format", "output.format")


def format_conflicts(values: RawValues) -> Found:
    """Return formats of files for topics, and the reverse, and what needs the registry."""
    if values.get("kafka") is None:
        yield from _of_topics(values)
        return
    given = values.get("input.format")
    if given in _FILE_FORMATS:
        known = ", ".join(map(written, _TOPIC_FORMATS))
        yield "input.format", f"{written(given)} applies only to files; for topics write {known}"
    if values.get("input.label_format") is not None and values.get("kafka.labels") is None:
        needs = ("needs a second input; ", SET, values.ref("kafka.labels"))
        yield "input.label_format", needs
    registered = [path for path in _KEYS if values.get(path) in _REGISTERED]
    section = values.get("schema_registry")
    for path in registered if section is None else ():
        need = (" needs a schema registry; ", SET, values.ref("schema_registry.url"))
        yield path, (Quoted(values.get(path)), *need)
    if section is not None and not registered:
        known = ", ".join(map(written, _REGISTERED))
        remedy = (SET, values.ref("input.format"), ", or ", REMOVE)
        yield "schema_registry", (f"is asked only for {known}; ", *remedy)
    if section is not None:
        yield from _registry_login(values)
        yield from _timeout(values)


def _of_topics(values: RawValues) -> Found:
    """Yield what applies only to topics."""
    remedy = "applies only to topics, in a section [kafka]"
    given = values.get("input.format")
    if given in _TOPIC_FORMATS:
        known = ", ".join(map(written, _FILE_FORMATS))
        yield "input.format", f"{written(given)} {remedy}; for files write {known}"
    for path in ("input.label_format", "output.format", "schema_registry"):
        if values.get(path) is not None:
            yield path, f"{remedy}; remove it"


def _registry_login(values: RawValues) -> Found:
    """Find a key of a login or of TLS that would have no effect."""

    def given(key: str) -> bool:
        return values.get(f"schema_registry.{key}") is not None

    url = values.get("schema_registry.url")
    if given("cafile") and isinstance(url, str) and url.startswith("http://"):
        yield "schema_registry.cafile", 'applies only to TLS; write "https://", or remove it'
    if given("token_file") and given("username"):
        both = ("cannot be combined with ", values.ref("schema_registry.username"))
        yield "schema_registry.token_file", (*both, "; remove one of them")
    if given("password_file") and not given("username"):
        needs = ("needs a user; ", SET, values.ref("schema_registry.username"))
        yield "schema_registry.password_file", needs


def _timeout(values: RawValues) -> Found:
    """Find a registry that may take longer than the process may be without progress."""
    stall = _milliseconds(values, "kafka.stall_timeout")
    registry = _milliseconds(values, "schema_registry.timeout")
    if stall is not None and registry is not None and stall <= registry:
        shorter = ("must be shorter than ", values.ref("kafka.stall_timeout"))
        yield "schema_registry.timeout", shorter


def _milliseconds(values: RawValues, path: str) -> int | None:
    """Return a duration, or its default; None if neither can be read."""
    given = values.get(path)
    return milliseconds(option(path).default if given is None else given)


_REMOVED = {
    "input.delay": "labels in topics are records, so remove it",
    "input.delimiter": "no topic has CSV, so remove it",
}
_NOT_SERVED = (
    *("input.observations", "input.labels", "input.fields", "input.label_fields", "input.delay"),
    *("output", "state.path"),
)
_TOPICS_ONLY = ("state.shared", "state.retain", "http", "telemetry")
_TOPIC_KEYS = ("observations", "labels", "predictions", "outcomes", "dead_letters", "alerts")
_RECORD = re.compile(r"record:(?:key|timestamp|header:.+)")
_OF_ROW = {"id": "key", "time": "timestamp"}
_URL_WITH_LOGIN = re.compile(r"\w+://[^/@]*:[^/@]*@.*", re.DOTALL)


def kafka_conflicts(values: RawValues) -> Found:
    """Return the contradictions in the sections of a service, and the keys that need one."""
    yield from _paths(values)
    yield from _alarms(values)
    if values.get("http.keyfile") is not None and values.get("http.certfile") is None:
        yield "http.keyfile", ("needs a certificate; ", SET, values.ref("http.certfile"))
    if values.get("kafka") is None:
        yield from _without_kafka(values)
        return
    if values.get("serve") is not None:
        yield "serve", "is without topics; remove the section [serve], or [kafka]"
    yield from _files_only(values)
    for check in (_topics, _routing, _group_protocol, _timeouts, security_conflicts):
        yield from check(values)
    if any(map(_URL_WITH_LOGIN.fullmatch, values.names("state.path").values())):
        yield "state.path", "contains a password; the storage reads it from the environment"


def _files_only(values: RawValues) -> Found:
    for path in (*INPUTS, *OUTPUTS):
        if values.get(path) is not None:
            other = values.ref(f"kafka.{path.partition('.')[2]}")
            yield path, ("applies only to files; with [kafka], ", SET, other, " instead")
    for path, problem in _REMOVED.items():
        if values.get(path) is not None:
            yield path, f"applies only to files; {problem}"


def _alarms(values: RawValues) -> Found:
    """Refuse a receiver of alarms if no alarm can be raised."""
    switches = ("monitoring.enabled", "monitoring.tests")
    off = [path for path in switches if values.get(path) is False]
    for path in ("kafka.alerts", "alerts.webhook"):
        if off and values.get(path) is not None:
            why = ("never gets an alarm, because ", values.ref(off[0], False))  # noqa: FBT003
            yield path, (*why, "; remove one of the two")


def _without_kafka(values: RawValues) -> Found:
    given, served = values.get("input"), values.get("serve") is not None
    lacks = values.get("input.observations") is None and not served
    if lacks and (given is None or isinstance(given, Mapping)):
        yield (
            "input.observations",
            'is missing; write a file, "-" for standard input, or topics in a section [kafka]',
        )
    if values.get("serve.learner") is not None:
        yield from _served_learner(values)
    for path in _NOT_SERVED if served else ():
        if values.get(path) is not None:
            yield path, "has no effect in a server, with a section [serve]; remove it"
    for path in _TOPICS_ONLY:
        if values.get(path) is not None and not (served and path == "http"):
            yield path, "applies only to topics, in a section [kafka]; remove it"


def _served_learner(values: RawValues) -> Found:
    """Yield why the learner of a server cannot be used."""
    if values.get("learner") is not None:
        yield "serve.learner", "is a second learner; remove it, or the section [learner]"
    kind = values.get("task.kind")  # a value that is not a text is a mistake by itself
    if isinstance(kind, str) and kind != "binary":
        yield "serve.learner", ("is for the task ", Quoted("binary"), "; ", REMOVE)


def _topics(values: RawValues) -> Found:
    """Yield topics that have two roles."""
    app = values.get("kafka.application_id")
    routes = values.get("kafka.route_by") is not None
    own = {key: one for key, one in NAMED_AFTER_APPLICATION.items() if routes or key != "routed"}
    names = {name: values.get(f"kafka.{name}") for name in dict.fromkeys((*_TOPIC_KEYS, *own))}
    for name, suffix in own.items():
        names[name] = names[name] or f"{app if isinstance(app, str) else 'abers'}.{suffix}"
    seen: dict[str, str] = {}
    for name, topic in names.items():
        if not isinstance(topic, str) or not topic:
            continue
        if other := seen.get(topic):
            remedy: tuple[Part, ...] = ("; name another topic",)
            if (other, name) == ("observations", "labels"):
                remedy = ("; if it holds both, remove ", values.ref("kafka.labels"))
            is_other = (Quoted(topic), " is already ", values.ref(f"kafka.{other}"))
            yield f"kafka.{name}", (*is_other, *remedy)
        seen.setdefault(topic, name)


def _routing(values: RawValues) -> Found:
    """Yield keys of a router without one, and inputs that it cannot route alike."""
    if values.get("kafka.route_by") is None:
        if values.get("kafka.routed") is not None:
            yield "kafka.routed", ("needs ", values.ref("kafka.route_by", "model"))
        return
    model = values.get("input.fields.model")
    of_labels = values.get("input.label_fields.model") or model
    if not (_is_text(model) and _is_text(of_labels)):
        return
    if (constant(model or "") is None) != (constant(of_labels or "") is None):
        fields = (values.ref("input.fields.model"), " and ", values.ref("input.label_fields.model"))
        why = ("routes a label by its model, and ", *fields)
        yield "kafka.route_by", (*why, " name a constant and a field; write the same in both")


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _group_protocol(values: RawValues) -> Found:
    """Yield keys that the group protocol of KIP-848 does not have."""
    path, name = "kafka.group_protocol", "consumer"
    if values.get(path) != name:
        return
    if (values.get("kafka.client") or default_client()) != "librdkafka":
        yield path, (Quoted(name), " needs ", values.ref("kafka.client", "librdkafka"))
    if values.get("kafka.session_timeout") is not None:
        why = f"with {written(name)} the brokers set the consumer.session.timeout.ms of the group"
        text = ("applies only to ", values.ref(path, "classic"), f": {why}; ", REMOVE)
        yield "kafka.session_timeout", text


def _timeouts(values: RawValues) -> Found:
    stall = _milliseconds(values, "kafka.stall_timeout")
    transaction = _milliseconds(values, "kafka.transaction_timeout")
    if stall is not None and transaction is not None and stall <= transaction:
        longer = ("must be longer than ", values.ref("kafka.transaction_timeout"))
        yield "kafka.stall_timeout", longer


def _paths(values: RawValues) -> Found:
    """Check the fields that are read from the key, the timestamp or the headers of a record."""
    topics = values.get("kafka") is not None
    for section in ("input.fields", "input.label_fields"):
        given = values.get(section)
        for name, paths in given.items() if isinstance(given, Mapping) else ():
            for path in _strings(paths):
                if path == OF_OBSERVATION:
                    yield from _of_observation(values, f"{section}.{name}")
                elif problem := _path(name, path, topics=topics):
                    yield f"{section}.{name}", problem


def _of_observation(values: RawValues, key: str) -> Found:
    """Yield why the model of a label cannot be that of its observation."""
    if key != "input.label_fields.model":
        yield key, f"{written(OF_OBSERVATION)} is a model of labels; name a field"
    elif values.get("kafka.route_by") is None:
        needed = values.ref("kafka.route_by", "model")
        yield key, (Quoted(OF_OBSERVATION), " needs a router; ", SET, needed)


def _strings(paths: object) -> Iterator[str]:
    """Return the paths of a key: one, a list, or one for each class."""
    several = [*paths.values()] if isinstance(paths, Mapping) else paths
    listed = several if isinstance(several, list | tuple) else [several]
    yield from (one for one in listed if isinstance(one, str))


def _path(name: str, path: str, *, topics: bool) -> str | None:
    if path.startswith("record:"):
        if _RECORD.fullmatch(path) is None:
            forms = '"record:key", "record:timestamp" or "record:header:NAME"'
            return f"{written(path)} is not a part of a record; write {forms}"
        if not topics:
            return f"{written(path)} applies only to topics; without [kafka], name a field"
    if topics and path == "row" and name in _OF_ROW:
        return f'"row" applies only to files; name a field, or write "record:{_OF_ROW[name]}"'
    return None


_FORMATS = ("csv", "jsonl", "parquet")
_NAMES = ("input.fields.model", "input.fields.segment", "input.label_fields.model")


def format_of(file: str) -> str | None:
    """Return the format that a file name implies, or None."""
    try:
        return file_format(file).format
    except ParameterError:
        return None


def conflicts(found: RawValues, values: OptionValues) -> Found:
    """Return the key and the message of each contradiction in sections as TOML has them.

    `values` are those of the settings that could be read.
    """
    for one in found_by((*RULES, _own_calibrator), values):
        yield one.option.key, one.text
    yield from _task(found)
    yield from _lengths(found)
    yield from _second_input(found)
    yield from _score_and_label(found)
    yield from unlabelled(found)
    if found.get("kafka") is None and found.get("serve") is None:
        for check in (_check_inputs, _check_outputs, _files):
            yield from check(found)
    yield from kafka_conflicts(found)
    yield from format_conflicts(found)
    yield from _learner(found)


def _own_calibrator(v: OptionValues) -> Iterator[Problem]:
    """Import a calibrator with an import path, and compare it with the task."""
    name = v.calibrator
    if name is None or not registry.is_path(name):
        return
    try:
        able = registry.capabilities(name, v.task)
    except ParameterError as error:
        yield v.problem("calibrator", str(error).removeprefix("calibrator "))
        return
    yield from unable(v, name, able)


def _task(values: RawValues) -> Found:
    """Yield problems of keys of records that do not fit the task."""
    kind = values.get("task.kind") or "binary"
    if not isinstance(kind, str) or kind not in CALIBRATORS:
        return
    if values.get("input.pos_label") and kind != "binary":
        owner = ("applies only to the task ", Quoted("binary"), "; ", REMOVE)
        yield "input.pos_label", owner
    yield from _scores(values, kind, values.strings("task.classes"))


def _scores(values: RawValues, kind: str, classes: Sequence[str] | None) -> Found:
    """Compare the score fields with the classes."""
    paths = values.get("input.fields.score")
    if not isinstance(paths, Mapping) or not paths or not all(map(is_name, paths.values())):
        return
    if kind != "multiclass":
        yield "input.fields.score", f"must be a single field for the task {written(kind)}"
    elif classes is not None and {*paths} != {*classes}:
        yield "input.fields.score", f"must have one field for each of {written(list(classes))}"


def _lengths(values: RawValues) -> Found:
    """Find names that are longer than those in records may be."""
    given = values.get("limits.max_name_bytes")
    most = given if type(given) is int else Settings().max_name_bytes
    for path, field in values.names(*_NAMES).items():
        name = constant(field) or ""
        size = len(name.encode("utf-8", "surrogatepass"))
        if size > most:
            words = f" has {size:,} bytes; shorten it, or raise "
            yield path, (Quoted(name), words, values.ref("limits.max_name_bytes", most))


def _second_input(values: RawValues) -> Found:
    mapping = values.get("input.label_fields")
    mapped = isinstance(mapping, Mapping) and any(one is not None for one in mapping.values())
    labels = "input.labels" if values.get("kafka") is None else "kafka.labels"
    if values.get(labels) is None:
        if mapped:
            yield "input.label_fields", ("needs a second input; ", SET, values.ref(labels))
    elif labels == "input.labels" and values.get("input.delay") is not None:
        yield "input.delay", _excludes(values, labels)
    if values.get("input.fields.label_time") is not None:
        for other in (labels, "input.delay", "kafka"):
            if values.get(other) is not None:
                yield "input.fields.label_time", _excludes(values, other)


def _score_and_label(values: RawValues) -> Found:
    """Yield a field that would be the score and the label of one record."""
    score, label = (
        values.get(f"input.fields.{one}") or getattr(Fields, one) for one in ("score", "label")
    )
    paths = score.values() if isinstance(score, Mapping) else (score,)
    if label in paths:
        other = values.ref("input.fields.score")
        yield "input.fields.label", (Quoted(label), " is already ", other, "; name another field")


def _excludes(values: RawValues, other: str) -> Text:
    return ("cannot be combined with ", values.ref(other), "; remove one of them")


def _check_inputs(values: RawValues) -> Found:
    """Yield problems of the formats of input files."""
    files, given = values.names(*INPUTS), values.get("input.format")
    if given is not None and given not in _FORMATS:
        return
    formats = {format_of(file) for file in files.values()}
    for path, file in files.items():
        try:
            SOURCES.key(file, None if format_of(file) else given)
        except ParameterError as error:
            yield path, str(error).removeprefix(f"{file}: ")
    if given is not None and formats and not formats & {None, given}:
        contradicts = f" contradicts the file name {' and '.join(files.values())}; "
        yield "input.format", (Quoted(given), contradicts, REMOVE)


def _check_outputs(values: RawValues) -> Found:
    for path, file in values.names(*OUTPUTS).items():
        try:
            SINKS.key(file, default_format(file))
        except ParameterError:
            suffixes = ".csv or .jsonl (.gz or .zst may follow), or .parquet"
            yield path, f"{written(file)} has an unknown format; end the name in {suffixes}"
    if values.get("state.path") == STANDARD:
        yield "state.path", '"-" is not a file; write the name of a file'


def _files(values: RawValues) -> Found:
    """Find files that are used twice; standard input and standard output are two files."""
    files = {path: values.get(path) for path in (*INPUTS, *OUTPUTS, "state.path")}
    if files["output.predictions"] is None:
        files["output.predictions"] = STANDARD
    if files["output.dead_letters"] is None and is_name(files["output.predictions"]):
        files["output.dead_letters"] = dead_letters_beside(files["output.predictions"])
    if files["state.path"] == STANDARD:  # which `_check_outputs` reports
        del files["state.path"]
    for name, before, other, after in clashes(
        FileUse(path, file, reads=path in INPUTS) for path, file in files.items() if is_name(file)
    ):
        stream = other == "input.observations"  # which a command has as its argument
        part = Phrase(other, other, "the input") if stream else values.ref(other)
        yield name, (before, part, after)


def _learner(values: RawValues) -> Found:
    """Create the learner, if river is installed; the short names are known without it."""
    name, kind = values.get("learner.name"), values.get("task.kind") or "binary"
    known = REGRESSORS if kind == "regression" else LEARNERS
    if not isinstance(name, str) or not name or (name in known and kind != "multiclass"):
        return
    try:
        if kind == "multiclass":
            make_multi(name, ())
        else:
            (make_regressor if kind == "regression" else make)(name)
    except ParameterError as error:
        near = closest(name, known)
        hint = f"; did you mean {written(near)}?" if near and near != name else ""
        yield "learner.name", f"{error}{hint}"
    except MissingExtraError:
        pass

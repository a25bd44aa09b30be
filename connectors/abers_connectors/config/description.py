"""The meaning of a configuration, for `abers check`.

There is a sentence for each part, with defaults like other values. Parts without effect have none,
and passwords are never shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from abers import registry
from abers.stream.setting_rules import usual_calibrator
from abers_connectors.config.units import counted, duration, moment
from abers_connectors.files.formats import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers.stream.fields import Fields
    from abers.stream.settings import Settings
    from abers_connectors.config import sections
    from abers_connectors.config.model import Config

__all__ = ["described"]

_PARTS = {"record:key": "the record key", "record:timestamp": "the record timestamp"}
_HEADER = "record:header:"
_SCORES = {
    "any": "any finite number",
    "logit": "logits",
    "probability": "probabilities, compared with the calibrated ones",
}
_STARTS = {"earliest": "at the earliest records", "latest": "at new records"}
_LOST = {
    "stop": "stop the run",
    "earliest": "are skipped, up to the earliest remaining record",
    "latest": "are skipped, with all others up to the end",
}
_FORMATS = {
    "json": "",
    "avro": " in Avro",
    "protobuf": " in Protobuf",
    "json-schema": " in JSON with a schema",
}
_FIRST_STOPS = "the first one stops the run"
_NEVER_DECODED = "1,000 stop the service if no record was ever decoded"


def described(config: Config) -> dict[str, str]:
    """Return a sentence for each part of a configuration."""
    kafka = config.kafka
    settings = config.settings()
    learner = f"the learner {settings.learner}" if settings.learner else "the records"
    kind = usual_calibrator(settings)
    found = {
        "task": _task(settings),
        "scores": f"{_SCORES[settings.scores]}, from {learner}",
        "calibrator": f"{kind}, {_learning(settings, kind)}",
        **(_files_read(config) if kafka is None else _topics_read(config, kafka)),
        **_records(config),
        **(_files_written(config.output) if kafka is None else _topics_written(config, kafka)),
        **_limits(settings),
        **_assumed(settings),
        **({"state": _state(config.state)} if kafka is None else _service(config, kafka)),
        "monitoring": _monitoring(settings),
    }
    if (webhook := config.alerts.webhook) is not None:
        found["alarms"] = f"are sent to {urlsplit(webhook).hostname}"
    if (collector := config.telemetry.endpoint) is not None:
        found["telemetry"] = f"metrics and traces are sent to {collector} by OTLP"
    return found


def _monitoring(settings: Settings) -> str:
    if not settings.monitors:
        return "off"
    if not settings.tests:
        return "on, without tests"
    time, length = settings.average_run_time, settings.average_run_length
    least = duration(time) if time else counted(length, "label")
    return (
        f"on; alarms where odds are off by more than {settings.tolerance:g} times, "
        f"with at least {least} between false alarms on average"
    )


def _task(settings: Settings) -> str:
    if settings.task == "multiclass":
        return f"the probabilities of {', '.join(settings.classes)} (multiclass)"
    if settings.task == "regression":
        levels = ", ".join(f"{level:g}" for level in settings.quantiles)
        whole = {"none": "", "scored": "the mean and ", "full": "the distribution, the mean and "}
        first = whole[settings.distributions]
        return f"{first}the quantiles {levels} of the label (regression)"
    return "the probability of label 1 (binary)"


def _learning(settings: Settings, kind: str) -> str:
    if kind == registry.NONE:
        return "serves the scores as they are, and learns nothing"
    return f"{_forgetting(settings)}{_protection(settings)}"


def _protection(settings: Settings) -> str:
    return "; its probability is protected" if settings.protected else ""


def _forgetting(settings: Settings) -> str:
    if settings.window is not None:
        return f"keeps the last {counted(settings.window, 'label')}"
    if settings.max_age is not None:
        return f"forgets labels after {duration(settings.max_age)}"
    if settings.half_life is not None:
        return f"halves the weight of a label every {duration(settings.half_life)}"
    return "keeps every label"


def _files_read(config: Config) -> dict[str, str]:
    given = config.input
    if given.observations is None:
        return {}
    found = {"observations": f"{_file(given.observations, 'input')}, {_labels(given)}"}
    if given.labels is not None:
        found["labels"] = f"{_file(given.labels, 'input')}, merged by event time"
    return found


def _labels(given: sections.InputSection) -> str:
    if given.labels is not None:
        return "without labels"
    if given.fields.label_time is not None:
        return f"each with its label, which comes at the time {given.fields.label_time}"
    if given.delay is None:
        return "with labels among them"
    return f"each with its label, which comes {given.delay}"


def _topics_read(config: Config, kafka: sections.KafkaSection) -> dict[str, str]:
    found = {"brokers": f"{', '.join(kafka.bootstrap_servers)}, {_security(kafka.security)}"}
    if (registry := config.schema_registry) is not None:
        found["schemas"] = _registry(registry)
    first, second = map(_FORMATS.get, config.topic_formats)
    observations = f"topic {kafka.observations}{first}"
    if kafka.labels is None:
        return found | {"observations": f"{observations}, with labels among them"}
    return found | {
        "observations": f"{observations}, without labels",
        "labels": f"topic {kafka.labels}{second}, merged by record timestamp",
    }


def _registry(registry: sections.SchemaRegistrySection) -> str:
    user = "" if registry.username is None else f", as {registry.username}"
    if registry.token_file is not None:
        user = f", with the token in {registry.token_file}"
    away = "stops the run" if registry.on_unavailable == "stop" else "makes dead letters"
    wait = duration(registry.timeout)
    return f"{registry.url}{user}; no answer within {wait} {away}"


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


def _records(config: Config) -> dict[str, str]:
    fields = config.fields()
    found = {"fields": ", ".join(_fields(fields, scored=config.settings().learner is None))}
    if config.second_input:
        second = config.label_fields()
        names = ("id", "time", "model", "label")
        found["fields of labels"] = ", ".join(_field(name, getattr(second, name)) for name in names)
    if config.settings().task != "binary":
        return found
    ones = ", ".join(map(repr, config.input.pos_label))
    found["label 1"] = f"{ones}; all else is 0" if ones else "1 or true; label 0 is 0 or false"
    return found


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
    if fields.passthrough:
        yield _field("passed through", " ".join(fields.passthrough))


def _field(name: str, path: str) -> str:
    if path.startswith("const:"):
        return f"{name} always {path.removeprefix('const:')}"
    if path == "row" and name in ("id", "time"):
        return f"{name} is the record number"
    return f"{name} in {_PARTS.get(path) or path.replace(_HEADER, 'the header ')}"


def _files_written(output: sections.OutputSection) -> dict[str, str]:
    found = {"predictions": _file(output.predictions, "output")}
    if output.outcomes is not None:
        found["outcomes"] = _file(output.outcomes, "output")
    if output.on_bad_record == "stop":
        return found | {"bad records": _FIRST_STOPS}
    file = _file(output.dead_letters_path, "output")
    return found | {"bad records": f"{file}; {_most(output)}"}


def _most(output: sections.OutputSection) -> str:
    return f"a ratio over {output.max_dead_letter_ratio:g} stops the run"


def _topics_written(config: Config, kafka: sections.KafkaSection) -> dict[str, str]:
    output = config.output
    topics = {name: getattr(kafka, name) for name in ("predictions", "outcomes", "alerts")}
    ending = _FIRST_STOPS if output.on_bad_record == "stop" else _NEVER_DECODED
    written = _FORMATS[output.format or "json"]
    return {
        **{
            name: f"topic {topic}{'' if name == 'alerts' else written}"
            for name, topic in topics.items()
            if topic is not None
        },
        "bad records": f"topic {kafka.dead_letters}; {ending}",
        "changelog": f"topic {kafka.changelog}",
    }


def _state(state: sections.StateSection) -> str:
    if state.path is None:
        return "is not saved"
    return f"{state.path}, every {counted(state.snapshot_every, 'record')}"


def _file(path: str, direction: str) -> str:
    return f"standard {direction}" if path == STANDARD else path


def _limits(limits: Settings) -> dict[str, str]:
    """Describe the limits."""
    memory = limits.label_timeout if limits.dedup_ttl is None else limits.dedup_ttl
    silent = ""
    if limits.retire_after is not None:
        silent = f"; then those silent for over {duration(limits.retire_after)} are removed"
    learned = {}
    if limits.learn_after is not None:
        learned["learned"] = f"a label when its observation is {duration(limits.learn_after)} old"
    return learned | {
        "waiting": f"{duration(limits.label_timeout)} for a label or an observation; "
        f"at most {limits.max_pending:,} observations and {limits.max_early:,} labels of a model",
        "memory": f"at most {limits.max_bytes:,} bytes of all that waits and of finished ids",
        "late": f"an event over {duration(limits.allowed_lateness)} behind the latest one of its "
        "model",
        "too far ahead": f"an event over {duration(limits.max_clock_skew)} ahead of its record",
        "clocks": f"one event alone advances the clock of its model by at most "
        f"{duration(limits.jump)}",
        "duplicates": f"known for {duration(memory + limits.allowed_lateness)}, among the last "
        f"{limits.dedup_max_ids:,} finished ids of a model",
        "models": f"at most {limits.max_models:,}, and as many segments in all{silent}",
        "lengths": f"ids of at most {limits.max_id_bytes:,} bytes; models, segments and classes "
        f"of at most {limits.max_name_bytes:,}",
    }


def _assumed(settings: Settings) -> dict[str, str]:
    """Describe the label of observations without their own, if there is one."""
    if (label := settings.unlabelled) is None:
        return {}
    wait = duration(settings.label_timeout)
    return {"no label": f"counts as label {label} after {wait}; a later one is not learned"}


def _service(config: Config, kafka: sections.KafkaSection) -> dict[str, str]:
    """Describe the service and its Kafka settings."""
    return {
        "application": f"{kafka.application_id}, instance {kafka.group_instance_id}, "
        f"client {kafka.client}, group protocol {kafka.group_protocol}",
        "starts": _start(kafka),
        "lost records": _LOST[kafka.on_offset_out_of_range],
        "batches": f"at most {counted(kafka.max_records, 'record')} or {kafka.max_bytes:,} bytes, "
        f"or what arrives within {duration(kafka.commit_interval)}; "
        f"compression {kafka.compression}",
        "waits": f"{duration(kafka.max_task_idle)} for the other input, "
        f"{duration(kafka.transaction_timeout)} for a transaction; "
        f"exits after {duration(kafka.stall_timeout)} without progress",
        "state": _snapshots(config.state),
        "health and metrics": _http(config.http),
    }


def _start(kafka: sections.KafkaSection) -> str:
    start = kafka.starting_offset
    found = _STARTS[start] if isinstance(start, str) else f"at the records from {moment(start)}"
    found += ", or at its committed offsets"
    if kafka.publish_from is not None:
        found += f"; predictions before {moment(kafka.publish_from)} are not published"
    return found


def _snapshots(state: sections.StateSection) -> str:
    if state.path is None:
        return "the changelog, without snapshots"
    where = "shared by all machines" if state.shared else "of this machine"
    return (
        f"the changelog, and snapshots in {state.path} {where}: "
        f"the last {state.retain:,}, one every {counted(state.snapshot_every, 'record')}"
    )


def _http(http: sections.HttpSection) -> str:
    if not http.enabled:
        return "off"
    host = f"[{http.host}]" if ":" in http.host else http.host
    return f"http://{host}:{http.port or 'any free port'}"

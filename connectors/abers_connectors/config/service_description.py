"""The meaning of the sections of a service on topics."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from abers_connectors.config.options import options
from abers_connectors.config.phrases import Line, Meaning
from abers_connectors.config.units import counted, duration, moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.config import sections
    from abers_connectors.config.model import Config

__all__ = ["pages", "service_lines", "topic_inputs", "topic_outputs"]

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

"""Configurations of services: their meaning and their mistakes."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.exceptions import ConfigError
from abers.stream import Settings
from abers_connectors.config import kafka_sections
from abers_connectors.config.description import described
from abers_connectors.config.model import Config, load
from abers_connectors.config.sections import (
    HttpSection,
    KafkaSection,
    SecuritySection,
    StateSection,
)
from abers_connectors.preflight import run_problems
from abers_connectors.replay.job import open_inputs

if TYPE_CHECKING:
    from pathlib import Path

LEAST = {"bootstrap_servers": "kafka:9092", "observations": "in", "predictions": "out"}
SASL = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "abers"}
PASSWORD = "hunter2"  # noqa: S105 - nobody's password


def loaded(text: str = "", environ: dict[str, str] | None = None, **keys: Any) -> Config:  # noqa: ANN401
    """Load a service with some keys in [kafka], and TOML next to it."""
    more = tomllib.loads(text)
    flags = more | {"kafka": LEAST | more.get("kafka", {}) | keys}
    return load(flags=flags, environ=environ or {})


def kafka(environ: dict[str, str] | None = None, **keys: Any) -> KafkaSection:  # noqa: ANN401
    """Load the section [kafka]."""
    found = loaded("", environ, **keys).kafka
    assert found is not None
    return found


def problems(text: str = "", environ: dict[str, str] | None = None, **keys: Any) -> list[str]:  # noqa: ANN401
    """Return what is wrong with a service."""
    with pytest.raises(ConfigError) as error:
        loaded(text, environ, **keys)
    return [line.removeprefix("command line: ") for line in error.value.problems]


# What is loaded


def test_the_least() -> None:
    """Three keys make a service, in code as in TOML; without them there is no service."""
    config = loaded()
    assert config == Config(
        kafka=KafkaSection(bootstrap_servers=("kafka:9092",), observations="in", predictions="out")
    )
    assert config.kafka is not None
    assert config.kafka.dead_letters == "abers.dead-letters"
    assert config.kafka.changelog == "abers.changelog"
    assert (config.state, config.http) == (StateSection(), HttpSection())
    assert load(flags={"input.observations": "a.csv"}, environ={}).kafka is None


def test_topics_are_named_after_the_application() -> None:
    """The changelog and the dead letters are named after the application by default."""
    named = kafka(application_id="fraud", dead_letters="bad")
    assert (named.dead_letters, named.changelog) == ("bad", "fraud.changelog")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("a:1", ("a:1",)),
        ("a:1,b:2, c:3", ("a:1", "b:2", "c:3")),
        (["a.b-c:1", "10.0.0.1:65535"], ("a.b-c:1", "10.0.0.1:65535")),
        (["[::1]:9092"], ("[::1]:9092",)),
    ],
)
def test_brokers(given: str | list[str], found: tuple[str, ...]) -> None:
    """Brokers are a string, with commas between several, or a list; each has host and port."""
    assert kafka(bootstrap_servers=given).bootstrap_servers == found


@pytest.mark.parametrize(
    "bootstrap_servers",
    ["kafka", "kafka:0", "kafka:65536", ":9092", "PLAINTEXT://a:1", "a:1,,b:2", "", [], [5], 5],
)
def test_invalid_brokers(bootstrap_servers: object) -> None:
    """An invalid address is refused with an example of a valid one."""
    (line,) = problems(bootstrap_servers=bootstrap_servers)
    assert 'is not a broker address; write host and port, "localhost:9092", or a list' in line


@pytest.mark.parametrize(("given", "name"), [("0", "0"), ("7", "7"), ("abers-2", "abers-2")])
def test_the_instance_comes_from_the_environment(given: str, name: str) -> None:
    """The ordinal of a pod is a name, although TOML reads a number."""
    assert kafka({"ABERS_KAFKA__GROUP_INSTANCE_ID": given}).group_instance_id == name


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        (1_700_000_000_000, 1_700_000_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        (datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), 1_700_000_000_000),
    ],
)
def test_start(start: object, found: object) -> None:
    """A service starts at either end of its topics or at a time, in any form that TOML has."""
    assert kafka(starting_offset=start).starting_offset == found
    if not isinstance(found, str):
        assert kafka(publish_from=start).publish_from == found


@pytest.mark.parametrize(
    "time",
    ["soon", "2023-11-14", 1_700_000_000, -2, True, datetime(2023, 1, 1)],  # noqa: DTZ001
)
def test_invalid_times(time: object) -> None:
    """Local times without an offset and Kafka's negative codes are not times."""
    (line,) = problems(starting_offset=time)
    assert re.fullmatch(
        r'kafka.starting_offset: .* is not a time; write "earliest", "latest", whole .*Z"', line
    )
    (line,) = problems(publish_from=time)
    assert re.fullmatch(
        r'kafka.publish_from: .* is not a time; write whole milliseconds .*Z"', line
    )


def test_what_files_and_topics_share() -> None:
    """Fields, label values and the tolerance for bad records apply to topics too."""
    text = """
    input.pos_label = ["fraud"]
    input.fields.id = "record:key"
    input.fields.time = "record:timestamp"
    input.fields.passthrough = ["record:header:trace"]
    input.label_fields.label = "outcome"
    output = {on_bad_record = "stop", max_dead_letter_ratio = 0.005}
    """
    config = loaded(text, labels="labels")
    assert config.second_input
    assert config.fields().id == config.label_fields().id == "record:key"
    assert config.label_fields().label == "outcome"
    assert not loaded().second_input


def test_a_service_has_no_files() -> None:
    """Reading the files of a service is an error, because it has none."""
    with pytest.raises(ConfigError, match=r"kafka: these are topics, not files"):
        open_inputs(loaded())
    with pytest.raises(ConfigError, match=r"serve: .* without inputs; run `abers serve` with it"):
        open_inputs(load(flags={"serve": {}}, environ={}))


# What it means


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/services/T0/s3cr3t?x=1",
        "https://[2001:db8::1]:8443/",
        "http://localhost:9/s3cr3t",
        "http://127.0.0.1/s3cr3t",
        "http://[::1]:80/s3cr3t",
    ],
)
def test_a_web_hook(url: str) -> None:
    """Alarms are sent over TLS, or on this machine; only the host is ever shown."""
    environ = {"ABERS_ALERTS__WEBHOOK": url}
    config = load(flags={"input.observations": "x.jsonl"}, environ=environ)
    assert config.alerts.webhook == url
    (meaning,) = words(config)["Watches"]
    assert meaning.endswith(f"; alarms are sent to {urlsplit(url).hostname}")
    assert "s3cr3t" not in f"{meaning} {config!r}"


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/s3cr3t",
        "https://user:s3cr3t@example.com/",
        "https:///s3cr3t",
        "https://example.com/s3cr3t path",
        "https://example.com/s3cr3t\n",
        "https://example.com:port/s3cr3t",
        "https://[::1/s3cr3t",
        "ftp://localhost/s3cr3t",
        "s3cr3t",
        "",
        5,
        ["https://example.com/s3cr3t"],
    ],
)
def test_invalid_web_hooks(url: object) -> None:
    """Any other URL is refused without being shown."""
    with pytest.raises(ConfigError) as error:
        load(flags={"input.observations": "x.jsonl", "alerts.webhook": url}, environ={})
    assert error.value.problems == (
        (
            "command line: alerts.webhook: must be a URL that begins with https://, or with "
            "http:// on this machine, and has no user and password"
        ),
    )


def test_meaning() -> None:
    """The meaning of a service covers every key and shows no password."""
    text = """
    input.fields = {id = "record:key", time = "record:timestamp", model = "record:header:model"}
    state = {path = "s3://bucket/abers", snapshot_every = 1000, shared = true, retain = 2}
    http.host = "::1"
    """
    meaning = words(loaded(text, outcomes="settled", alerts="alarms", security=SASL))
    assert meaning == {
        "Task": ["two classes; scores are any numbers"],
        "Reads": [
            "kafka:9092, encrypted, as abers by SCRAM-SHA-512",
            "topic in; observations and labels mixed",
            "id the record key · time the record timestamp · model the header model",
            "score score · label label (1, true)",
        ],
        "Writes": [
            (
                "predictions to topic out; outcomes to topic settled; alarms to topic alarms; "
                "unreadable records to topic abers.dead-letters; stops if it never read one, and "
                "1,000 are unreadable; changelog to topic abers.changelog"
            ),
        ],
        "Calibrates": ["ivap; all labels; p is merged from the interval"],
        "Waits": ["7 days for a label"],
        "Watches": [
            "alarm beyond 1.25 times the odds; 1,000,000 labels on average between false alarms",
        ],
        "Runs": [
            "as abers, instance 0; by librdkafka; group protocol classic",
            (
                "starts at the earliest records, or at its committed offsets; lost records stop "
                "the run"
            ),
            (
                "state in the changelog, and snapshots in s3://bucket/abers shared by all "
                "machines: the last 2, one every 1,000 records"
            ),
        ],
        "Serves": ["page, health and metrics at http://[::1]:8090"],
    }


def words(config: Config) -> dict[str, list[str]]:
    """Return the lines on each part of a configuration."""
    return {part: [*map(str, lines)] for part, lines in described(config).items()}


SSL = "protocol = 'SASL_SSL'"
LOGINS = {
    "mechanism = 'OAUTHBEARER', token_endpoint_url = 'https://login.example.com/t?x', "
    "client_id = 'c'": "kafka:9092, encrypted, as client c of login.example.com by OAUTHBEARER",
    "mechanism = 'OAUTHBEARER', token_file = 'f'": (
        "kafka:9092, encrypted, with the token in f by OAUTHBEARER"
    ),
    "mechanism = 'OAUTHBEARER'": (
        "kafka:9092, encrypted, with the token in the environment by OAUTHBEARER"
    ),
    "mechanism = 'AWS_MSK_IAM', aws_region = 'eu-west-1'": (
        "kafka:9092, encrypted, with the credentials of AWS for eu-west-1 by AWS_MSK_IAM"
    ),
    "mechanism = 'GSSAPI'": "kafka:9092, encrypted, with a Kerberos ticket by GSSAPI",
}


@pytest.mark.parametrize(
    ("text", "part", "line"),
    [
        (
            "kafka.labels = 'l'",
            "Reads",
            "topic in; topic l for the labels; merged by record timestamp",
        ),
        (
            "kafka.starting_offset = 'latest'",
            "Runs",
            "starts at new records, or at its committed offsets; lost records stop the run",
        ),
        (
            "kafka = {starting_offset = 0, publish_from = 1000}",
            "Runs",
            (
                "starts at the records from 1970-01-01T00:00:00.000Z, or at its committed "
                "offsets; predictions before 1970-01-01T00:00:01.000Z are not published; lost "
                "records stop the run"
            ),
        ),
        (
            "state.path = 'dir'",
            "Runs",
            (
                "state in the changelog, and snapshots in dir of this machine: "
                "the last 3, one every 100,000 records"
            ),
        ),
        ("", "Runs", "state in the changelog, without snapshots"),
        ("http.enabled = false", "Serves", "neither page nor metrics"),
        (
            "http.port = 0",
            "Serves",
            "page, health and metrics at http://127.0.0.1:any free port",
        ),
        (
            "output.on_bad_record = 'stop'",
            "Writes",
            (
                "predictions to topic out; the first unreadable record stops the run; "
                "changelog to topic abers.changelog"
            ),
        ),
        (
            "kafka.security = {protocol = 'SSL', certfile = 'c.pem', check_hostname = false}",
            "Reads",
            "kafka:9092, encrypted, host names not checked, with the certificate c.pem",
        ),
        *(
            (
                f"kafka = {{client = 'kafka-python', security = {{{SSL}, {login}}}}}",
                "Reads",
                login_words,
            )
            for login, login_words in LOGINS.items()
        ),
    ],
)
def test_meaning_of_other_keys(text: str, part: str, line: str) -> None:
    """Each part of the meaning follows the configuration."""
    assert line in words(loaded(text))[part]


# Mistakes

OAUTH = "protocol = 'SASL_SSL', mechanism = 'OAUTHBEARER'"
ISSUER = "token_endpoint_url = 'https://login.example.com/t?x', client_id = 'c'"
MISTAKES = {
    "kafka.observations = 'a b'": (
        'kafka.observations: "a b" is not a topic name; use up to 249 of a-z, A-Z, 0-9, dots,'
        " _ and -"
    ),
    "kafka.observations = '..'": (
        'kafka.observations: ".." is not a topic name; use up to 249 of a-z, A-Z, 0-9, dots, '
        "_ and -"
    ),
    "kafka.application_id = 'a/b'": (
        'kafka.application_id: "a/b" is not a name; use up to 83 of a-z, A-Z, 0-9, dots, _ '
        'and -, such as "fraud-1"'
    ),
    "kafka.group_instance_id = 1.5": (
        "kafka.group_instance_id: 1.5 is not a name; use up to 83 of a-z, A-Z, 0-9, dots, _ "
        'and -, such as "fraud-1"'
    ),
    "kafka.labels = 'in'": (
        'kafka.labels: "in" is already kafka.observations; if it holds both, remove kafka.labels'
    ),
    "kafka.predictions = 'in'": (
        'kafka.predictions: "in" is already kafka.observations; name another topic'
    ),
    "kafka.routed = 'r'": 'kafka.routed: needs kafka.route_by = "model"',
    "kafka = {route_by = 'model', outcomes = 'abers.routed'}": (
        'kafka.routed: "abers.routed" is already kafka.outcomes; name another topic'
    ),
    "kafka.route_by = 'model'\ninput.fields.model = 'const:m'\n"
    "input.label_fields.model = 'm'\nkafka.labels = 'l'": (
        "kafka.route_by: routes a label by its model, and input.fields.model and "
        "input.label_fields.model name a constant and a field; write the same in both"
    ),
    "kafka.outcomes = 'abers.changelog'": (
        'kafka.changelog: "abers.changelog" is already kafka.outcomes; name another topic'
    ),
    "kafka = {application_id = 'x', alerts = 'x.dead-letters'}": (
        'kafka.alerts: "x.dead-letters" is already kafka.dead_letters; name another topic'
    ),
    "kafka.on_offset_out_of_range = 'earlist'": (
        'kafka.on_offset_out_of_range: "earlist" is not one of "stop", "earliest", "latest"; '
        'did you mean "earliest"?'
    ),
    "kafka.topic = 'x'": "kafka.topic: unknown key; [kafka] has bootstrap_servers, "
    "client, group_protocol, application_id, group_instance_id, "
    "observations, labels, predictions, outcomes, dead_letters, route_by, routed, changelog, "
    "alerts, "
    "starting_offset, "
    "publish_from, on_offset_out_of_range, max_records, max_bytes, commit_interval, max_task_idle, "
    "session_timeout, "
    "transaction_timeout, stall_timeout, leave_group_on_close, compression, replication_factor, "
    "partitions, "
    "security",
    "kafka.commit_interval = '2h'": 'kafka.commit_interval: must be at most "1h"',
    "kafka.session_timeout = 0": (
        'kafka.session_timeout: must be longer than zero; write "250ms", "5s", "5m", "2h" or "7d"'
    ),
    "kafka = {client = 'kafka-python', group_protocol = 'consumer'}": (
        'kafka.group_protocol: "consumer" needs kafka.client = "librdkafka"'
    ),
    "kafka = {client = 'librdkafka', group_protocol = 'consumer', session_timeout = '9s'}": (
        'kafka.session_timeout: applies only to kafka.group_protocol = "classic": with "consumer" '
        "the brokers set the consumer.session.timeout.ms of the group; remove it"
    ),
    "kafka.stall_timeout = '10s'": (
        "kafka.stall_timeout: must be longer than kafka.transaction_timeout"
    ),
    "kafka.transaction_timeout = '1m'": (
        "kafka.stall_timeout: must be longer than kafka.transaction_timeout"
    ),
    "kafka.replication_factor = 0": "kafka.replication_factor: 0 is too small; write at least 1",
    "http.port = 65536": "http.port: 65536 is too large; write at most 65535",
    "kafka.alerts = 'x'\nmonitoring.tests = false": (
        "kafka.alerts: never gets an alarm, because monitoring.tests = false; remove one of the two"
    ),
    # files
    "input.observations = 'a.csv'": (
        "input.observations: applies only to files; with [kafka], set kafka.observations instead"
    ),
    "input.labels = 'a.csv'": (
        "input.labels: applies only to files; with [kafka], set kafka.labels instead"
    ),
    "output.predictions = '-'": (
        "output.predictions: applies only to files; with [kafka], set kafka.predictions instead"
    ),
    "output.outcomes = 'b.csv'": (
        "output.outcomes: applies only to files; with [kafka], set kafka.outcomes instead"
    ),
    "output.dead_letters = 'b.csv'": (
        "output.dead_letters: applies only to files; with [kafka], set kafka.dead_letters instead"
    ),
    "input.format = 'csv'": (
        'input.format: "csv" applies only to files; for topics write "json", "avro", "protobuf", '
        '"json-schema"'
    ),
    "input.format = 'avro'": (
        'input.format: "avro" needs a schema registry; set schema_registry.url'
    ),
    "output.format = 'protobuf'": (
        'output.format: "protobuf" needs a schema registry; set schema_registry.url'
    ),
    "input.label_format = 'json'": "input.label_format: needs a second input; set kafka.labels",
    "schema_registry.url = 'https://registry'": (
        'schema_registry: is asked only for "avro", "protobuf", "json-schema"; set input.format, '
        "or remove it"
    ),
    "input.format = 'avro'\nschema_registry.url = 'https://u:p@registry'": (
        'schema_registry.url: must be a URL such as "https://registry:8081", without user, '
        "password and query"
    ),
    "telemetry.endpoint = 'collector:4318'": (
        'telemetry.endpoint: must be a URL such as "http://localhost:4318", without user, password '
        "and query"
    ),
    "input.format = 'avro'\nschema_registry = {url = 'http://registry', cafile = 'ca.pem'}": (
        'schema_registry.cafile: applies only to TLS; write "https://", or remove it'
    ),
    (
        "input.format = 'avro'\n"
        "schema_registry = {url = 'http://registry', username = 'u', token_file = 't'}"
    ): (
        "schema_registry.token_file: cannot be combined with schema_registry.username; remove one "
        "of them"
    ),
    "input.format = 'avro'\nschema_registry = {url = 'http://registry', password_file = 'p'}": (
        "schema_registry.password_file: needs a user; set schema_registry.username"
    ),
    "input.format = 'avro'\nschema_registry = {url = 'http://registry', timeout = '60s'}": (
        "schema_registry.timeout: must be shorter than kafka.stall_timeout"
    ),
    "input.delay = 5": (
        "input.delay: applies only to files; labels in topics are records, so remove it"
    ),
    "input.label_fields.id = 'a'": "input.label_fields: needs a second input; set kafka.labels",
    "input.fields.id = 'row'": (
        'input.fields.id: "row" applies only to files; name a field, or write "record:key"'
    ),
    "input.fields.time = 'row'": (
        'input.fields.time: "row" applies only to files; name a field, or write "record:timestamp"'
    ),
    "input.fields.id = 'record:keys'": (
        'input.fields.id: "record:keys" is not a part of a record; write "record:key", '
        '"record:timestamp" or "record:header:NAME"'
    ),
    "kafka.labels = 'l'\ninput.label_fields.model = 'record:observation'": (
        'input.label_fields.model: "record:observation" needs a router; set kafka.route_by = '
        '"model"'
    ),
    "kafka.route_by = 'model'\ninput.fields.model = 'record:observation'": (
        'input.fields.model: "record:observation" is a model of labels; name a field'
    ),
    (
        "kafka = {route_by = 'model', labels = 'l'}\ninput.label_fields.id = 'record:observation'"
    ): 'input.label_fields.id: "record:observation" is a model of labels; name a field',
    "input.fields.passthrough = ['record:header:']": (
        'input.fields.passthrough: "record:header:" is not a part of a record; write '
        '"record:key", "record:timestamp" or "record:header:NAME"'
    ),
    # security
    "kafka.security.protocol = 'ssl'": (
        'kafka.security.protocol: "ssl" is not one of "PLAINTEXT", "SSL", "SASL_PLAINTEXT", '
        '"SASL_SSL"; did you mean "SSL"?'
    ),
    "kafka.security.cafile = 'ca.pem'": (
        'kafka.security.cafile: applies only to TLS; set kafka.security.protocol = "SSL" or '
        '"SASL_SSL", or '
        "remove it"
    ),
    "kafka.security.check_hostname = false": (
        'kafka.security.check_hostname: applies only to TLS; set kafka.security.protocol = "SSL" '
        "or "
        '"SASL_SSL", or remove it'
    ),
    "kafka.security = {protocol = 'SSL', keyfile = 'k.pem'}": (
        "kafka.security.keyfile: needs a certificate; set kafka.security.certfile"
    ),
    "kafka.security = {protocol = 'SSL', username = 'u'}": (
        "kafka.security.username: applies only to SASL; set kafka.security.protocol = "
        '"SASL_SSL", or remove it'
    ),
    "kafka.security = {protocol = 'SASL_SSL', username = 'u'}": (
        'kafka.security.mechanism: is missing; kafka.security.protocol = "SASL_SSL" needs one, '
        "such as "
        '"SCRAM-SHA-512"'
    ),
    "kafka.security = {protocol = 'SASL_SSL', mechanism = 'PLAIN'}": (
        'kafka.security.username: is missing; kafka.security.mechanism = "PLAIN" needs one, such '
        "as "
        '"abers"'
    ),
    (
        "kafka = {client = 'kafka-python', security = {protocol = 'SASL_SSL', "
        "mechanism = 'GSSAPI', username = 'u'}}"
    ): (
        'kafka.security.username: applies only to "PLAIN" and "SCRAM-SHA-256" and "SCRAM-SHA-512"; '
        "remove it"
    ),
    "kafka.security = {protocol = 'SSL', token_file = 't'}": (
        "kafka.security.token_file: applies only to SASL; set kafka.security.protocol = "
        '"SASL_SSL", or remove it'
    ),
    "kafka.security = {protocol = 'SSL', key_password_file = 'p'}": (
        "kafka.security.key_password_file: needs a certificate; set kafka.security.certfile"
    ),
    f"kafka.security = {{{OAUTH}, client_id = 'c'}}": (
        "kafka.security.token_endpoint_url: is missing; kafka.security.client_id needs one, such "
        'as "https://login.example.com/oauth2/token"'
    ),
    f"kafka.security = {{{OAUTH}, token_endpoint_url = 'https://a.b/'}}": (
        "kafka.security.client_id: is missing; kafka.security.token_endpoint_url needs one, such "
        'as "abers"'
    ),
    f"kafka.security = {{{OAUTH}, token_endpoint_url = 'http://a.b/', client_id = 'c'}}": (
        "kafka.security.token_endpoint_url: must be a URL that begins with https://, or with "
        "http:// on this machine, and has no user and password"
    ),
    f"kafka.security = {{{OAUTH}, {ISSUER}, token_file = 't'}}": (
        "kafka.security.token_file: cannot be combined with kafka.security.token_endpoint_url; "
        "remove one of them"
    ),
    f"kafka.security = {{{OAUTH}, extensions = {{a1 = 'x'}}}}": (
        'kafka.security.extensions: {"a1": "x"} is not a section of extensions; write names of a-z '
        'and A-Z, and values without spaces: {logicalCluster = "lkc-1"}'
    ),
    f"kafka.security = {{{OAUTH}, aws_region = 'r'}}": (
        'kafka.security.aws_region: applies only to "AWS_MSK_IAM"; remove it'
    ),
    "kafka.security = {protocol = 'SASL_SSL', mechanism = 'AWS_MSK_IAM'}": (
        'kafka.security.aws_region: is missing; kafka.security.mechanism = "AWS_MSK_IAM" needs '
        "one, "
        'such as "eu-west-1"'
    ),
    (
        "kafka.security = {protocol = 'SASL_PLAINTEXT', mechanism = 'AWS_MSK_IAM', "
        "aws_region = 'r'}"
    ): 'kafka.security.protocol: must be "SASL_SSL" for "AWS_MSK_IAM"',
    "kafka.security = {protocol = 'SASL_SSL', mechanism = 'GSSAPI'}": (
        'kafka.security.mechanism: the package of librdkafka has no "GSSAPI"; set '
        'kafka.client = "kafka-python"'
    ),
    "kafka.security = {protocol = 'SASL_SSL', mechanism = ['PLAIN']}": (
        'kafka.security.mechanism: ["PLAIN"] is not one of "PLAIN", "SCRAM-SHA-256", '
        '"SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI"'
    ),
}


def kafka_client(**keys: Any) -> str:  # noqa: ANN401
    """Return the client of a configuration, which exists."""
    kafka = loaded(**keys).kafka
    assert kafka is not None
    return kafka.client


def test_librdkafka_is_the_default_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without librdkafka the client is kafka-python, and the consumer protocol is refused."""
    assert kafka_client() == kafka_client(group_protocol="consumer") == "librdkafka"
    monkeypatch.setattr(kafka_sections, "find_spec", lambda _: None)
    assert kafka_client() == "kafka-python"
    with pytest.raises(ConfigError, match=r'"consumer" needs kafka\.client = "librdkafka"'):
        loaded(group_protocol="consumer")


@pytest.mark.parametrize(("text", "line"), MISTAKES.items())
def test_mistakes(text: str, line: str) -> None:
    """A mistake is one line: the key, what is wrong, and how to fix it."""
    assert problems(text) == [line]


def test_what_is_missing() -> None:
    """Each missing key has a message with what to write."""
    with pytest.raises(ConfigError) as error:
        load(flags={"kafka": {}}, environ={})
    assert error.value.problems == (
        (
            "command line: kafka.bootstrap_servers: is missing; write the address of a broker, "
            '"localhost:9092"'
        ),
        "command line: kafka.observations: is missing; write the name of a topic",
        "command line: kafka.predictions: is missing; write the name of a topic",
    )


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("input.observations", "input.observations"),
        ("input.fields.score", "input.fields"),
        ("output.predictions", "output"),
        ("state.path", "state.path"),
    ],
)
def test_what_a_server_has_not(key: str, path: str) -> None:
    """A key that only files have is refused with a section [serve]."""
    with pytest.raises(ConfigError) as error:
        load(flags={"serve": {}, key: "x"}, environ={})
    (line,) = error.value.problems
    says = f"{path}: has no effect in a server, with a section [serve]; remove it"
    assert line == f"command line: {says}"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("http.port = 80", "http"),
        ("http = {}", "http"),
        ("state.shared = false", "state.shared"),
        ("state.retain = 3", "state.retain"),
    ],
)
def test_what_files_have_not(text: str, path: str) -> None:
    """A key that only a service has is refused without a service."""
    flags = tomllib.loads(text) | {"input": {"observations": "a.csv"}}
    with pytest.raises(ConfigError) as error:
        load(flags=flags, environ={})
    line = f"command line: {path}: applies only to topics, in a section [kafka]; remove it"
    assert error.value.problems == (line,)


def test_records_of_kafka_are_not_in_files() -> None:
    """Files have no record key."""
    flags = {"input": {"observations": "a.csv", "fields": {"id": "record:key"}}}
    with pytest.raises(
        ConfigError, match=r'fields.id: "record:key" applies only to topics; without'
    ):
        load(flags=flags, environ={})


# Secrets


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"kafka.security.password = '{PASSWORD}'", "PASSWORD"),
        (f"kafka.password = '{PASSWORD}'", "PASSWORD"),
        (f"kafka.security.sasl_plain_password = '{PASSWORD}'", "PASSWORD"),
        (f"kafka.security.key_password = '{PASSWORD}'", "KEY_PASSWORD"),
        (f"kafka.security.client_secret = '{PASSWORD}'", "CLIENT_SECRET"),
        (f"kafka.security.token = '{PASSWORD}'", "TOKEN"),
        (f"kafka.security.password = {{ value = '{PASSWORD}' }}", "PASSWORD"),
    ],
)
def test_a_secret_is_refused(text: str, kind: str) -> None:
    """A secret in a configuration is refused, not shown, and sent to where it belongs."""
    (line,) = problems(text)
    assert line.partition(": ")[2] == (
        f"a configuration holds no secrets; set ABERS_KAFKA_{kind} in the environment, or "
        f"kafka.security.{kind.lower()}_file"
    )


def test_the_token_of_the_page_is_refused() -> None:
    """The token of the live page has a variable and a key of its own."""
    (line,) = problems("http.token = 'x'")
    assert line.endswith("set ABERS_HTTP_TOKEN in the environment, or http.token_file")


def test_a_misspelled_file_of_a_secret_is_an_unknown_key() -> None:
    """The key of a file is no secret, so its right name is offered."""
    (line,) = problems("kafka.security.pasword_file = 'x'")
    assert line.endswith('kafka.security.pasword_file: unknown key; did you mean "password_file"?')


@pytest.mark.parametrize(
    ("flags", "environ"),
    [
        ({"kafka": LEAST | {"security": PASSWORD}}, {}),
        ({"kafka": [LEAST | {"security": {"password": PASSWORD}}]}, {}),
        ({"kafka": LEAST | {"security": {"mechanism": {"password": PASSWORD}}}}, {}),
        ({"kafka": LEAST | {"security": {"mechanism": [[{"Password": PASSWORD}]]}}}, {}),
        ({"kafka": LEAST | {"bootstrap_servers": f"me:{PASSWORD}@kafka:9092"}}, {}),
        ({"kafka": LEAST, "state": {"path": f"ftp://me:{PASSWORD}@host/path"}}, {}),
        ({"kafka": LEAST}, {"ABERS_KAFKA__SECURITY__PASSWORD": PASSWORD}),
        ({"kafka": LEAST}, {"ABERS_KAFKA__SECURITY": f"{{password={PASSWORD}}}"}),
        ({"kafka": LEAST | {"security": "x"}}, {"ABERS_KAFKA__SECURITY__PASSWORD": PASSWORD}),
    ],
)
def test_no_message_has_a_password(flags: dict[str, Any], environ: dict[str, str]) -> None:
    """No message repeats a password, wherever it was written by mistake."""
    with pytest.raises(ConfigError) as error:
        load(flags=flags, environ=environ)
    assert PASSWORD not in str(error.value)


def test_no_configuration_has_a_password() -> None:
    """Passwords in the environment are not part of a configuration, so it cannot show them."""
    environ = {"ABERS_KAFKA_PASSWORD": PASSWORD, "ABERS_KAFKA_KEY_PASSWORD": PASSWORD}
    config = loaded("", environ, security=SASL)
    assert config == loaded(security=SASL)
    assert PASSWORD not in repr(config) + str(words(config)) + repr(config.values())


def test_run_problems(tmp_path: Path) -> None:
    """A service needs its certificate files and the password of its user."""
    there = tmp_path / "ca.pem"
    there.touch()
    config = loaded(security=SASL | {"cafile": str(there), "certfile": str(tmp_path / "ca.pme")})
    assert list(run_problems(config, {})) == [
        f"kafka.security.certfile: {tmp_path}/ca.pme: no such file; did you mean ca.pem?",
        (
            "kafka.security.username: set its password in the environment variable "
            "ABERS_KAFKA_PASSWORD, or name a file that has it in kafka.security.password_file"
        ),
    ]
    fine = loaded(security=SASL)
    assert list(run_problems(fine, {"ABERS_KAFKA_PASSWORD": PASSWORD})) == []
    kept = msgspec.structs.replace(
        fine, stream=Settings(learner="tree"), state=StateSection(path="d")
    )
    (problem,) = run_problems(kept, {"ABERS_KAFKA_PASSWORD": PASSWORD})
    assert problem.startswith("state.path: the saved state of a learner needs a secret key")


@given(st.sampled_from(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]))
def test_protocols(protocol: Any) -> None:  # noqa: ANN401 - one of the words
    """The name of a protocol implies encryption."""
    security = SecuritySection(protocol=protocol)
    assert security.encrypted == ("SSL" in protocol)

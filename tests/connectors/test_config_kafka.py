"""Configurations of services: what they mean, and the mistakes in them."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.exceptions import ConfigError
from abers_connectors._config_words import described
from abers_connectors.checking import hindrances
from abers_connectors.config import Config, Http, Kafka, Learner, Security, State, load
from abers_connectors.inputs import open_source

if TYPE_CHECKING:
    from pathlib import Path

LEAST = {"bootstrap": "kafka:9092", "observations": "in", "predictions": "out"}
SASL = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "abers"}
PASSWORD = "hunter2"  # noqa: S105 - not one of anybody


def loaded(text: str = "", environ: dict[str, str] | None = None, **keys: Any) -> Config:  # noqa: ANN401
    """Load a service with some keys in [kafka], and TOML beside it."""
    more = tomllib.loads(text)
    flags = more | {"kafka": LEAST | more.get("kafka", {}) | keys}
    return load(flags=flags, environ=environ or {})


def kafka(environ: dict[str, str] | None = None, **keys: Any) -> Kafka:  # noqa: ANN401
    """Load the section [kafka]."""
    found = loaded("", environ, **keys).kafka
    assert found is not None
    return found


def problems(text: str = "", environ: dict[str, str] | None = None, **keys: Any) -> list[str]:  # noqa: ANN401
    """Give what is wrong with a service."""
    with pytest.raises(ConfigError) as told:
        loaded(text, environ, **keys)
    return [line.removeprefix("command line: ") for line in told.value.problems]


# What is loaded


def test_the_least() -> None:
    """Three keys make a service, in code as in TOML; files have none of it."""
    config = loaded()
    assert config == Config(
        kafka=Kafka(bootstrap=("kafka:9092",), observations="in", predictions="out")
    )
    assert config.kafka is not None
    assert config.kafka.dead_letters == "abers.dead-letters"
    assert config.kafka.changelog == "abers.changelog"
    assert (config.state, config.http) == (State(), Http())
    assert load(flags={"input.observations": "a.csv"}, environ={}).kafka is None


def test_topics_are_named_after_the_application() -> None:
    """The names of our own topics begin with that of the application, unless they are given."""
    named = kafka(app="fraud", dead_letters="bad")
    assert (named.dead_letters, named.changelog) == ("bad", "fraud.changelog")


@pytest.mark.parametrize("bootstrap", ["a:1", ["a.b-c:1", "10.0.0.1:65535"], ["[::1]:9092"]])
def test_brokers(bootstrap: str | list[str]) -> None:
    """One broker is a text, several are a list; each has a host and a port."""
    expected = (bootstrap,) if isinstance(bootstrap, str) else tuple(bootstrap)
    assert kafka(bootstrap=bootstrap).bootstrap == expected


@pytest.mark.parametrize(
    "bootstrap",
    ["kafka", "kafka:0", "kafka:65536", ":9092", "PLAINTEXT://a:1", "a:1,b:2", "", [], [5], 5],
)
def test_no_brokers(bootstrap: object) -> None:
    """What names no broker is refused with how to write one."""
    (line,) = problems(bootstrap=bootstrap)
    assert line.endswith('is no broker; write host and port, "localhost:9092", or a list of such')


@pytest.mark.parametrize(("given", "name"), [("0", "0"), ("7", "7"), ("abers-2", "abers-2")])
def test_the_instance_comes_from_the_environment(given: str, name: str) -> None:
    """The ordinal of a pod is a name, though TOML reads a number."""
    assert kafka({"ABERS_KAFKA__INSTANCE": given}).instance == name


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
    """A service starts at an end of its topics, or at a time, however TOML has it."""
    assert kafka(start=start).start == found
    if not isinstance(found, str):
        assert kafka(publish_from=start).publish_from == found


@pytest.mark.parametrize(
    "time",
    ["soon", "2023-11-14", 1_700_000_000, -2, True, datetime(2023, 1, 1)],  # noqa: DTZ001
)
def test_no_time(time: object) -> None:
    """What is no time is refused, that of a place without an offset, and the codes of Kafka too."""
    (line,) = problems(start=time)
    assert re.fullmatch(r'kafka.start: .* is no time; write "earliest", "latest", whole .*Z"', line)
    (line,) = problems(publish_from=time)
    assert re.fullmatch(r'kafka.publish_from: .* is no time; write whole milliseconds .*Z"', line)


def test_what_files_and_topics_share() -> None:
    """Fields, the values of labels, and the tolerance are the same for topics."""
    text = """
    input.positive = ["fraud"]
    input.fields.id = "record:key"
    input.fields.time = "record:timestamp"
    input.fields.extra = ["record:header:trace"]
    input.label_fields.label = "outcome"
    output = {on_bad_record = "stop", max_dead_per_1000 = 5}
    """
    config = loaded(text, labels="labels")
    assert config.second_input
    assert config.fields().id == config.label_fields().id == "record:key"
    assert config.label_fields().label == "outcome"
    assert not loaded().second_input


def test_a_service_has_no_files() -> None:
    """Whoever wants to read the files of a service is told that there are none."""
    with pytest.raises(ConfigError, match=r"kafka: these are topics, not files"):
        open_source(loaded())


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
    """Alarms may be sent encrypted, or on this machine; nothing but the host is shown."""
    environ = {"ABERS_ALERTS__WEBHOOK": url}
    config = load(flags={"input.observations": "x.jsonl"}, environ=environ)
    assert config.alerts.webhook == url
    told = described(config)["alarms"]
    assert told.removeprefix("each is told to ") == urlsplit(url).hostname
    assert "s3cr3t" not in f"{told} {config!r}"


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
def test_no_web_hook(url: object) -> None:
    """Any other address is refused, without being shown."""
    with pytest.raises(ConfigError) as told:
        load(flags={"input.observations": "x.jsonl", "alerts.webhook": url}, environ={})
    assert told.value.problems == (
        (
            'command line: alerts.webhook: "…" is no address that alarms may be sent to; write one '
            "that begins with https://, or with http:// on this machine, and without user and "
            "password"
        ),
    )


def test_words() -> None:
    """A service is told in words, every key of it, and no password."""
    text = """
    input.fields = {id = "record:key", time = "record:timestamp", model = "record:header:model"}
    state = {path = "s3://bucket/abers", every = 1000, shared = true, keep = 2}
    http.host = "::1"
    """
    meaning = described(loaded(text, outcomes="told", alerts="alarms", security=SASL))
    assert meaning == {
        "task": "the probability of label 1 (binary)",
        "scores": "any finite number, from the records",
        "calibrator": "ivap, keeps every label",
        "brokers": "kafka:9092, encrypted, as abers by SCRAM-SHA-512",
        "observations": "topic in, labels among them",
        "fields": "id in the key of the record, time in the time of the record, "
        "model in the header model, score in score, label in label",
        "label 1": "1 or true; label 0 is 0 or false",
        "predictions": "topic out",
        "outcomes": "topic told",
        "alerts": "topic alarms",
        "bad records": "topic abers.dead-letters; more than 100 of 1,000 end the run",
        "changelog": "topic abers.changelog",
        "waiting": "7 days for a label or an observation; "
        "at most 1,000,000 observations and 100,000 labels",
        "late": "an event over 0 seconds behind the latest one",
        "too far ahead": "an event over 5 minutes ahead of its record",
        "clocks": "one event alone moves that of its model by at most 1,008 minutes",
        "duplicates": "known for 7 days, among the last 1,000,000 finished ids",
        "models": "at most 1,000, and as many segments in all",
        "lengths": "ids of at most 256 bytes; models, segments and classes of at most 256",
        "application": "abers, instance 0",
        "begins": "with the earliest records, or where it was",
        "lost records": "end the run",
        "batches": "at most 2,000 records or 4,194,304 bytes, or what comes within "
        "10 milliseconds; compression lz4",
        "waits": "50 milliseconds for the other input, 10 seconds for a transaction; "
        "ends itself after 1 minute without progress",
        "state": "the changelog, and snapshots in s3://bucket/abers for all machines: "
        "the last 2, one every 1,000 records",
        "health and metrics": "http://[::1]:8090",
        "monitoring": "on",
    }


@pytest.mark.parametrize(
    ("text", "part", "words"),
    [
        ("kafka.labels = 'l'", "labels", "topic l, merged by the time of the records"),
        ("kafka.labels = 'l'", "observations", "topic in, without labels"),
        ("kafka.start = 'latest'", "begins", "with the records to come, or where it was"),
        (
            "kafka = {start = 0, publish_from = 1000}",
            "begins",
            (
                "with the records from 1970-01-01T00:00:00.000Z, or where it was; "
                "predictions before 1970-01-01T00:00:01.000Z are not published"
            ),
        ),
        (
            "state.path = 'dir'",
            "state",
            (
                "the changelog, and snapshots in dir for this machine: "
                "the last 3, one every 100,000 records"
            ),
        ),
        ("", "state", "that of the changelog, without snapshots"),
        ("http.enabled = false", "health and metrics", "are not told"),
        ("http.port = 0", "health and metrics", "http://127.0.0.1:any free port"),
        (
            "output.on_bad_record = 'stop'",
            "bad records",
            "topic abers.dead-letters; the first one ends the run",
        ),
        (
            "kafka.security = {protocol = 'SSL', certfile = 'c.pem', check_hostname = false}",
            "brokers",
            "kafka:9092, encrypted, by whatever name they have, with the certificate c.pem",
        ),
    ],
)
def test_words_of_other_keys(text: str, part: str, words: str) -> None:
    """A part of a service is told as it is configured."""
    assert described(loaded(text))[part] == words


# Mistakes

MISTAKES = {
    "kafka.observations = 'a b'": 'kafka.observations: "a b" is no name of a topic; '
    "write up to 249 letters, digits, dots, _ and -",
    "kafka.observations = '..'": 'kafka.observations: ".." is no name of a topic; '
    "write up to 249 letters, digits, dots, _ and -",
    "kafka.app = 'a/b'": 'kafka.app: "a/b" is no short name; '
    'write letters, digits, dots, _ and -, such as "fraud-1"',
    "kafka.instance = 1.5": "kafka.instance: 1.5 is no short name; "
    'write letters, digits, dots, _ and -, such as "fraud-1"',
    "kafka.labels = 'in'": 'kafka.labels: "in" is kafka.observations already; '
    "if it holds both, leave kafka.labels out",
    "kafka.predictions = 'in'": 'kafka.predictions: "in" is kafka.observations already; '
    "name another topic",
    "kafka.outcomes = 'abers.changelog'": 'kafka.changelog: "abers.changelog" is kafka.outcomes '
    "already; name another topic",
    "kafka = {app = 'x', alerts = 'x.dead-letters'}": 'kafka.alerts: "x.dead-letters" is '
    "kafka.dead_letters already; name another topic",
    "kafka.lost_history = 'earlist'": 'kafka.lost_history: "earlist" is none of "stop", '
    '"earliest", "latest", did you mean "earliest"?',
    "kafka.topic = 'x'": "kafka.topic: unknown key; [kafka] has bootstrap, app, instance, "
    "observations, labels, predictions, outcomes, dead_letters, changelog, alerts, start, "
    "publish_from, lost_history, max_records, max_bytes, linger, max_idle, session_timeout, "
    "transaction_timeout, watchdog, leave_on_stop, compression, replication, partitions, security",
    "kafka.linger = '2h'": 'kafka.linger: "7200000ms" is too long; write at most "1h"',
    "kafka.session_timeout = 0": 'kafka.session_timeout: 0 is no time at all; write "250ms", "5s", '
    '"5m", "2h" or "7d"',
    "kafka.watchdog = '10s'": "kafka.watchdog: ends the process before kafka.transaction_timeout "
    "is over; make it longer",
    "kafka.transaction_timeout = '1m'": "kafka.watchdog: ends the process before "
    "kafka.transaction_timeout is over; make it longer",
    "kafka.replication = 0": "kafka.replication: 0 is too small; write at least 1",
    "http.port = 65536": "http.port: 65536 is too large; write at most 65535",
    "kafka.alerts = 'x'\nmonitoring.tests = false": "kafka.alerts: is told of alarms, and with "
    "monitoring.tests = false there are none",
    # files
    "input.observations = 'a.csv'": "input.observations: is for files; with [kafka] name a topic "
    "in kafka.observations, and leave it out",
    "input.labels = 'a.csv'": "input.labels: is for files; with [kafka] name a topic in "
    "kafka.labels, and leave it out",
    "output.predictions = '-'": "output.predictions: is for files; with [kafka] name a topic in "
    "kafka.predictions, and leave it out",
    "output.outcomes = 'b.csv'": "output.outcomes: is for files; with [kafka] name a topic in "
    "kafka.outcomes, and leave it out",
    "output.dead_letters = 'b.csv'": "output.dead_letters: is for files; with [kafka] name a topic "
    "in kafka.dead_letters, and leave it out",
    "input.format = 'csv'": "input.format: is for files; the records of topics are JSON, "
    "so leave it out",
    "input.delay = 5": "input.delay: is for files; with [kafka] labels come as records, "
    "so leave it out",
    "input.label_fields.id = 'a'": "input.label_fields: there is no second input; "
    "name it in kafka.labels",
    "input.fields.id = 'row'": 'input.fields.id: "row" is for files; name a field, '
    'or write "record:key"',
    "input.fields.time = 'row'": 'input.fields.time: "row" is for files; name a field, '
    'or write "record:timestamp"',
    "input.fields.id = 'record:keys'": 'input.fields.id: "record:keys" is no part of a record; '
    'write "record:key", "record:timestamp" or "record:header:NAME"',
    "input.fields.extra = ['record:header:']": 'input.fields.extra: "record:header:" is no part '
    'of a record; write "record:key", "record:timestamp" or "record:header:NAME"',
    # security
    "kafka.security.protocol = 'ssl'": 'kafka.security.protocol: "ssl" is none of "PLAINTEXT", '
    '"SSL", "SASL_PLAINTEXT", "SASL_SSL", did you mean "SSL"?',
    "kafka.security.cafile = 'ca.pem'": "kafka.security.cafile: is for TLS; "
    'write protocol = "SSL" or "SASL_SSL", or leave it out',
    "kafka.security.check_hostname = false": "kafka.security.check_hostname: is for TLS; "
    'write protocol = "SSL" or "SASL_SSL", or leave it out',
    "kafka.security = {protocol = 'SSL', keyfile = 'k.pem'}": "kafka.security.keyfile: is that of "
    "a certificate; name it in certfile",
    "kafka.security = {protocol = 'SSL', username = 'u'}": "kafka.security.username: is for SASL; "
    'write protocol = "SASL_SSL", or leave it out',
    "kafka.security = {protocol = 'SASL_SSL', username = 'u'}": "kafka.security.mechanism: "
    'missing; protocol "SASL_SSL" needs one, such as "SCRAM-SHA-512"',
    "kafka.security = {protocol = 'SASL_SSL', mechanism = 'PLAIN'}": "kafka.security.username: "
    'missing; protocol "SASL_SSL" needs one, such as "abers"',
}


@pytest.mark.parametrize(("text", "line"), MISTAKES.items())
def test_mistakes(text: str, line: str) -> None:
    """A mistake in a service is told in one line: where it is, what is wrong, how to mend it."""
    assert problems(text) == [line]


def test_what_is_missing() -> None:
    """Each key that must be given is asked for, with what to write."""
    with pytest.raises(ConfigError) as told:
        load(flags={"kafka": {}}, environ={})
    assert told.value.problems == (
        'command line: kafka.bootstrap: missing; write the address of a broker, "localhost:9092"',
        "command line: kafka.observations: missing; write the name of a topic",
        "command line: kafka.predictions: missing; write the name of a topic",
    )


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("http.port = 80", "http"),
        ("http = {}", "http"),
        ("state.shared = false", "state.shared"),
        ("state.keep = 3", "state.keep"),
    ],
)
def test_what_files_have_not(text: str, path: str) -> None:
    """What only a service has is refused without one."""
    flags = tomllib.loads(text) | {"input": {"observations": "a.csv"}}
    with pytest.raises(ConfigError) as told:
        load(flags=flags, environ={})
    line = f"command line: {path}: is for topics, which there are with a section [kafka]; "
    assert told.value.problems == (f"{line}leave it out",)


def test_records_of_kafka_are_not_in_files() -> None:
    """The key of a record is no field of a file."""
    flags = {"input": {"observations": "a.csv", "fields": {"id": "record:key"}}}
    with pytest.raises(ConfigError, match=r'fields.id: "record:key" is for topics; without'):
        load(flags=flags, environ={})


# Secrets


@pytest.mark.parametrize(
    "text",
    [
        f"kafka.security.password = '{PASSWORD}'",
        f"kafka.password = '{PASSWORD}'",
        f"kafka.security.sasl_plain_password = '{PASSWORD}'",
        f"kafka.security.client_secret = '{PASSWORD}'",
        f"kafka.security.password = {{ value = '{PASSWORD}' }}",
    ],
)
def test_a_password_is_refused(text: str) -> None:
    """A password in a configuration is refused with where it belongs, and is not told."""
    (line,) = problems(text)
    assert line.partition(": ")[2] == (
        "a password does not stand in a configuration; put it into the environment as "
        "ABERS_KAFKA_PASSWORD"
    )


def test_the_password_of_a_key_is_refused() -> None:
    """That of a key has a variable of its own."""
    (line,) = problems("kafka.security.key_password = 'x'")
    assert line.endswith("put it into the environment as ABERS_KAFKA_KEY_PASSWORD")


@pytest.mark.parametrize(
    ("flags", "environ"),
    [
        ({"kafka": LEAST | {"security": PASSWORD}}, {}),
        ({"kafka": [LEAST | {"security": {"password": PASSWORD}}]}, {}),
        ({"kafka": LEAST | {"security": {"mechanism": {"password": PASSWORD}}}}, {}),
        ({"kafka": LEAST | {"security": {"mechanism": [[{"Password": PASSWORD}]]}}}, {}),
        ({"kafka": LEAST | {"bootstrap": f"me:{PASSWORD}@kafka:9092"}}, {}),
        ({"kafka": LEAST, "state": {"path": f"ftp://me:{PASSWORD}@host/path"}}, {}),
        ({"kafka": LEAST}, {"ABERS_KAFKA__SECURITY__PASSWORD": PASSWORD}),
        ({"kafka": LEAST}, {"ABERS_KAFKA__SECURITY": f"{{password={PASSWORD}}}"}),
        ({"kafka": LEAST | {"security": "x"}}, {"ABERS_KAFKA__SECURITY__PASSWORD": PASSWORD}),
    ],
)
def test_no_message_has_a_password(flags: dict[str, Any], environ: dict[str, str]) -> None:
    """Wherever a password was written by mistake, no message repeats it."""
    with pytest.raises(ConfigError) as told:
        load(flags=flags, environ=environ)
    assert PASSWORD not in str(told.value)


def test_no_configuration_has_a_password() -> None:
    """The variables that hold passwords are no part of a configuration, so it cannot show them."""
    environ = {"ABERS_KAFKA_PASSWORD": PASSWORD, "ABERS_KAFKA_KEY_PASSWORD": PASSWORD}
    config = loaded("", environ, security=SASL)
    assert config == loaded(security=SASL)
    assert PASSWORD not in repr(config) + str(described(config)) + repr(config.model_dump())


def test_hindrances(tmp_path: Path) -> None:
    """A service needs the files of its certificates, and the password of its user."""
    there = tmp_path / "ca.pem"
    there.touch()
    config = loaded(security=SASL | {"cafile": str(there), "certfile": str(tmp_path / "ca.pme")})
    assert list(hindrances(config, {})) == [
        f"kafka.security.certfile: {tmp_path}/ca.pme: no such file; did you mean ca.pem?",
        (
            "kafka.security.username: put the password of this user into the environment as "
            "ABERS_KAFKA_PASSWORD"
        ),
    ]
    fine = loaded(security=SASL)
    assert list(hindrances(fine, {"ABERS_KAFKA_PASSWORD": PASSWORD})) == []
    kept = fine.model_copy(update={"learner": Learner(), "state": State(path="d")})
    (told,) = hindrances(kept, {"ABERS_KAFKA_PASSWORD": PASSWORD})
    assert told.startswith("state.path: the state of a learner is kept under a secret key")


@given(st.sampled_from(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]))
def test_protocols(protocol: Any) -> None:  # noqa: ANN401 - one of the words
    """The name of a protocol says whether it is encrypted, and whether a user logs in."""
    security = Security(protocol=protocol)
    assert security.encrypted == ("SSL" in protocol)
    assert security.by_password == ("SASL" in protocol)

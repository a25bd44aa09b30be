"""The example of a configuration: every key there is, each with its real default."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from tests.surface import option_pages

from abers_connectors.cli.config_check import check, sampled
from abers_connectors.config.layers import options
from abers_connectors.config.model import Config, load
from abers_connectors.config.sections import InputSection
from abers_connectors.replay.job import open_input

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = option_pages.EXAMPLE
REMEDY = "run: python -m tests.surface.option_pages --write"
SERVICE = EXAMPLE.with_name("abers.kafka.toml")
STREAM = InputSection(observations="-", format="jsonl")

LINE = re.compile(r"(?P<shown># )?(?P<line>(?P<key>\w+) = .+)")
OF_TOPICS = re.compile(
    r"kafka\.|schema_registry\.|http\.|telemetry\.|state\.(shared|retain)|input\.label_format|output\.format"
)
OF_SERVER = re.compile(r"serve\.")
TOPICS = {
    "kafka.bootstrap_servers": "localhost:9092",
    "kafka.observations": "scores",
    "kafka.predictions": "predictions",
}
REGISTRY = {"schema_registry.url": "http://localhost:8081", "input.format": "avro"}
OF_REGISTRY = {
    "schema_registry.cafile": {"schema_registry.url": "https://localhost:8081"},
    "schema_registry.password_file": {"schema_registry.username": "u"},
}

PASSWORD = {"mechanism": "PLAIN", "username": "u"}
TOKEN = {"mechanism": "OAUTHBEARER"}
ISSUER = TOKEN | {"token_endpoint_url": "https://login.example.com/", "client_id": "c"}
LOGINS = {
    **dict.fromkeys(("token_endpoint_url", "client_id", "client_secret_file", "scope"), ISSUER),
    **dict.fromkeys(("token_file", "extensions"), TOKEN),
    "aws_region": {"mechanism": "AWS_MSK_IAM", "aws_region": "r"},
    "kerberos_service_name": {"mechanism": "GSSAPI"},
}


class Entry(NamedTuple):
    """A key of the example."""

    path: str
    shown: bool
    line: str

    @property
    def value(self) -> Any:  # noqa: ANN401 - anything TOML holds
        """What stands there."""
        return next(iter(tomllib.loads(self.line).values()))


def entries() -> Iterator[Entry]:
    """Yield each key of the example: its path, whether it is only shown, and its line."""
    section = ""
    for line in EXAMPLE.read_text().splitlines():
        if heading := re.fullmatch(r"(?:# )?\[([\w.]+)\]", line):
            section = heading[1]
        elif entry := LINE.fullmatch(line):
            yield Entry(f"{section}.{entry['key']}", entry["shown"] is not None, entry["line"])


def service(**flags: Any) -> Config:  # noqa: ANN401
    """Load the least that a service needs, and some keys."""
    return load(flags=TOPICS | flags, environ={})


def test_it_is_written_from_the_declarations() -> None:
    """Example and documentation are what the declarations of the options say."""
    assert EXAMPLE.read_text() == option_pages.example(), REMEDY
    assert option_pages.PAGE.read_text() == option_pages.page(), REMEDY
    assert option_pages.FLAGS.read_text() == option_pages.flags(), REMEDY


def test_it_has_every_key() -> None:
    """The example has every key there is, and no other, in the order of the declarations."""
    assert [one.path for one in entries()] == [*options()]


def test_it_has_the_defaults() -> None:
    """What is in force in the example is the default, and what is only shown has none."""
    config = load(EXAMPLE, environ={})
    assert config == Config(input=STREAM)
    of_sections = re.compile(f"{OF_TOPICS.pattern}|{OF_SERVER.pattern}")
    shown = {one.path for one in entries() if one.shown and not of_sections.match(one.path)}
    without = {path for path, value in config.values().items() if value is None}
    assert shown == {path for path in without if not of_sections.match(path)}


@pytest.mark.parametrize("entry", [one for one in entries() if OF_TOPICS.match(one.path)])
def test_what_belongs_to_topics(entry: Entry) -> None:
    """A key of topics is only shown, with its default, or else with something that can be used."""
    assert entry.shown
    more = REGISTRY | OF_REGISTRY.get(entry.path, {})
    if not entry.path.startswith("schema_registry"):
        more = {}
    if entry.path == "input.label_format":
        more = {"kafka.labels": "labels"}
    if entry.path == "kafka.routed":
        more = {"kafka.route_by": "model"}
    if entry.path == "http.keyfile":
        more = {"http.certfile": "c.pem"}
    default = service(**more).values()[entry.path]
    section, _, key = entry.path.rpartition(".")
    secured = section == "kafka.security" and (default is None or key in LOGINS)
    needed = {"certfile": "c.pem", "protocol": "SASL_SSL"} | LOGINS.get(key, PASSWORD)
    least = {f"{section}.{name}": value for name, value in needed.items()} if secured else {}
    if needed.get("mechanism") == "GSSAPI":
        least["kafka.client"] = "kafka-python"
    config = service(**more | least | {entry.path: entry.value})
    value = config.values()[entry.path]
    assert value == default or default is None
    assert value is not None


@pytest.mark.parametrize(
    "entry",
    [
        one
        for one in entries()
        if one.shown and not OF_TOPICS.match(one.path) and not OF_SERVER.match(one.path)
    ],
)
def test_what_it_shows_can_be_used(entry: Entry) -> None:
    """A key that is only shown is right as it stands there."""
    labels = entry.path.startswith("input.label_fields")
    needed: dict[str, object] = {"input.labels": "labels.csv"} if labels else {}
    if entry.path == "calibrator.coverage":
        needed = {"task.kind": "regression", "calibrator.kind": "protected"}
        needed["calibrator.support"] = [0, 1]
    without = load(EXAMPLE, flags=needed, environ={})
    assert load(EXAMPLE, flags=needed | {entry.path: entry.value}, environ={}) != without


@pytest.mark.parametrize("entry", [one for one in entries() if OF_SERVER.match(one.path)])
def test_what_it_shows_of_a_server(entry: Entry) -> None:
    """A key of a server, which has no inputs as the example does, is right as it stands there."""
    config = load(flags={"serve": {}, entry.path: entry.value}, environ={})
    assert config.values()[entry.path] == entry.value


def test_the_example_of_a_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of a service is one, and what it says of its records is so."""
    monkeypatch.chdir(tmp_path)
    report = check(str(SERVICE), environ={})
    assert "topic fraud.labels for the labels" in str(report.meaning["Reads"][1])
    records = re.findall(r"#     ({.+})", SERVICE.read_text())
    Path("records.jsonl").write_text("\n".join(records))
    config = load(SERVICE, environ={})
    source = open_input(config, "records.jsonl")
    rows = sampled(source, config.settings()).rows
    assert [(one.where, one.event.id, one.event.model) for one in rows] == [
        ("line 1", "a1", "fraud"),
        ("line 2", "a1", "fraud"),
    ]
    assert [one.value for one in rows] == [None, 1]


def test_it_is_accepted() -> None:
    """Nothing has to be made before the example runs."""
    first, *_ = check(str(EXAMPLE), environ={}).meaning["Reads"]
    assert str(first).startswith("standard input")

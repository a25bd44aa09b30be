"""A whole service on a real broker: its pages, its log, and its messages to systemd."""

from __future__ import annotations

import json
import re
import signal
import socket
import time
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.connectors.kafka.brokers import PATIENCE, Message, unique

from abers_connectors import errors
from abers_connectors.config.model import load
from abers_connectors.kafka.topic_checks import create_topics

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.connectors.kafka.brokers import Broker

START = 1_700_000_000_000
COMMON = {"application", "process"}


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    """Listen as systemd does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(tmp_path / "notify"))
        line.settimeout(PATIENCE)
        yield line


@pytest.fixture
def app(broker: Broker, tmp_path: Path) -> str:
    """Configure an application with topics of its own, and return its name."""
    app = unique("announced")
    (tmp_path / "abers.toml").write_text(f"""
    kafka.bootstrap_servers = "{broker.bootstrap}"
    kafka.application_id = "{app}"
    kafka.observations = "{app}-scores"
    kafka.labels = "{app}-labels"
    kafka.predictions = "{app}-predictions"
    kafka.outcomes = "{app}-outcomes"
    kafka.partitions = 2
    http.port = 0
    """)
    create_topics(load(tmp_path / "abers.toml", environ={}))
    return app


@pytest.fixture
def process(
    app: str, systemd: socket.socket, start: Callable[..., subprocess.Popen[bytes]]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the service, with a systemd that expects a sign of life every turn."""
    assert app
    path: Any = systemd.getsockname()
    with start("run", "abers.toml", NOTIFY_SOCKET=path, WATCHDOG_USEC="1") as process:
        yield process
        process.kill()


def heard(systemd: socket.socket, word: bytes) -> None:
    """Wait until systemd receives a message."""
    while systemd.recv(1000) != word:
        pass


def url_of(process: subprocess.Popen[bytes]) -> str:
    """Read the log until it names the address of the pages."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"http://[\d.:]+", json.loads(line)["message"]):
            return found[0]
    raise AssertionError


def page(url: str, path: str) -> tuple[int, str]:
    """Return the code and the body of a page."""
    try:
        with urlopen(f"{url}{path}", timeout=PATIENCE) as answer:  # noqa: S310 - our own
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def samples(url: str) -> dict[str, float]:
    """Return the samples of abers, by name and labels but the common ones."""
    return {
        one.name
        + "".join(
            f"[{value}]" for name, value in one.labels.items() if name not in COMMON
        ): one.value
        for family in text_string_to_metric_families(page(url, "/metrics")[1])
        for one in family.samples
    }


def test_a_service_tells_how_it_is(
    app: str,
    systemd: socket.socket,
    process: subprocess.Popen[bytes],
    produce: Callable[..., list[int]],
) -> None:
    """A service is ready when it serves, counts what it commits, and announces its stop."""
    url = url_of(process)
    heard(systemd, b"READY=1")
    while (ready := page(url, "/readyz"))[0] != 200:
        heard(systemd, b"WATCHDOG=1")  # the group may meet once more on a slow machine
    assert json.loads(ready[1])["assigned"] == [0, 1]
    assert page(url, "/livez")[0] == 200

    produce(f"{app}-labels", [Message(b'{"id": "a", "time": %d, "label": 1}' % START, b"k", 1)])
    seen = b'{"id": "a", "time": %d, "score": 0.5}' % START
    produce(f"{app}-scores", [Message(one, b"k", 1) for one in (b"{", None, seen)])
    while (found := samples(url))["abers_outcomes_total"] == 0.0:
        heard(systemd, b"WATCHDOG=1")  # once a turn of the loop
    while found["abers_restored_partitions"] != 2.0:  # it may meet once more here too
        heard(systemd, b"WATCHDOG=1")
        found = samples(url)
    assert found["abers_input_partitions"] == 2.0
    assert f'abers_input_partitions{{application="{app}",process="0"}}' in page(url, "/metrics")[1]
    assert found["abers_records_total[observations]"] == 3.0
    assert found["abers_records_total[labels]"] == 1.0
    assert found["abers_predictions_total"] == 1.0
    assert found["abers_dead_letters_total[bad-json]"] == 1.0
    assert found["abers_tombstones_total"] == 1.0
    assert found["abers_pending_observations[0]"] == found["abers_pending_observations[1]"] == 0.0
    while found.get(f"abers_consumer_lag_records[1][{app}-scores]") != 0.0:
        heard(systemd, b"WATCHDOG=1")
        found = samples(url)

    lonely = b'{"id": "lonely-%d", "time": %d, "label": 1}'
    later = START + 60_000  # longer than labels usually take: before that they may just be early
    produce(f"{app}-labels", [Message(lonely % (one, later), b"k", 0) for one in range(1000)])
    while not (hints := json.loads(page(url, "/readyz")[1])["hints"]):
        heard(systemd, b"WATCHDOG=1")
    assert re.match(r"(1,000|999) of the last 1,00[01] labels have met no observation", hints[0])

    process.send_signal(signal.SIGTERM)
    heard(systemd, b"STOPPING=1")
    _, rest = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    lines = [json.loads(line) for line in rest.splitlines()]
    assert {line["app"] for line in lines} == {app}
    assert hints[0] in {line["message"] for line in lines if line["level"] == "warning"}


def test_what_hinders_a_service(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """A service with missing requirements does not start, and names all of them at once."""
    (tmp_path / "abers.toml").write_text("""
    kafka.bootstrap_servers = "127.0.0.1:1"
    kafka.observations = "scores"
    kafka.predictions = "predictions"
    kafka.security = { protocol = "SASL_SSL", mechanism = "PLAIN", username = "u", cafile = "ca" }
    """)
    process = start("run", "abers.toml")
    _, logged = process.communicate(timeout=PATIENCE)
    assert process.returncode == errors.CONFIG
    lines = [json.loads(line) for line in logged.splitlines()]
    assert {(line["level"], line["app"]) for line in lines} == {("critical", "abers")}
    assert [line["message"] for line in lines] == [
        "abers.toml: kafka.security.cafile: ca: no such file",
        (
            "abers.toml: kafka.security.username: set its password in the environment variable "
            "ABERS_KAFKA_PASSWORD, or name a file that has it in kafka.security.password_file"
        ),
    ]


def test_the_last_line_is_of_the_log(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """The error that ends a service is a log line, like the warnings of libraries before it."""
    (tmp_path / "abers.toml").write_text("""
    kafka.bootstrap_servers = "127.0.0.1:1"
    kafka.application_id = "alone"
    kafka.transaction_timeout = "1s"
    kafka.stall_timeout = "2s"
    kafka.observations = "scores"
    kafka.predictions = "predictions"
    http.port = 0
    """)
    process = start("run", "abers.toml", "--create-topics")
    _, logged = process.communicate(timeout=PATIENCE)
    assert process.returncode == errors.UNAVAILABLE
    lines = [json.loads(line) for line in logged.splitlines()]
    assert {line["app"] for line in lines} == {"alone"}
    assert lines[-1]["level"] == "critical"
    assert lines[-1]["message"].startswith("the broker did not answer connect within 2 s")
    messages = [re.sub(r"[\d.]+", "", line["message"]) for line in lines]
    assert len(messages) == len({*messages})


def test_where_outputs_go_is_there(
    broker: Broker, app: str, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """A missing output topic is reported before anything is read, like a missing input."""
    with broker.admin() as admin:
        admin.delete_topics([f"{app}-outcomes"])
        while f"{app}-outcomes" in admin.list_topics():
            time.sleep(0.01)
    process = start("run", "abers.toml")
    _, logged = process.communicate(timeout=PATIENCE)
    assert process.returncode == errors.CONFIG
    assert f"there is no topic {app}-outcomes" in logged.decode()

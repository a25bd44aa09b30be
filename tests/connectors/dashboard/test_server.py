"""Health and metrics over a real socket."""

from __future__ import annotations

import http.client
import json
import math
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.connectors.kafka.reads import Read, turning
from tests.connectors.kafka.works import Served

import abers
from abers.exceptions import AbersError, ConfigError, MissingExtraError
from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.server import serving
from abers_connectors.runtime.models import state_bytes
from abers_connectors.runtime.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY = HttpSection(port=0)
WHOLE = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
NOW = 1_700_000_100.0
COMMON = {"application": "app", "process": "7"}


class Answer(NamedTuple):
    """A response."""

    code: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        """Return the decoded body."""
        return json.loads(self.body)


@pytest.fixture
def status() -> Status:
    """Return a status with a fixed wall-clock time."""
    return Status(60.0, wall=lambda: NOW, application="app", process="7")


@pytest.fixture
def url(status: Status) -> Iterator[str]:
    """Serve the status."""
    with serving(ANY, status) as where:
        yield where


def asked(url: str, path: str, method: str = "GET", **headers: str) -> Answer:
    """Request a page."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=240)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = {name.lower(): value for name, value in answer.getheaders()}
    body = answer.read()
    connection.close()
    return Answer(answer.status, found, body)


def connected(url: str) -> socket.socket:
    """Connect, and send nothing."""
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=240)


def samples(url: str) -> dict[str, float]:
    """Return all samples of abers, by name and labels but the common ones."""
    text = asked(url, "/metrics").body.decode()
    return {
        one.name
        + "".join(
            f"[{value}]" for name, value in one.labels.items() if name not in COMMON
        ): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.name.startswith("abers_")
    }


# Health


def test_livez(url: str) -> None:
    """A service that makes progress is alive."""
    answer = asked(url, "/livez")
    assert (answer.code, answer.json) == (200, {"alive": True})


def test_livez_of_one_that_hangs() -> None:
    """A service without progress for longer than its timeout is not alive."""
    now = [0.0]
    status = Status(60.0, clock=lambda: now[0])
    with serving(ANY, status) as url:
        now[0] = 61.0
        answer = asked(url, "/livez")
        assert (answer.code, answer.json) == (503, {"alive": False})
        status.progressed()
        assert asked(url, "/livez").code == 200


def test_readyz(url: str, status: Status) -> None:
    """A service is ready when it serves its partitions; the body has the details."""
    status.assign([("in", 0), ("in", 1)])
    status.restored(Served(1))
    status.seats["tasks"].joined = True
    status.hint("look at the keys")
    expected = {"ready": False, "joined": True, "assigned": [0, 1], "restored": [1]}
    answer = asked(url, "/readyz")
    assert (answer.code, answer.json) == (503, expected | {"hints": ["look at the keys"]})
    status.restored(Served(0))
    answer = asked(url, "/readyz")
    assert (answer.code, answer.json["ready"]) == (200, True)


# Metrics


def test_metrics(url: str, status: Status) -> None:
    """Each number of the status is a sample, under the names of the documentation."""
    task = Served(2)
    status.assign([("in", 2), ("in", 7)])
    status.restored(task)
    observation = b'{"id": "a", "time": %d, "score": 0.5}' % (NOW * 1000 - 5000)
    label = b'{"id": "a", "time": %d, "label": 1}' % (NOW * 1000 - 3000)
    work = task.take(Read(observation), Read(b"{"), Read(None), Read(label), inputs=b"\0\0\0\1")
    status.batch_committed(task, work)
    status.transaction_committed(0.02)
    status.transaction_aborted("why")
    status.snapshot_finished(saved=False)
    status.update_lags({("in", 2): 17})
    status.update_evidence([task])
    status.input_partitions = 8
    found = samples(url)
    assert (
        found.items()
        >= {
            f"abers_build_info[{abers.backend()}][{abers.__version__}]": 1.0,
            "abers_records_total[observations]": 3.0,
            "abers_records_total[labels]": 1.0,
            "abers_predictions_total": 1.0,
            "abers_outcomes_total": 1.0,
            "abers_dead_letters_total[bad-json]": 1.0,
            "abers_tombstones_total": 1.0,
            "abers_events_total[observations][predicted]": 1.0,
            "abers_events_total[observations][duplicate]": 0.0,
            "abers_events_total[observations][dead-letter]": 0.0,
            "abers_events_total[labels][learned]": 1.0,
            "abers_events_total[labels][late]": 0.0,
            "abers_predictions_ended_total[learned]": 1.0,
            "abers_predictions_ended_total[expired]": 0.0,
            "abers_unbalanced_partitions": 0.0,
            "abers_transactions_committed_total": 1.0,
            "abers_transactions_aborted_total": 1.0,
            "abers_rebalances_total": 1.0,
            "abers_state_restores_total": 1.0,
            "abers_snapshots_total[failed]": 1.0,
            "abers_snapshots_total[saved]": 0.0,
            "abers_commit_seconds_bucket[0.01]": 0.0,
            "abers_commit_seconds_bucket[0.025]": 1.0,
            "abers_commit_seconds_count": 1.0,
            "abers_commit_seconds_sum": 0.02,
            "abers_label_delay_seconds_bucket[10.0]": 1.0,
            "abers_label_delay_seconds_sum": 2.0,
            "abers_pending_observations[2]": 0.0,
            "abers_early_labels[2]": 0.0,
            "abers_state_bytes[2]": float(state_bytes(task.processor)),
            "abers_event_time_lag_seconds[2]": 3.0,
            "abers_consumer_lag_records[2][in]": 17.0,
            "abers_input_partitions": 8.0,
            "abers_assigned_partitions": 2.0,
            "abers_restored_partitions": 1.0,
        }.items()
    )


def test_every_sample_says_whose_it_is(url: str, status: Status) -> None:
    """All samples, those of models and of the process too, name the application and the process."""
    task = Served(2)
    status.batch_committed(task, task.take(*turning()))
    status.update_evidence([task])
    text = asked(url, "/metrics").body.decode()
    found = [one for each in text_string_to_metric_families(text) for one in each.samples]
    names = {one.name for one in found}
    assert {"abers_alarm_active", "abers_commit_seconds_sum", "process_start_time_seconds"} < names
    assert [one for one in found if not COMMON.items() <= one.labels.items()] == []


def test_metrics_of_calibration(url: str, status: Status) -> None:
    """The score of a label is counted in its bin, by model and view."""
    task = Served(2)
    records = [
        b'{"id": "a", "time": 1, "model": "f\\"x", "score": 0.5}',
        b'{"id": "a", "time": 2, ',
    ]
    records[1] += b'"model": "f\\"x", "label": 1}'
    status.batch_committed(task, task.take(*map(Read, records)))
    found = {name: value for name, value in samples(url).items() if 'f"x' in name}
    reliability = {name for name in found if name.startswith("abers_reliability_")}
    assert len(reliability) == 30
    assert {name for name in reliability if found[name]} == {
        f'abers_reliability_{sums}_total[0.5][f"x][calibrated]'
        for sums in ("predictions", "score", "positives")
    }
    assert (
        found.items()
        >= {
            'abers_reliability_score_total[0.5][f"x][calibrated]': 0.5,
            'abers_brier_score_total[f"x][calibrated]': 0.25,
            'abers_log_loss_nats_total[f"x][calibrated]': math.log(2),
            'abers_log_loss_infinite_total[f"x][calibrated]': 0.0,
            'abers_venn_abers_interval_width_ratio_bucket[0.5][f"x]': 0.0,
            'abers_venn_abers_interval_width_ratio_bucket[1.0][f"x]': 1.0,
            'abers_venn_abers_interval_width_ratio_bucket[+Inf][f"x]': 1.0,
            'abers_venn_abers_interval_width_ratio_count[f"x]': 1.0,
            'abers_venn_abers_interval_width_ratio_sum[f"x]': 1.0,
        }.items()
    )


def test_metrics_of_a_regression(url: str, status: Status) -> None:
    """A regression has the coverage of each interval, and PIT values."""
    task = Served(0, {"task.kind": "regression", "calibrator.distributions": "scored"})
    records = []
    for number in range(40):
        at = b"%d" % number
        records += [
            Read(b'{"id": "%s", "time": %s, "score": %d}' % (at, at, number % 7)),
            Read(b'{"id": "%s", "time": %s, "label": %d}' % (at, at, number % 5)),
        ]
    status.batch_committed(task, task.take(*records))
    found = samples(url)
    assert found["abers_interval_outcomes_total[0.9][default]"] == 40.0
    assert found["abers_interval_expected_total[0.9][default]"] == pytest.approx(36.0)
    assert 0.0 < found["abers_interval_covered_total[0.9][default]"] <= 40.0
    assert found["abers_pit_ratio_bucket[1.0][default]"] == pytest.approx(40.0)
    assert found["abers_pit_ratio_count[default]"] == pytest.approx(40.0)
    assert 0.0 < found["abers_pit_ratio_bucket[0.5][default]"] < 40.0


def test_metrics_of_alarms(url: str, status: Status) -> None:
    """Evidence is a power of ten next to its threshold, and alarms are counted from 0 on."""
    task = Served()
    records = turning()
    status.batch_committed(task, task.take(*records[:300]))
    status.update_evidence([task])
    found = samples(url)
    assert found["abers_alarm_episodes_total[m][change-tolerance][calibrated]"] == 0.0
    assert found["abers_alarm_active[m][change-tolerance][calibrated]"] == 0.0
    status.batch_committed(task, task.take(*records[300:]))
    status.update_evidence([task])
    status.webhook_called("sent")
    with serving(ANY, status) as again:  # one that has no metrics of a moment ago
        found = samples(again)
    (monitor,) = task.processor.monitors
    assert {one.name for one in monitor.tests} >= {"change-tolerance", "since-start"}
    for one in monitor.tests:
        evidence = found[f"abers_evidence_log10[m][{one.name}][{one.view}]"]
        assert evidence == pytest.approx(one.log_wealth / math.log(10))
        assert found[f"abers_alarm_active[m][{one.name}][{one.view}]"] == one.active
    assert found[
        "abers_evidence_threshold_log10[m][change-tolerance][calibrated]"
    ] == pytest.approx(6.0)
    assert found["abers_alarm_episodes_total[m][change-tolerance][calibrated]"] == 1.0
    assert found["abers_webhook_total[sent]"] == 1.0
    assert found["abers_webhook_total[failed]"] == found["abers_webhook_total[dropped]"] == 0.0


def test_a_batch_that_is_not_committed(url: str) -> None:
    """The work of a task is counted only when it is committed."""
    task = Served()
    task.take(
        Read(b'{"id": "a", "time": 1, "score": 0.5}'), Read(b'{"id": "a", "time": 2, "label": 1}')
    )
    assert not any("default" in name for name in samples(url))


def test_metrics_of_the_first_moment(url: str) -> None:
    """Counters start as zeros, so that rates are right from the beginning."""
    found = samples(url)
    assert (
        found["abers_records_total[observations]"]
        == found["abers_transactions_committed_total"]
        == 0.0
    )
    assert "process_resident_memory_bytes" in asked(url, "/metrics").body.decode()


def test_open_metrics(url: str) -> None:
    """A client that asks for OpenMetrics gets it."""
    answer = asked(url, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.body.endswith(b"# EOF\n")
    assert asked(url, "/metrics").headers["content-type"].startswith("text/plain")


# What is not served


@pytest.mark.parametrize("path", ["/", "/metrics/x", "/../etc/passwd", "/livez?x=" + "y" * 2000])
def test_other_paths(url: str, path: str) -> None:
    """Other paths are not found, and the response does not describe the server."""
    answer = asked(url, path)
    assert answer.code == (200 if "?" in path else 404)
    assert "server" not in answer.headers
    assert b"/" not in answer.body


def test_other_methods(url: str) -> None:
    """Other methods are refused."""
    assert [asked(url, "/readyz", method).code for method in ("POST", "PUT", "DELETE")] == [405] * 3
    assert asked(url, "/livez", "HEAD").body == b""


def test_a_request_that_is_too_long(url: str) -> None:
    """A request whose head has no end is refused."""
    with connected(url) as client:
        client.sendall(b"GET /livez HTTP/1.1\r\nX: " + b"x" * 12_000)
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")


def test_no_request(url: str) -> None:
    """Bytes that are not HTTP are refused, and the next client is served."""
    with connected(url) as client:
        client.sendall(b"\x16\x03\x01\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")
    assert asked(url, "/livez").code == 200


@pytest.mark.parametrize("sent", [b"", WHOLE[:9], WHOLE])
def test_a_silent_client(status: Status, sent: bytes) -> None:
    """A client that sends no request is disconnected."""
    with serving(ANY, status, patience=0.05) as url, connected(url) as client:
        client.sendall(sent)
        while client.recv(1000):
            pass


def test_a_client_that_falls_silent(status: Status) -> None:
    """A client that was served, and does not end its next request, is disconnected too."""
    with serving(ANY, status, patience=2.0) as url, connected(url) as client:
        client.sendall(WHOLE)
        assert client.recv(1000).startswith(b"HTTP/1.1 200 ")
        with suppress(ConnectionError):  # it may have been let go by now
            client.sendall(WHOLE[:9])
            while client.recv(1000):
                pass


# Where it is served


def test_a_port_in_use(url: str, status: Status) -> None:
    """A port that another process uses is reported with its key."""
    port = int(url.rsplit(":", 1)[1])
    problem = (
        f'http.host = "127.0.0.1", http.port = {port}: another process listens there; end it, or'
    )
    with pytest.raises(AbersError, match=problem), serving(HttpSection(port=port), status):
        pass


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1"])
def test_a_host_that_is_not_here(host: str, status: Status) -> None:
    """An address of another machine is a mistake in the configuration."""
    with (
        pytest.raises(ConfigError, match=r"http.host.*address of"),
        serving(HttpSection(host=host), status),
    ):
        pass


def test_a_port_is_free_again(status: Status) -> None:
    """After a service ends its port can be used at once."""
    with serving(ANY, status) as url:
        asked(url, "/livez", Connection="close")  # so the server closes, and its address lingers
    again = HttpSection(port=int(url.rsplit(":", 1)[1]))
    with serving(again, status) as url:
        assert asked(url, "/livez").code == 200


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_ipv6(status: Status) -> None:
    """An IPv6 address is written in brackets."""
    with serving(HttpSection(host="::1", port=0), status) as url:
        assert url.startswith("http://[::1]:")
        assert asked(url, "/livez").code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", ""])
def test_names_for_metrics(status: Status, host: str) -> None:
    """On request metrics are served under known names only; health is, under any."""
    http = HttpSection(port=0, hosts=("Abers.Internal",), check_host=True)
    with serving(http, status) as url, serving(ANY, status) as open_to_all:
        assert asked(url, "/metrics", Host=host).code == 403
        assert asked(url, "/livez", Host=host).code == 200
        assert asked(open_to_all, "/metrics", Host=host).code == 200
        for ours in ("localhost", "127.0.0.1:8090", "[::1]", "abers.internal:443"):
            assert asked(url, "/metrics", Host=ours).code == 200


def test_without_the_libraries(status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a library is missing, the error names the command that installs it."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"'abers\[http\]'"), serving(ANY, status):
        pass

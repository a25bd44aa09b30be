"""`abers serve` as its users have it: a process, HTTP, a disk, and signals."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.serve.running import JSON, Running

from abers.stream import DurableProcessor, Observation, Settings
from abers_connectors.serve.application import ServeClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from abers.stream import Event


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Return a server that several tests share, each with ids of its own."""
    with Running(tmp_path_factory.mktemp("served") / "state") as running:
        yield running


def test_predictions_and_labels(server: Running) -> None:
    """A row is predicted, its label is learned, and both may be sent again."""
    (first,) = server.predict({"id": "a1", "score": 0.8, "time": 1_000})
    assert first == {
        "v": 1,
        "id": "a1",
        "time": 1_000,
        "model": "default",
        "score": 0.8,
        "p0": 0.0,
        "p1": 1.0,
        "p": first["p"],
        "n_labels": 0,
    }
    assert 0.79 < first["p"] < 0.81  # with no label it is near the score
    assert server.predict({"id": "a1", "score": 0.1}) == [first]
    assert server.label({"id": "a1", "label": 1}) == ["learned"]
    assert server.label({"id": "a1", "label": 1}, {"id": "a1", "label": 0}) == [
        "duplicate",
        "conflict",
    ]
    assert server.label({"id": "a2", "label": 0}) == ["waiting"]
    assert server.predict({"id": "a2", "score": 0.8})[0]["n_labels"] == 1
    assert server.label({"id": "a2", "label": 0}) == ["duplicate"]


def test_a_first_use(server: Running) -> None:
    """Without a configuration scores are probabilities, which it says, and others are errors."""
    assert 'scores are probabilities (for others write task.scores = "any"' in server.said[1]
    found = server.predict({"id": "odds", "score": 5}, {"id": "good", "score": 0.25})
    assert found[0]["error"]["reason"] == "bad-score"
    assert 'Set task.scores = "any"' in found[0]["error"]["detail"]
    assert found[1]["score"] == 0.25
    (wrong,) = server.ask("/v1/labels", [{"id": "good", "label": "yes"}]).json
    assert "name the values that mean 1 in input.pos_label" in wrong["error"]["detail"]


def test_the_commands_that_it_prints(tmp_path: Path) -> None:
    """What a server prints to try is a prediction and its label, with the tokens that it needs."""
    tokens = {name: name[6] * 32 for name in ("ABERS_PREDICT_TOKEN", "ABERS_LABEL_TOKEN")}
    with Running(tmp_path / "state", environ=tokens) as running:
        for line, status in zip(running.said[-2:], ("", "learned"), strict=True):
            made = subprocess.run(
                ["bash", "-c", line],  # noqa: S607 - that of the machine
                capture_output=True,
                check=True,
                env={**os.environ, **tokens},
            )
            reply = json.loads(made.stdout)
            assert (reply["id"], reply.get("status", "")) == ("a1", status)


def test_one_row_instead_of_a_list(server: Running) -> None:
    """A request of one row is answered with one row."""
    reply = server.ask("/v1/predict", {"id": "single", "score": 0.5})
    assert (reply.status, reply.json["id"]) == (200, "single")
    assert server.ask("/v1/labels", {"id": "single", "label": True}).json["status"] == "learned"
    assert server.ask("/v1/predict", []).json == []


def test_a_bad_row_is_an_error_in_its_row(server: Running) -> None:
    """Rows that cannot be used are errors in their places, and all others are served."""
    rows: list[Any] = [
        {"id": "good1", "score": 0.5},
        {"id": "bad1", "score": "high"},
        {"id": "bad2"},
        7,
        {"id": "", "score": 0.5},
        {"id": "bad3", "score": 0.5, "colour": "red"},
        {"id": "bad4", "score": 0.5, "time": 10**14 - 1},
        {"id": "bad5", "score": 0.5, "time": 10**15},
        {"id": "good2", "score": 0.5},
    ]
    found = server.predict(*rows)
    reasons = [one["error"]["reason"] if "error" in one else one["id"] for one in found]
    assert reasons == [
        *("good1", "bad-score", "missing-field", "bad-record", "missing-field"),
        *("bad-record", "time-in-future", "bad-time", "good2"),
    ]
    assert found[1]["id"] == "bad1"
    assert found[1]["error"]["detail"].startswith("score 'high' is not a finite number; drop the")


@pytest.mark.parametrize(
    ("body", "headers", "status", "text"),
    [
        (b"{", JSON, 400, "the body is not JSON"),
        (b"7", JSON, 400, "neither a list of rows nor a row"),
        (b"[" + b'{"id":"x"},' * 10_000 + b'{"id":"x"}]', JSON, 413, "10,001 rows are too many"),
        (b"\xff", JSON, 400, "the body is not JSON"),
        (b"[7,", JSON, 400, "the body is not JSON"),
        (b"[" * 100_000, JSON, 400, "the body is not JSON"),
        (b"[]", {**JSON, "content-length": f"{5 << 20}"}, 413, "more than 4,194,304 bytes"),
        (b"[]", {"content-type": "text/plain"}, 415, "content-type: application/json"),
        (b"[]", {**JSON, "host": "evil.example"}, 403, "not served under this name"),
        (b"[]", {**JSON, **{f"x-{n}": "" for n in range(70)}}, 431, "too many header fields"),
    ],
)
def test_refused_requests(
    server: Running, body: bytes, headers: dict[str, str], status: int, text: str
) -> None:
    """A request that cannot be served is refused with its status and a sentence."""
    reply = server.ask("/v1/predict", body, headers)
    assert (reply.status, text in reply.json["error"]) == (status, True)


def test_the_open_inference_protocol(server: Running) -> None:
    """Tensors of ids and scores are answered with tensors of probabilities, again and again."""
    inputs = [
        {"name": "id", "datatype": "BYTES", "shape": [2], "data": ["t1", "t2"]},
        {"name": "score", "datatype": "FP64", "shape": [2], "data": [0.1, 0.9]},
    ]
    reply = server.ask("/v2/models/tensors/infer", {"inputs": inputs})
    assert reply.json["model_name"] == "tensors"
    found = {one["name"]: one["data"] for one in reply.json["outputs"]}
    assert found == {"p0": [0.0, 0.0], "p1": [1.0, 1.0], "p": found["p"]}
    assert found["p"] == pytest.approx([0.1, 0.9], abs=0.01)
    assert server.ask("/v2/models/tensors/infer", {"inputs": inputs}).json == reply.json
    assert server.predict({"id": "t1", "model": "tensors", "score": 1})[0]["score"] == 0.1
    named = server.ask("/v2/models/tensors/infer", {"id": "request 7", "inputs": inputs}).json
    assert named == {**reply.json, "id": "request 7"}
    for path in ("/v2/models/tensors/versions/2/infer", "/v2/models//infer"):
        assert server.ask(path, {"inputs": inputs}).status == 404
    for wrong, text in (
        ({}, "not a request of the Open Inference Protocol"),
        ({"inputs": inputs[:1]}, "it lacks tensors; send id and score"),
        ({"inputs": [inputs[0], {**inputs[1], "data": [0.5]}]}, "2 ids and 1 scores"),
        ({"inputs": [{**inputs[0], "data": ["", "t1"]}, inputs[1]]}, "1 of 2 rows have no"),
    ):
        refused = server.ask("/v2/models/tensors/infer", wrong)
        assert (refused.status, text in refused.json["error"]) == (400, True)


def test_what_can_be_read(server: Running) -> None:
    """Health, metrics, the verdict, the description and the live page are on the same server."""
    server.predict({"id": "r1", "score": 0.5, "model": "read/me"})
    assert server.label({"id": "r1", "label": 1, "model": "read/me"}) == ["learned"]
    assert server.ask("/readyz").json["ready"] is True
    assert server.ask("/livez").json == {"alive": True}
    answers = server.ask("/v1/models/read/me/verdict").json["answers"]
    assert [one["question"] for one in answers] == ["model", "calibrated", "pays"]
    assert server.ask("/v1/models/none/verdict").status == 404
    paths = server.ask("/openapi.json").json["paths"]
    assert {"/v1/predict", "/v1/labels", "/v2/models/{model}/infer"} <= {*paths}
    assert "404" in paths["/v1/models/{model}/verdict"]["get"]["responses"]
    for path in (path for path, by_method in paths.items() if "post" in by_method):
        described = paths[path]["post"]["responses"]
        evil = {**JSON, "host": "evil.example"}
        asked: list[tuple[bytes, dict[str, str]]] = [(b"{", JSON), (b"[]", {}), (b"[]", evil)]
        statuses = {f"{server.ask(path, *given).status}" for given in asked}
        assert statuses == {"400", "415", "403"} <= {*described}
    counted = b'abers_records_total{application="serve",input="labels",process="0"} 0.0'
    while counted in (found := server.ask("/metrics").body):
        pass  # they are counted four times a second, and kept for a moment
    assert b'abers_unbalanced_partitions{application="serve",process="0"} 0.0' in found
    assert b"<!doctype html>" in server.ask("/").body


def dead_letters(server: Running) -> dict[str, float]:
    """Return the rows that the metrics count as unusable, by reason."""
    found = re.findall(
        r'^abers_dead_letters_total\{.*reason="(.*?)".*\} (.*)$',
        server.ask("/metrics").body.decode(),
        re.MULTILINE,
    )
    return {reason: float(count) for reason, count in found}


def test_refused_rows_are_counted(tmp_path: Path) -> None:
    """Each row that becomes no event is in the metrics, whether a request has others or not."""
    with Running(tmp_path) as server:
        rows = [{"id": "a", "score": "high"}, {"id": "b", "score": 1.5}, {"id": "c", "score": 0.5}]
        assert server.ask("/v1/predict", rows).status == 200
        for one in ({"id": "c", "label": "yes"}, {"id": "c", "label": 2}, {"id": "c"}):
            assert "error" in server.ask("/v1/labels", one).json
        expected = {"bad-score": 2.0, "bad-label": 2.0, "missing-field": 1.0}
        while (found := dead_letters(server)) != expected:
            assert sum(found.values()) < 5
        assert b'abers_unbalanced_partitions{application="serve",process="0"} 0.0' in (
            server.ask("/metrics").body
        )


def test_paths_and_methods(server: Running) -> None:
    """An unknown path is 404 and a wrong method 405 with those that are right, both as JSON."""
    for path, body, status, allow, text in (
        ("/v1/predictt", [{"id": "x", "score": 0.5}], 404, "", "no such path; see /openapi.json"),
        ("/v1/nothing", None, 404, "", "GET /v1/nothing: there is no such path"),
        ("/v1/predict", None, 405, "POST", "takes POST"),
        ("/v2/models/m/infer", None, 405, "POST", "takes POST"),
        ("/readyz", [1], 405, "GET", "/readyz does not take POST"),
    ):
        reply = server.ask(path, body)
        allowed = reply.headers.get("allow", "").split(", ")
        assert (reply.status, allow in allowed) == (status, True)
        assert text in reply.json["error"]


def test_a_stop_and_a_start(tmp_path: Path) -> None:
    """SIGTERM ends the server with 0, and the next goes on with all that was answered."""
    with Running(tmp_path / "state") as first:
        made = first.predict(*({"id": f"{n}", "score": n / 10} for n in range(10)))
        assert first.terminate() == 0
        assert "stopped: all that was answered is on disk\n" in first.said
    with Running(tmp_path / "state") as second:
        assert second.predict(*({"id": f"{n}", "score": 0.5} for n in range(10))) == made
        with Running(tmp_path / "state") as third:
            assert third.ended() == 75
            assert "writes there" in "".join(third.said)
        port = str(second.address.port)
        with Running(tmp_path / "other", port=port) as fourth:
            assert fourth.ended() > 0
            assert f"--port {port}: another process listens there" in "".join(fourth.said)


def test_a_clock_that_is_set_back(tmp_path: Path) -> None:
    """Behind a restart with the clock an hour back, no row is late, lost, or ahead of its time."""
    hour = 3_600_000
    now = time.time_ns() // 1_000_000
    with DurableProcessor(tmp_path, Settings(scores="probability"), answers=True) as durable:
        before: list[Event] = [Observation(f"{n}", now + hour, score=0.5) for n in range(4)]
        durable.answer(before, ServeClock({"clock": now + hour}).position).result()
    with Running(tmp_path) as running:
        assert running.label({"id": "0", "label": 1}) == ["learned"]
        own = {"id": "own", "score": 0.5, "time": now + hour + 60_000}
        made = running.predict({"id": "none", "score": 0.5}, own)
        assert [one["time"] for one in made] == [now + hour, now + hour + 60_000]
        assert running.terminate() == 0
    with DurableProcessor(tmp_path, Settings(scores="probability"), answers=True) as durable:
        assert durable.position == {"clock": now + hour}
        with durable.reading() as processor:
            assert processor.counters["late_events"] == 0


def test_tokens(tmp_path: Path) -> None:
    """Each kind of request needs its own token, and a server for others needs all three."""
    tokens = {"ABERS_PREDICT_TOKEN": "p" * 32, "ABERS_LABEL_TOKEN": "l" * 32}
    with Running(tmp_path / "state", "--host", "0.0.0.0", environ=tokens) as lacking:  # noqa: S104
        assert lacking.ended() == 78
        assert "ABERS_HTTP_TOKEN" in "".join(lacking.said)
    every = {**tokens, "ABERS_HTTP_TOKEN": "r" * 32}
    with Running(tmp_path / "state", environ=every) as running:

        def status(path: str, token: str | None, body: object = None) -> int:
            given = {} if token is None else {"authorization": f"Bearer {token * 32}"}
            return running.ask(path, body, {**JSON, **given}).status

        for path, right in (("/v1/predict", "p"), ("/v1/labels", "l")):
            found = {token: status(path, token, []) for token in ("p", "l", "r", None)}
            assert found == {**dict.fromkeys(("p", "l", "r", None), 401), right: 200}
        assert status("/v2/models/m/infer", "l", {}) == 401
        assert status("/v1/models/m/verdict", "p") == 401
        assert status("/v1/models/m/verdict", "r") == 404
        assert status("/readyz", None) == 200


def test_a_configuration(tmp_path: Path) -> None:
    """A configuration names the calibrator and the folder; topics and files do not go with it."""
    config = tmp_path / "serve.toml"
    config.write_text("[task]\nkind = 'multiclass'\nclasses = ['a', 'b', 'c']\n")
    with Running(tmp_path / "state", str(config)) as running:
        (made,) = running.predict({"id": "1", "score": {"a": 0.2, "b": 0.3, "c": 0.5}})
        assert {*made["p"]} == {"a", "b", "c"}
        assert running.label({"id": "1", "label": "b"}) == ["learned"]
        reply = running.ask("/v2/models/default/infer", {"inputs": []})
        assert (reply.status, "only tasks of two classes" in reply.json["error"]) == (400, True)
        assert (
            """-d '{"id": "a1", "score": {"a": 0.34, "b": 0.33, "c": 0.33}}'""" in running.said[2]
        )
        assert """-d '{"id": "a1", "label": "a"}'""" in running.said[3]
    config.write_text("state.path = 'x'\n")
    with Running(tmp_path / "state", str(config)) as wrong:
        assert wrong.ended() == 78
        assert "state.path: has no effect in a server" in "".join(wrong.said)
    config.write_text("[kafka]\n")
    with Running(tmp_path / "state", str(config)) as wrong:
        assert wrong.ended() == 78
        assert "serve: is without topics" in "".join(wrong.said)


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A disk that is full ends the server with 75; what was answered is there afterwards."""
    with Running(tmp_path / "state") as running:
        made = running.predict({"id": "before", "score": 0.5})
        size = (tmp_path / "state" / f"{0:020}.journal").stat().st_size
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (size + 9, size + 9))
        refused = running.ask("/v1/predict", [{"id": "after", "score": 0.5}])
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert running.ended() == 75
        assert "the disk failed (File too large)" in "".join(running.said)
    with Running(tmp_path / "state") as again:
        assert again.predict({"id": "before", "score": 0.5}) == made
        assert again.predict({"id": "after", "score": 0.25})[0]["score"] == 0.25


KILLS, CLIENTS = 4, 16


class Client(threading.Thread):
    """Sends observations and labels, repeats what was not answered, and remembers all answers."""

    def __init__(self, number: int) -> None:
        """Begin with nothing sent."""
        super().__init__(daemon=True)
        self.number, self.chance = number, random.Random(number)  # noqa: S311 - of a test
        self.predicted: dict[str, Any] = {}
        self.labelled: dict[str, int] = {}
        self.server: Running | None = None
        self.stopped, self.sent = False, 0

    def run(self) -> None:
        """Send until it is stopped."""
        while not self.stopped:
            self.sent += 1
            id_ = f"{self.number}-{self.sent}"
            row = {"id": id_, "score": self.chance.randrange(64) / 64}
            steps = [self.predict, self.label]
            if self.chance.random() < 0.2:
                steps.reverse()  # the label comes first
            for step in steps:
                step(row)

    def predict(self, row: dict[str, Any]) -> None:
        """Send until it is answered; at times once more, and the answer is the same."""
        (found,) = self.repeated("/v1/predict", [row])
        if self.chance.random() < 0.3:
            assert self.repeated("/v1/predict", [row]) == [found]
        self.predicted[row["id"]] = found

    def label(self, row: dict[str, Any]) -> None:
        """Send a label until it is answered."""
        value = int(row["score"] > 0.5)
        (found,) = self.repeated("/v1/labels", [{"id": row["id"], "label": value}])
        assert found["status"] in {"learned", "waiting", "duplicate"}
        self.labelled[row["id"]] = value

    def repeated(self, path: str, rows: object) -> Any:  # noqa: ANN401 - as JSON has it
        """Send a request until there is an answer."""
        while True:
            try:
                assert self.server is not None
                reply = self.server.ask(path, rows)
            except (OSError, EOFError, Exception) as error:
                if isinstance(error, AssertionError):
                    raise
                threading.Event().wait(0.05)
                continue
            if reply.status == 200:
                return reply.json


def test_kills_under_clients(tmp_path: Path) -> None:
    """A server is killed again and again; all that was answered is there, once, to the bit."""
    clients = [Client(number) for number in range(CLIENTS)]
    for kill in range(KILLS):
        with Running(tmp_path / "state") as running:
            for one in clients:
                one.server = running
                if not kill:
                    one.start()
            goal = sum(len(one.labelled) for one in clients) + 150
            while sum(len(one.labelled) for one in clients) < goal:
                threading.Event().wait(0.02)
            if kill < KILLS - 1:
                running.process.kill()
                continue
            for one in clients:
                one.stopped = True
            for one in clients:
                one.join()
            assert running.terminate() == 0
    predicted = {id_: one for client in clients for id_, one in client.predicted.items()}
    labelled = {id_ for client in clients for id_ in client.labelled}
    settings = Settings(scores="probability")
    with DurableProcessor(tmp_path / "state", settings, answers=True) as durable:
        with durable.reading() as processor:
            counters, accounts = processor.counters, processor.accounts
        assert counters["predictions"] == len(predicted)
        assert counters["labels"] == len(labelled) == len(predicted)
        assert accounts["waiting_observations"] == accounts["waiting_labels"] == 0
    with Running(tmp_path / "state") as running:
        rows = [{"id": id_, "score": 0.5} for id_ in predicted]
        assert running.predict(*rows) == [*predicted.values()]

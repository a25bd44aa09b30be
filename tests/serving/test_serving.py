"""The examples of serving on the real MLflow and the real server of BentoML.

They run in build/serving, which `make serving` makes.
"""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import socket
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from abers import VennAbers

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "serving"
BIN = ROOT / "build" / "serving" / "bin"
ENVIRONMENT = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
PAGE = (ROOT / "docs" / "serving.md").read_text()
TIMEOUT = 300.0  # seconds; the server imports much on a busy machine

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not BIN.exists(), reason="MLflow and BentoML are missing: make serving"),
]

# By scikit-learn and abers alone, without the examples: the rows that are served, their labels,
# and their scores.
ORACLE = """
import json, sys
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB
data, labels = load_breast_cancer(return_X_y=True, as_frame=True)
scores = GaussianNB().fit(data[:200], labels[:200]).predict_proba(data)[:, 1].tolist()
rows = data[400:].to_dict("records")
json.dump({"rows": rows, "labels": labels.tolist(), "scores": scores}, sys.stdout)
"""


class Oracle(NamedTuple):
    """Rows that are served, their labels, and a calibrator that has the others."""

    rows: list[dict[str, float]]
    labels: list[int]
    scores: list[float]
    calibrator: VennAbers

    def answers(self, start: int = 0) -> list[dict[str, float]]:
        """Return the predictions of rows from some on."""
        found = map(self.calibrator.predict_one, self.scores[start:])
        return [{"p0": one.p0, "p1": one.p1, "p": one.merged} for one in found]


@pytest.fixture
def oracle() -> Oracle:
    """Return the rows to serve, and a calibrator of its own."""
    ran = subprocess.run([BIN / "python", "-c", ORACLE], check=True, stdout=subprocess.PIPE)
    found = json.loads(ran.stdout)
    calibrator = VennAbers()
    calibrator.learn_many(found["scores"][200:400], found["labels"][200:400])
    return Oracle(found["rows"], found["labels"][400:], found["scores"][400:], calibrator)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make the model."""
    subprocess.run([BIN / "python", EXAMPLES / "make_model.py", tmp_path], check=True)
    return tmp_path


class Server(NamedTuple):
    """A server that runs, and its address."""

    process: subprocess.Popen[str]
    address: str

    def kill(self) -> None:
        """Kill the server and its worker, which runs in a group of its own."""
        pid = self.process.pid
        workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        assert len(workers) == 1
        for one in (pid, *map(int, workers)):
            os.kill(one, signal.SIGKILL)

    def post(self, path: str, body: dict[str, Any]) -> Any:  # noqa: ANN401 - as the answer is
        """Send a request as JSON, and return the answer."""
        data = json.dumps(body).encode()
        request = Request(f"{self.address}{path}", data, {"Content-Type": "application/json"})  # noqa: S310
        with urlopen(request, timeout=TIMEOUT) as response:  # noqa: S310 - of this machine
            return json.load(response)


@contextmanager
def served(folder: Path, port: int) -> Iterator[Server]:
    """Run the command that the page shows, until its service is ready."""
    words = ["bentoml", "serve", "bentoml_service:Calibrated", "--host", "127.0.0.1"]
    environment = ENVIRONMENT | {
        "ABERS_MODEL": str(folder),
        "BENTOML_DO_NOT_TRACK": "True",
        "BENTOML_HOME": str(folder / "bentoml"),
    }
    with subprocess.Popen(
        [*words, "--port", str(port)],
        cwd=EXAMPLES,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        printed = [next(lines, "")]
        while printed[-1] and "Service Calibrated initialized" not in printed[-1]:
            printed.append(next(lines, ""))
        assert printed[-1], "".join(printed)
        rest = threading.Thread(target=lambda: [*lines])
        rest.start()
        try:
            yield Server(process, f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            rest.join()


@pytest.fixture
def port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("name", ["mlflow_run", "bentoml_run"])
def test_the_example_prints_what_it_says_and_the_page_shows(name: str, tmp_path: Path) -> None:
    """Each example prints the last paragraph of its docstring, which the page repeats."""
    program = EXAMPLES / f"{name}.py"
    expected = (ast.get_docstring(ast.parse(program.read_text())) or "").rpartition("\n\n")[2]
    ran = subprocess.run(
        [BIN / "python", program],
        env=ENVIRONMENT | {"BENTOML_HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    printed = [line for line in ran.stdout.splitlines() if not re.match(r"INFO|20\d\d-", line)]
    assert "\n".join(printed) == expected
    assert f"```text\n{expected}\n```" in PAGE


def test_the_server_answers_as_scikit_learn_and_abers_do(
    folder: Path, port: int, oracle: Oracle
) -> None:
    """Answers over HTTP are those of a calibrator next to it, to the bit, also after labels."""
    with served(folder, port) as server:
        answers = server.post("/predict", {"rows": oracle.rows})
        assert answers == oracle.answers()
        assert f"`{json.dumps(answers[:1])}`" in PAGE
        for part in (slice(0, 1), slice(1, 60)):
            body = {"rows": oracle.rows[part], "labels": oracle.labels[part]}
            oracle.calibrator.learn_many(oracle.scores[part], oracle.labels[part])
            assert server.post("/learn", body) == 200 + part.stop
            assert server.post("/predict", {"rows": oracle.rows}) == oracle.answers()


def test_a_label_that_was_answered_survives(folder: Path, port: int, oracle: Oracle) -> None:
    """A server that is killed knows every label that it answered when it starts again."""
    with served(folder, port) as server:
        server.post("/learn", {"rows": oracle.rows[:40], "labels": oracle.labels[:40]})
        server.kill()
    oracle.calibrator.learn_many(oracle.scores[:40], oracle.labels[:40])
    with served(folder, port) as server:
        assert server.post("/predict", {"rows": oracle.rows}) == oracle.answers()


@pytest.mark.parametrize(
    ("path", "change", "sentence"),
    [
        ("/learn", {"labels": [7]}, "7 is not 0 or 1"),
        ("/learn", {"labels": [0, 1]}, "labels has 2 rows, scores has 1"),
        ("/predict", {"rows": [{"mean radius": 1.0}]}, "not in index"),
    ],
)
def test_what_cannot_be_used_is_refused(  # noqa: PLR0913, PLR0917 - a fixture each
    path: str, change: dict[str, Any], sentence: str, folder: Path, port: int, oracle: Oracle
) -> None:
    """A request with a mistake is answered by 400 and the mistake, and changes nothing."""
    with served(folder, port) as server:
        body = {"rows": oracle.rows[:1]} | ({"labels": [1]} if path == "/learn" else {})
        with pytest.raises(HTTPError) as refusal:
            server.post(path, body | change)
        assert refusal.value.code == 400
        assert sentence in refusal.value.read().decode()
        assert server.post("/predict", {"rows": oracle.rows}) == oracle.answers()

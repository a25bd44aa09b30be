"""The example of FastAPI, on the real uvicorn: it is killed, its disk is full, and it goes on."""

from __future__ import annotations

import http.client
import json
import os
import resource
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Self

from tests.conftest import ROOT

from abers import VennAbers

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = ROOT / "examples" / "serving"
PATIENCE = 60.0
REPEATED = 409, {"detail": "this id was predicted before; use a new id"}


class Uvicorn:
    """The command of the example, in a `with` block."""

    def __init__(self, state: Path) -> None:
        """Start it, and wait until it serves."""
        words = ["uvicorn", "fastapi_app:app", "--host", "127.0.0.1", "--port", "0"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", *words, "--app-dir", str(EXAMPLES)],
            env=os.environ | {"ABERS_STATE": str(state)},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.port = next(
            int(line.split("http://127.0.0.1:")[1].split()[0])
            for line in self.process.stderr
            if "running on" in line
        )

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it if it runs."""
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)

    def post(self, path: str) -> tuple[int, Any]:
        """Return status and answer of a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("POST", path)
            found = connection.getresponse()
            return found.status, json.loads(found.read())
        finally:
            connection.close()


def test_a_service_that_is_killed(tmp_path: Path) -> None:
    """Each prediction is that of a calibrator with the labels before, across a kill."""
    oracle = VennAbers()

    def expected(number: int) -> tuple[int, dict[str, Any]]:
        made = oracle.predict_one(number / 10)
        return 200, {"id": str(number), "p0": made.p0, "p1": made.p1, "p": made.merged}

    for start in (0, 5):
        with Uvicorn(tmp_path / "state") as running:
            if start:
                assert running.post(f"/predict/{start - 1}?score=0.3") == REPEATED
            for number in range(start, start + 5):
                path = f"/predict/{number}?score={number / 10}"
                assert running.post(path) == expected(number)
                found = running.post(f"/label/{number}?value={number % 2}")
                assert found == (200, {"id": str(number), "settled": True})
                oracle.learn_one(number / 10, number % 2)
            again = running.post(f"/label/{start}?value=1")
            assert again == (200, {"id": str(start), "settled": False})
            assert running.post("/label/new?value=7")[0] == 422


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A service without a disk answers 503 and ends; what it had answered is there afterwards."""
    with Uvicorn(tmp_path / "state") as running:
        assert running.post("/predict/before?score=0.5")[0] == 200
        size = (tmp_path / "state" / f"{0:020}.journal").stat().st_size
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (size, size))
        assert running.post("/predict/after?score=0.5")[0] == 503
        assert running.process.wait(PATIENCE) in {0, -signal.SIGTERM}
    with Uvicorn(tmp_path / "state") as running:
        assert running.post("/predict/before?score=0.5") == REPEATED
        assert running.post("/predict/after?score=0.5")[0] == 200

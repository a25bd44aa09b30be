"""A disk that fails under `abers serve`: nothing is answered that is not on it."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import ROOT
from tests.connectors.serve.running import Running

from abers.stream import DurableProcessor, Label, Observation, Processor, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from abers.stream import Event

SETTINGS = Settings(scores="probability")
NOW = 1_700_000_000_000


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library whose `fdatasync` fails while the file `FAILS_WHILE` exists."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("a C compiler is missing; install gcc")
    made = tmp_path_factory.mktemp("disk") / "failing.so"
    source = ROOT / "tests" / "connectors" / "serve" / "failing_disk.c"
    command = [compiler, "-shared", "-fPIC", "-o", str(made), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return made


def rows(first: int) -> list[dict[str, Any]]:
    """Return rows of ten observations."""
    ids = range(first, first + 10)
    return [{"id": f"{n}", "score": n % 7 / 7, "time": NOW + n} for n in ids]


def labels(first: int) -> list[dict[str, Any]]:
    """Return rows of their labels."""
    return [{"id": f"{n}", "label": n % 2, "time": NOW + n + 10} for n in range(first, first + 10)]


def events(rows: list[dict[str, Any]]) -> list[Event]:
    """Return the events that rows are."""
    return [
        Label(one["id"], one["time"], value=one["label"])
        if "label" in one
        else Observation(one["id"], one["time"], score=one["score"])
        for one in rows
    ]


def state(path: Path) -> bytes:
    """Return the state in a folder."""
    with DurableProcessor(path, SETTINGS, answers=True) as durable, durable.reading() as processor:
        return processor.state_bytes()


def test_a_sync_that_fails(tmp_path: Path, failing: Path) -> None:
    """A sync that fails ends the server with 75, and what it was for is not answered.

    When the disk is back, the next server goes on, and its state is that of the same events on a
    disk that never failed, to the bit.
    """
    folder, mark = tmp_path / "state", tmp_path / "fails"
    broken: Mapping[str, str] = {"LD_PRELOAD": str(failing), "FAILS_WHILE": str(mark)}
    with Running(folder, environ=broken) as first:
        made = first.predict(*rows(0))
        assert first.label(*labels(0)) == ["learned"] * 10
        mark.touch()
        refused = first.ask("/v1/predict", rows(10))
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert first.ended() == 75
        assert "the disk failed (Input/output error)" in "".join(first.said)
    with Running(folder, environ=broken) as second:
        assert second.ended() == 75
        assert "Input/output error" in "".join(second.said)
    mark.unlink()
    with Running(folder, environ=broken) as third:
        assert third.predict(*rows(0)) == made
        assert third.label(*labels(0)) == ["duplicate"] * 10
        more = third.predict(*rows(10))
        assert third.label(*labels(10)) == ["learned"] * 10
        assert third.predict(*rows(10)) == more
        assert third.terminate() == 0
    whole = Processor(SETTINGS)
    # The second part was written, and only its sync failed: sent again, it is known.
    for part in (rows(0), labels(0), rows(10), rows(0), labels(0), rows(10), labels(10), rows(10)):
        whole.process_many(events(part))
    assert state(folder) == whole.state_bytes()

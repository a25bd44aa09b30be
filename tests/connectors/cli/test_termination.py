"""One signal ends every command, whatever it waits for; and no command waits in a named pipe."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.connectors.conftest import in_a_line
from tests.connectors.processes import until
from tests.connectors.sources.lakes import history

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Start = Callable[..., subprocess.Popen[bytes]]

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
STUCK = """
import os, threading
from concurrent.futures import ThreadPoolExecutor
from pyarrow import OSFile
from abers_connectors.errors import allow_time
from abers_connectors.cli.main import main
from abers_connectors.sources.registry import SOURCES

allow_time(0.5, lambda message: os.write(2, message.encode()))

def in_thread():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(open, "pipe").result()

def in_library():
    OSFile("pipe")

def in_lock():
    threading.Event().wait()

def wait(*_):
    while True:
        try:
            os.write(1, b"waiting")
            {}()
        except BaseException:  # as a library does that loses it
            pass

SOURCES.register("csv", wait)
main()
"""


@contextmanager
def silent_server() -> Iterator[tuple[int, Callable[[], bool]]]:
    """Accept connections and say nothing; yield the port, and what says whether one came."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)  # noqa: FBT003 - its only argument
        held = []

        def came() -> bool:
            try:
                held.append(server.accept())
            except BlockingIOError:
                return bool(held)
            return True

        yield server.getsockname()[1], came
        for connection, _ in held:
            connection.close()


def ended(process: subprocess.Popen[bytes], number: int) -> tuple[int, str]:
    """Send one signal; return the exit code, and what the process said."""
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    return process.returncode, said.decode()


@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("wait", ["in_thread", "in_library", "in_lock"])
def test_a_wait_without_end(tmp_path: Path, wait: str, number: int, code: int) -> None:
    """A process that does not end by itself after a signal is ended, and says why."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "in.csv").write_text("score,label\n0.5,1\n")
    with subprocess.Popen(
        [sys.executable, "-c", STUCK.format(wait), "replay", "in.csv"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(7) == b"waiting"
        ended_with, said = ended(process, number)
    assert ended_with == code
    assert f"{signal.Signals(number).name} came 0.5 s ago" in said


CONFIG = """
kafka.observations = "scores"
kafka.labels = "labels"
kafka.predictions = "predictions"
kafka.bootstrap_servers = ["127.0.0.1:{}"]
kafka.application_id = "app"
kafka.client = "{}"
http.enabled = false
state.path = "state"
"""
COMMANDS = [
    "run abers.toml",
    "check abers.toml --connect",
    "state list abers.toml",
    "replay abers.toml",
]


@pytest.mark.parametrize("client", ["kafka-python", "librdkafka"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_broker_that_does_not_answer(
    start: Start, tmp_path: Path, command: str, client: str
) -> None:
    """A command that waits for a broker ends with its first signal."""
    with silent_server() as (port, came):
        (tmp_path / "abers.toml").write_text(CONFIG.format(port, client))
        process = start(*command.split())
        assert until(process, came), process.communicate()[1].decode()
        code, said = ended(process, signal.SIGTERM)
    assert code in {0, 143}, said
    assert "Traceback" not in said


def test_a_bucket_that_does_not_answer(start: Start) -> None:
    """A replay that lists or reads a bucket ends with its first signal."""
    with silent_server() as (port, came):
        process = start(
            "replay",
            "s3://bucket/history",
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}",
            AWS_ACCESS_KEY_ID="a",
            AWS_SECRET_ACCESS_KEY="b",  # noqa: S106 - no real one
            AWS_DEFAULT_REGION="us-east-1",
        )
        assert until(process, came), process.communicate()[1].decode()
        code, said = ended(process, signal.SIGTERM)
    assert code == 143, said
    assert "Traceback" not in said


@pytest.mark.parametrize("options", [["--workers", "2"], ["--live"]], ids=str)
def test_a_replay_that_waits_for_its_reader(
    start: Start, tmp_path: Path, options: list[str]
) -> None:
    """A replay that waits until its output is read ends with its first signal."""
    rows = "".join(f"{n / 60_000},{n % 2}\n" for n in range(60_000))
    (tmp_path / "in.csv").write_text("score,label\n" + rows)
    reader, writer = os.pipe()
    process = start("replay", "in.csv", "--output", "-", *options, out=writer)
    os.close(writer)
    assert os.read(reader, 1) == b"{"
    code, said = ended(process, signal.SIGTERM)
    os.close(reader)
    assert code == 143, said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", ["x.parquet", "folder", "folder/*.parquet", "delta"])
def test_a_pipe_in_the_place_of_a_parquet_file(start: Start, tmp_path: Path, name: str) -> None:
    """A replay refuses a named pipe by its name, alone, in a folder, a pattern or a table."""
    os.mkfifo(tmp_path / "x.parquet")
    (tmp_path / "folder").mkdir()
    pq.write_table(history(), tmp_path / "folder" / "a.parquet")
    os.mkfifo(tmp_path / "folder" / "x.parquet")
    if name == "delta":
        deltalake = pytest.importorskip("deltalake")
        deltalake.write_deltalake(tmp_path / "delta", history())
        (file,) = (tmp_path / "delta").glob("*.parquet")
        file.unlink()
        os.mkfifo(file)
    process = start("replay", name)
    _, said = process.communicate(timeout=120)
    assert process.returncode in {1, 2}
    assert "parquet" in said.decode()
    assert "is a named pipe\n  name a regular file\n" in said.decode()


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("run abers.toml", "abers.toml"),
        ("inspect abers.state", "abers.state"),
        ("run keyed.toml", "key"),
        ("run resumed.toml", "abers.state"),
    ],
)
def test_a_pipe_in_the_place_of_another_file(
    start: Start, tmp_path: Path, command: str, name: str
) -> None:
    """A configuration, a state and a key are not waited for."""
    (tmp_path / "in.jsonl").write_text("")
    given = 'input.observations = "in.jsonl"\noutput.predictions = "out.jsonl"\n'
    (tmp_path / "resumed.toml").write_text(given + 'state.path = "abers.state"\n')
    (tmp_path / "keyed.toml").write_text(
        given + 'state.path = "other.state"\nstate.key_file = "key"\n'
    )
    os.mkfifo(tmp_path / name)
    process = start(*command.split())
    _, said = process.communicate(timeout=120)
    assert process.returncode in {1, 2, 78}
    assert name in said.decode()
    assert "is a named pipe; name a regular file" in in_a_line(said.decode())

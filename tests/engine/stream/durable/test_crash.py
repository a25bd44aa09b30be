"""A writer that is killed under load: all that was answered is kept, to the bit."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
from subprocess import PIPE
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.engine.stream.durable.client import __file__ as client

from abers.stream import DurableProcessor, Label, Observation
from abers.stream.durable.folder import StateFolder
from abers.stream.durable.journal_file import START, Frames

if TYPE_CHECKING:
    from pathlib import Path

    from abers.stream import Outcome

KILLS, LOSSES, ANSWERS = 6, 6, 400


def killed(path: Path, first: int, answers: int) -> list[tuple[str, Any]]:
    """Run a writer, kill it after so many answers, and return all answers that it gave."""
    command = [sys.executable, client, str(path), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(answers)]
        writer.send_signal(signal.SIGKILL)
        lines += writer.stdout.readlines()
    return [json.loads(one) for one in lines if one.endswith(b"\n")]


def require_kept(path: Path, answers: list[tuple[str, Any]]) -> None:
    """Require of a folder that it has all answers, each once."""
    predicted = {id_: what for id_, what in answers if what != "label"}
    labelled = {id_ for id_, what in answers if what == "label"}
    with DurableProcessor(path) as durable:
        with durable.reading() as processor:
            before = processor.counters
        assert before["predictions"] >= len(predicted)
        assert before["labels"] >= len(labelled)
        assert not before["duplicate_observations"] + before["duplicate_labels"]
        time = 10**6
        again = durable.process([Observation(id_, time, score=0.5) for id_ in predicted])
        assert not len(again.predictions)
        same = durable.process([Label(id_, time, value=0) for id_ in labelled])
        assert same.outcomes is not None
        assert not len(same.outcomes)
        with durable.reading() as processor:
            after = processor.counters
        assert after["duplicate_observations"] == len(predicted)
        assert after["duplicate_labels"] == len(labelled)
        left = [id_ for id_ in predicted if id_ not in labelled]
        outcomes: Any = durable.process([Label(id_, time, value=1) for id_ in left]).outcomes
        settled: dict[str, Outcome] = {one.id: one for one in outcomes}
        unanswered = {*left} - {*settled}  # their labels were on disk, and not answered
        assert len(unanswered) <= before["labels"] - len(labelled)
        for id_, one in settled.items():
            assert [one.p0, one.p1, one.p] == predicted[id_][:3]


def test_kills_under_load(tmp_path: Path) -> None:
    """A writer is killed again and again, and nothing that it answered is lost or changed."""
    chance = random.Random(0)  # noqa: S311 - of a test
    answers: list[tuple[str, Any]] = []
    for kill in range(KILLS):
        answers += killed(tmp_path, 10_000 * kill, chance.randrange(ANSWERS))
    assert len(StateFolder(tmp_path).numbers("snapshot")) > 0
    require_kept(tmp_path, answers)


class LastFrame(NamedTuple):
    """The last frame of a journal, which may not have reached the disk."""

    file: int
    begins: int
    has: set[tuple[str, bool]]  # ids, and whether it is a label

    @classmethod
    def of(cls, folder: StateFolder) -> LastFrame | None:
        """Return it; None if the last file has none."""
        number = folder.numbers("journal")[-1]
        frames = Frames(folder.read(number, "journal", START), START, "")
        found, begins = None, START
        for one in frames:
            entry = one.entry
            kinds = map(bool, entry.labels)
            found = cls(number, begins, {*zip(entry.ids, kinds, strict=True)})
            begins = frames.end
        return found

    def lost(self, path: Path, chance: random.Random) -> None:
        """Lose it: the file is shorter, or some sectors were never written."""
        file = StateFolder(path).file(self.file, "journal")
        whole = bytearray(file.read_bytes())
        if chance.random() < 0.5:
            file.write_bytes(whole[: chance.randrange(self.begins, len(whole))])
            return
        sectors = range(self.begins - self.begins % 512, len(whole), 512)
        for at in chance.sample(sectors, chance.randint(1, len(sectors))):
            start = max(at, self.begins)
            whole[start : at + 512] = bytes(len(whole[start : at + 512]))
        file.write_bytes(whole)


def test_a_loss_of_power(tmp_path: Path) -> None:
    """A group that was not answered may not have reached the disk, or in part: all else is kept.

    A disk writes whole sectors. What a group was answered for, the disk said it has.
    """
    state, lost = tmp_path / "state", tmp_path / "lost"
    chance, losses = random.Random(1), 0  # noqa: S311 - of a test
    with subprocess.Popen([sys.executable, client, str(state), "0"], stdout=PIPE) as writer:
        assert writer.stdout is not None
        os.set_blocking(writer.stdout.fileno(), False)
        given = b""
        while losses < LOSSES:
            given = until(writer, given, given.count(b"\n") + chance.randrange(60))
            writer.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WNOWAIT)
            given += writer.stdout.read() or b""
            answers = [json.loads(one) for one in given.splitlines(keepends=True) if b"\n" in one]
            frame = LastFrame.of(StateFolder(state))
            if frame is not None and frame.has.isdisjoint((a, b == "label") for a, b in answers):
                shutil.copytree(state, lost)
                frame.lost(lost, chance)
                require_kept(lost, answers)
                shutil.rmtree(lost)
                losses += 1
            writer.send_signal(signal.SIGCONT)
        writer.kill()


def until(writer: subprocess.Popen[bytes], given: bytes, lines: int) -> bytes:
    """Read until there are so many lines, and return all that there is."""
    assert writer.stdout is not None
    while given.count(b"\n") < lines:
        select.select([writer.stdout], [], [])
        given += writer.stdout.read() or b""
    return given

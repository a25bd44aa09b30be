"""The durable processor, `abers.stream.DurableProcessor`: a folder has all that was answered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
from typing import TYPE_CHECKING, Any, ClassVar

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.cases import DRAWS, Scorer, events, plain, stream
from tests.engine.stream.replies import lab, obs

from abers import ParameterError, StateError
from abers.exceptions import DurabilityError, SettingsError
from abers.stream import DurableProcessor, Events, Processor, Settings
from abers.stream.durable.folder import StateFolder
from abers.stream.durable.journal_file import START, Frames, file_head
from abers.stream.durable.restore import RestoreOptions, restored

if TYPE_CHECKING:
    from pathlib import Path

    from abers.stream import Event

KEY = b"a secret of tests"
DEFAULT = RestoreOptions(None, None, None, None)
FIRST, FIRST_SNAPSHOT = f"{0:020}.journal", f"{0:020}.snapshot"
REPEATED = hypothesis.settings(max_examples=hypothesis.settings().max_examples // 4)


def state(durable: DurableProcessor) -> bytes:
    """Return the state of a durable processor."""
    with durable.reading() as processor:
        return processor.state_bytes()


def taken(batches: list[list[Event]], settings: Settings | None = None) -> bytes:
    """Return the state of a processor that took these batches."""
    processor = Processor(settings)
    for batch in batches:
        processor.process_many(batch)
    return processor.state_bytes()


def journals(path: Path) -> list[Path]:
    """Return the files of the journal, in order."""
    return sorted(path.glob("*.journal"))


@pytest.mark.parametrize("given", ["a", 0, 1.5, True])
def test_the_size_of_a_journal_is_a_number(tmp_path: Path, given: Any) -> None:  # noqa: ANN401
    """What is no size of a journal is refused before a folder is made."""
    with pytest.raises(ParameterError, match=r"journal_bytes=.* of 1 or more"):
        DurableProcessor(tmp_path / "state", journal_bytes=given)
    assert not (tmp_path / "state").exists()


def test_a_life(tmp_path: Path) -> None:
    """Outputs are those of a processor, and a new one goes on where the last stopped."""
    made, plain_one = stream(300, every=20), Processor()
    for start in range(0, len(made), 60):
        with DurableProcessor(tmp_path / "state") as durable:
            for at in range(start, min(start + 60, len(made)), 7):
                batch = made[at : min(at + 7, start + 60)]
                outputs = durable.process(batch, position={"line": at})
                expected = plain_one.process_many(batch)
                assert [*map(plain, outputs.in_order())] == [*map(plain, expected)]
            assert durable.position == {"line": at}
            assert state(durable) == plain_one.state_bytes()


def test_a_position_stays_without_another(tmp_path: Path) -> None:
    """A call without a position leaves the position as it was."""
    with DurableProcessor(tmp_path) as durable:
        assert durable.position is None
        durable.process([obs("a")], [3, "x"])
        durable.process([obs("b")])
        assert durable.position == [3, "x"]
    with DurableProcessor(tmp_path) as durable:
        assert durable.position == [3, "x"]


def test_columns_and_futures(tmp_path: Path) -> None:
    """Columns are taken like lists, and futures are done in the order of the calls."""
    with DurableProcessor(tmp_path) as durable:
        futures = [durable.submit(Events.of([obs(f"{i}", i)])) for i in range(50)]
        futures += [durable.submit([lab(f"{i}", 60 + i)]) for i in range(50)]
        found = [one.result() for one in futures]
    assert [one.predictions[0].id for one in found[:50]] == [f"{i}" for i in range(50)]
    assert [one.outcomes[0].id for one in found[50:] if one.outcomes] == [f"{i}" for i in range(50)]


@REPEATED
@given(data=st.data())
def test_a_cut_at_any_byte(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A journal that was cut anywhere gives the batches before the cut, to the bit."""
    path = tmp_path_factory.mktemp("state")
    batches = [events(one) for one in data.draw(st.lists(st.lists(DRAWS, max_size=12), max_size=6))]
    ends = []
    with DurableProcessor(path, journal_bytes=10**9) as durable:
        for batch in batches:
            durable.process(batch)
            ends.append((path / FIRST).stat().st_size)
    cut = data.draw(st.integers(20, (path / FIRST).stat().st_size))
    os.truncate(path / FIRST, cut)
    left = [batch for batch, end in zip(batches, ends, strict=True) if end <= cut]
    with DurableProcessor(path) as durable:
        assert state(durable) == taken(left)
        durable.process([obs("more", 9)])
    with DurableProcessor(path) as durable:
        assert state(durable) == taken([*left, [obs("more", 9)]])


def test_a_cut_at_every_byte(tmp_path: Path) -> None:
    """A cut at every single byte of a journal gives the batches before it."""
    batches: list[list[Event]] = [
        [obs("a")],
        [obs("b", 1), lab("a", 2)],
        [lab("b", 3), obs("c", 4)],
    ]
    ends = []
    with DurableProcessor(tmp_path) as durable:
        for batch in batches:
            durable.process(batch)
            ends.append((tmp_path / FIRST).stat().st_size)
    expected = [taken(batches[:count]) for count in range(4)]
    whole = (tmp_path / FIRST).read_bytes()
    for cut in range(20, len(whole) + 1):
        (tmp_path / FIRST).write_bytes(whole[:cut])
        processor, _ = restored(StateFolder(tmp_path), DEFAULT)
        assert processor.state_bytes() == expected[sum(end <= cut for end in ends)]


# Snapshots


def long_life(path: Path, made: list[Event], **options: Any) -> bytes:  # noqa: ANN401
    """Take events with many snapshots; return the state."""
    with DurableProcessor(path, journal_bytes=2_000, **options) as durable:
        for at in range(0, len(made), 5):
            durable.process(made[at : at + 5])
            if (found := durable.last_snapshot) is not None:
                assert found.error is None
        return state(durable)


def test_snapshots(tmp_path: Path) -> None:
    """Snapshots are made on the way; the newest two stay, with the journal behind the older."""
    made = stream(400, every=20)
    assert long_life(tmp_path, made) == taken([made])
    snapshots = StateFolder(tmp_path).numbers("snapshot")
    assert len(snapshots) in {2, 3}  # the last two, and one whose successor came at the very end
    assert snapshots[-1] > 0
    assert StateFolder(tmp_path).numbers("journal")[0] == snapshots[0]
    with DurableProcessor(tmp_path) as durable:
        assert state(durable) == taken([made])


class Gated(Scorer):
    """A learner that is saved in a copy of this process only after a gate is open."""

    gate: ClassVar[tuple[int, int]]
    process: ClassVar[int]

    def __getstate__(self) -> dict[str, Any]:
        """Wait in a copy."""
        if os.getpid() != self.process:
            os.read(self.gate[0], 1)
        return self.__dict__


def test_a_close_waits_for_the_snapshot(tmp_path: Path) -> None:
    """A snapshot that is being made at the end is saved, though it takes longer than the rest."""
    Gated.gate, Gated.process = os.pipe(), os.getpid()
    durable = DurableProcessor(tmp_path, learner=Gated(), key=KEY, journal_bytes=2_000)
    for one in stream(400, every=20):
        durable.process([one])
        if len(StateFolder(tmp_path).numbers("journal")) > 1:
            break
    opener = threading.Timer(0.3, os.write, (Gated.gate[1], b"!"))
    opener.start()
    durable.close()
    opener.join()
    assert durable.last_snapshot is not None
    assert durable.last_snapshot.error is None
    assert StateFolder(tmp_path).numbers("snapshot")[-1] > 0
    for end in Gated.gate:
        os.close(end)


def test_a_damaged_snapshot(tmp_path: Path) -> None:
    """Without the newest snapshot the one before gives the same state, with a warning."""
    made = stream(400, every=20)
    long_life(tmp_path, made)
    newest = max(tmp_path.glob("*.snapshot"))
    newest.write_bytes(newest.read_bytes()[:-1] + b"x")
    with pytest.warns(RuntimeWarning, match=r"wrong checksum; .*; went on from"):
        durable = DurableProcessor(tmp_path)
    with durable:
        assert state(durable) == taken([made])
    for one in tmp_path.glob("*.snapshot"):
        one.write_bytes(b"nothing")
    with pytest.raises(StateError, match=r"\.snapshot: not a snapshot of a processor"):
        DurableProcessor(tmp_path)


def test_learners(tmp_path: Path) -> None:
    """Learners are saved under the key, and go on alike."""
    made = stream(150, every=20)
    with pytest.raises(StateError, match="key"):
        DurableProcessor(tmp_path / "open", learner=Scorer())
    found = long_life(tmp_path / "sealed", made, learner=Scorer(), key=KEY)
    live = Processor(learner=Scorer())
    live.process_many(made)
    assert found == live.state_bytes()
    probe = [obs("probe", 9, x={"a": 0.3})]
    with DurableProcessor(tmp_path / "sealed", learner=Scorer(), key=KEY) as durable:
        assert durable.process(probe).in_order() == live.process_many(probe)
    with pytest.raises(StateError, match="sealed"):
        DurableProcessor(tmp_path / "sealed", learner=Scorer(), key=KEY[::-1])


def test_a_backup_is_a_copy(tmp_path: Path) -> None:
    """A copy that is made while events come, snapshots first, has the events of some moment."""
    made = stream(600, every=20)
    with DurableProcessor(tmp_path / "state", journal_bytes=20_000) as durable:
        futures = [durable.submit(made[at : at + 3]) for at in range(0, len(made), 3)]
        futures[len(futures) // 3].result()
        (tmp_path / "copy").mkdir()
        for kind in ("snapshot", "journal"):
            for one in sorted((tmp_path / "state").glob(f"*.{kind}"), reverse=True):
                shutil.copy(one, tmp_path / "copy")
        futures[-1].result()
    with DurableProcessor(tmp_path / "copy") as copy:
        with copy.reading() as processor:
            count = processor.accounts["events"]
        assert count >= len(made) // 3
        assert state(copy) == taken([made[:count]])


# What is refused


def test_other_settings(tmp_path: Path) -> None:
    """Other settings are refused with what differs, and the right ones go on."""
    DurableProcessor(tmp_path).close()
    with pytest.raises(SettingsError, match=r"snapshot: .*calibrator was None and is 'platt'"):
        DurableProcessor(tmp_path, Settings(calibrator="platt"))
    with DurableProcessor(tmp_path, Settings(max_models=7)) as durable:  # of validation alone
        durable.process([obs("a")])


def test_damage_in_the_middle(tmp_path: Path) -> None:
    """A flipped byte is refused with the file and the place, and nothing is changed."""
    with DurableProcessor(tmp_path) as durable:
        for at in range(5):
            durable.process([obs(f"{at}", at)])
    whole = (tmp_path / FIRST).read_bytes()
    changed = whole[:150] + bytes([whole[150] ^ 1]) + whole[151:]
    (tmp_path / FIRST).write_bytes(changed)
    with pytest.raises(StateError, match=rf"{FIRST} is damaged at byte \d+; the bytes"):
        DurableProcessor(tmp_path)
    assert (tmp_path / FIRST).read_bytes() == changed


def test_a_missing_file(tmp_path: Path) -> None:
    """A missing file of the journal is refused with its place, wherever it is."""
    path = tmp_path / "state"
    path.mkdir()
    with DurableProcessor(path) as durable:
        for at in range(6):
            durable.process([obs(f"{at}", at)])
    folder, data = StateFolder(path), (path / FIRST).read_bytes()
    frames = Frames(data[START:], START, "")
    ends = [frames.end for _ in frames]
    folder.write(0, "journal", [data[: ends[1]]])
    folder.write(2, "journal", [file_head(2), data[ends[1] : ends[3]]])
    folder.write(4, "journal", [file_head(4), data[ends[3] :]])
    processor, cursor = restored(folder, DEFAULT)
    assert (processor.counters["predictions"], cursor.number) == (6, 6)
    parts = {number: folder.file(number, "journal").read_bytes() for number in (0, 2, 4)}
    for number, message in ((0, "is missing"), (2, "ends at frame 2, and the journal goes on at")):
        folder.file(number, "journal").unlink()
        with pytest.raises(StateError, match=message):
            DurableProcessor(path)
        folder.write(number, "journal", [parts[number]])
    folder.write(2, "journal", [parts[2][:-1]])
    with pytest.raises(StateError, match="is damaged at byte"):
        DurableProcessor(path)


def test_no_snapshot(tmp_path: Path) -> None:
    """A journal without a snapshot is refused."""
    with DurableProcessor(tmp_path) as durable:
        durable.process([obs("a")])
    (tmp_path / FIRST_SNAPSHOT).unlink()
    with pytest.raises(StateError, match="there is no snapshot"):
        DurableProcessor(tmp_path)


def test_a_start_that_was_interrupted(tmp_path: Path) -> None:
    """A folder whose first snapshot was not completed begins again."""
    DurableProcessor(tmp_path).close()
    (tmp_path / FIRST_SNAPSHOT).rename(tmp_path / (FIRST_SNAPSHOT + ".part"))
    DurableProcessor(tmp_path).close()
    assert sorted(one.name for one in tmp_path.iterdir()) == [FIRST, FIRST_SNAPSHOT, "lock"]


@pytest.mark.parametrize("name", [FIRST, FIRST_SNAPSHOT, "lock"])
def test_links_and_pipes(name: str, tmp_path: Path) -> None:
    """A link or a named pipe in the folder is refused, and the folder itself may be a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    DurableProcessor(tmp_path / "link").close()
    file = tmp_path / "real" / name
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError, match=f"{name} is no regular file"):
        DurableProcessor(tmp_path / "link")
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(StateError, match=f"{name} is no regular file"):
        DurableProcessor(tmp_path / "link")


def test_two_writers(tmp_path: Path) -> None:
    """A second writer is refused with the first, in this process and in another."""
    with DurableProcessor(tmp_path) as durable:
        with pytest.raises(DurabilityError, match=f"process {os.getpid()} on .* writes there; end"):
            DurableProcessor(tmp_path)
        program = f"from abers.stream import DurableProcessor\nDurableProcessor({str(tmp_path)!r})"
        ran = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert f"DurabilityError: {tmp_path}: process {os.getpid()} on" in ran.stderr
        durable.process([obs("a")])
    with DurableProcessor(tmp_path) as durable, durable.reading() as processor:
        assert processor.counters["predictions"] == 1


def test_bad_arguments(tmp_path: Path) -> None:
    """What cannot be processed or saved is refused at once, and nothing is processed."""
    with DurableProcessor(tmp_path) as durable:
        for bad in ([obs("a"), 7], [obs("a", extra={"k": object()})]):
            with pytest.raises(ParameterError):
                durable.submit(bad)
        with pytest.raises(ParameterError, match=r"position .* cannot be saved"):
            durable.submit([obs("a")], object())
        assert state(durable) == Processor().state_bytes()


def test_a_closed_processor(tmp_path: Path) -> None:
    """A closed processor takes nothing, and closing writes what waits."""
    durable = DurableProcessor(tmp_path)
    future = durable.submit([obs("a")])
    durable.close()
    durable.close()
    assert len(future.result().predictions) == 1
    with pytest.raises(DurabilityError, match="is closed"):
        durable.process([obs("b")])
    with pytest.raises(DurabilityError, match="is closed"), durable.reading():
        pass


def ran(program: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


FULL = """
    import resource, sys
    from abers.exceptions import DurabilityError
    from abers.stream import DurableProcessor, Observation
    durable = DurableProcessor(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000))
    answered = 0
    try:
        while True:
            durable.process([Observation(f"{answered}", answered, score=0.5)])
            answered += 1
    except DurabilityError as error:
        print(error)
    for use in (lambda: durable.process([]), lambda: durable.reading().__enter__()):
        try:
            use()
        except DurabilityError as error:
            print(error)
    durable.close()
    print(answered)
"""


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A write that fails ends the processor, and what was answered is there when it goes on."""
    done = ran(FULL, tmp_path)
    assert done.stderr == ""
    first, second, third, answered = done.stdout.splitlines()
    assert "the disk failed (File too large)" in first
    assert "the processor failed" in second
    assert "the processor failed" in third
    assert int(answered) > 5
    with DurableProcessor(tmp_path) as durable:
        with durable.reading() as processor:
            assert processor.counters["predictions"] == int(answered)
        again = durable.process([obs(f"{answered}", int(answered))])
        assert len(again.predictions) == 1


READ_ONLY = """
    import os, sys
    from abers.stream import DurableProcessor
    os.chdir(sys.argv[1])
    os.setgid(65534)
    os.setuid(65534)
    try:
        DurableProcessor(".")
    except OSError as error:
        print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user; run the tests as root")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A folder of somebody else is refused with its name."""
    DurableProcessor(tmp_path / "state").close()
    (tmp_path / "state").chmod(0o755)
    assert (
        ran(READ_ONLY, tmp_path / "state").stdout.strip() == "[Errno 13] Permission denied: 'lock'"
    )


FORKED = """
    import os, sys
    from abers.exceptions import DurabilityError
    from abers.stream import DurableProcessor
    durable = DurableProcessor(sys.argv[1])
    if os.fork() == 0:
        try:
            durable.process([])
        except DurabilityError as error:
            print(error, flush=True)
        os._exit(0)
    os.wait()
"""


def test_a_copy_of_the_process(tmp_path: Path) -> None:
    """A copy of the process cannot use the processor, which has no thread there."""
    assert "is that of another process" in ran(FORKED, tmp_path).stdout


def test_a_folder_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty path is refused, instead of being the current directory."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match="path is empty; name a folder"):
        DurableProcessor("")
    assert not [*tmp_path.iterdir()]

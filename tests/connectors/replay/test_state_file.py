"""The state file: replaced whole, and refused by a run that it does not belong to."""

from __future__ import annotations

import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.keys import KEY, OTHER

from abers import StateError
from abers.stream import Label, Observation, Processor, Settings
from abers_connectors.replay.state_file import StateFile
from abers_connectors.secret import read_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = {"input.observations": "a.jsonl", "input.labels": None}
POSITION = {"source": {"records": 2}, "sinks": {"predictions": {"bytes": 7}}}
LEARNING = Settings(learner="logistic", scores="probability")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the state is kept."""
    return tmp_path / "abers.state"


def used(settings: Settings | None = None) -> Processor:
    """Return a processor with some events."""
    processor = Processor(settings)
    for n in range(5):
        processor.process(Observation(str(n), n, score=0.5, x={"a": n % 2}))
        processor.process(Label(str(n), n, value=n % 2))
    return processor


def test_what_is_saved_is_loaded(path: Path) -> None:
    """State and position are restored, and equal states have equal bytes."""
    processor = used()
    StateFile(str(path), FILES).save(processor, POSITION)
    first = path.read_bytes()
    loaded = StateFile(str(path), FILES).load(Settings(), outcomes=True)
    assert loaded.state_bytes() == processor.state_bytes()
    assert loaded.position == POSITION | {"files": FILES, "layout": 1}
    StateFile(str(path), FILES).save(loaded, POSITION)
    assert path.read_bytes() == first
    assert list(path.parent.iterdir()) == [path]


def test_without_a_file_all_begins(path: Path) -> None:
    """The first run finds no state, and makes a new processor without a position."""
    processor = StateFile(str(path), FILES).load(Settings(window=3), outcomes=True)
    assert processor.position is None
    assert processor.settings.window == 3


def test_a_state_that_cannot_be_saved_leaves_the_old_one(path: Path) -> None:
    """After a failed save the file is unchanged, and no partial file is left."""
    file = StateFile(str(path), FILES)
    file.save(used(), POSITION)
    before = path.read_bytes()
    with pytest.raises(StateError, match="cannot be saved"):
        file.save(used(), {"source": object()})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_state_is_for_its_owner(path: Path, mode: int) -> None:
    """A new file is private, and an existing one keeps its permissions."""
    file = StateFile(str(path), FILES)
    before = os.umask(0o002)
    try:
        with file.held():
            assert stat.S_IMODE(path.with_name(".abers.state.lock").stat().st_mode) == 0o600
            file.save(used(), POSITION)
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            path.chmod(mode)
            file.save(used(), POSITION)
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(before)


def test_what_a_killed_run_left_is_swept_up(path: Path) -> None:
    """A partial state file is removed; other files stay."""
    StateFile(str(path), FILES).save(used(), POSITION)
    path.with_name(".abers.state.123.part").write_bytes(b"part")
    path.with_name(".other.state.123.part").write_bytes(b"part")
    StateFile(str(path), FILES).load(Settings(), outcomes=True)
    names = {one.name for one in path.parent.iterdir()}
    assert names == {"abers.state", ".other.state.123.part"}


def test_one_run_at_a_time(path: Path) -> None:
    """A second run is refused until the first has ended, by any path to the state."""
    link = path.with_name("link.state")
    link.symlink_to(path)
    with StateFile(str(path), FILES).held():
        for name in (path, link, path.parent / "." / path.name):
            message = r"\.state: another run is using this state; wait for its end, or stop it"
            with pytest.raises(StateError, match=message), StateFile(str(name), FILES).held():
                pass
        with StateFile(str(path.with_name("other.state")), FILES).held():
            pass
    with StateFile(str(link), FILES).held():
        pass
    assert list(path.parent.iterdir()) == [link]


def test_a_lock_that_a_killed_run_left(path: Path) -> None:
    """A lock file that nobody holds is ignored and removed."""
    path.with_name(".abers.state.lock").write_bytes(b"")
    with StateFile(str(path), FILES).held():
        pass
    assert list(path.parent.iterdir()) == []


@pytest.fixture
def _switching() -> Iterator[None]:
    """Restore the switch interval of threads."""
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_switching")
def test_whoever_comes_while_another_leaves(path: Path) -> None:
    """Of concurrent runs at most one holds the state."""
    inside: list[int] = []
    most: list[int] = []
    sys.setswitchinterval(1e-6)  # so that they meet in the narrowest place

    def come_and_go(number: int) -> None:
        for _ in range(500):
            with suppress(StateError), StateFile(str(path), FILES).held():
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(come_and_go, range(4)))
    assert set(most) == {1}


def test_other_files_are_refused(path: Path) -> None:
    """A state of other files is refused; the message names them and a remedy."""
    StateFile(str(path), FILES).save(used(), POSITION)
    other = FILES | {"input.observations": "b.jsonl"}
    message = (
        r"abers\.state: the state was made with other files: input\.observations was 'a\.jsonl' "
        r"and is 'b\.jsonl'; set them back, or remove state and outputs to start anew"
    )
    with pytest.raises(StateError, match=message):
        StateFile(str(path), other).load(Settings(), outcomes=True)


def test_a_state_of_another_layout(path: Path) -> None:
    """A state without a known layout of its position is refused."""
    message = r"abers\.state: another version of abers saved this state, .* to start anew"
    others: list[Any] = [None, 7, [], {}]
    for position in (*others, POSITION | {"files": FILES}, POSITION | {"layout": 2}):
        path.write_bytes(used().snapshot(position))
        with pytest.raises(StateError, match=message):
            StateFile(str(path), FILES).load(Settings(), outcomes=True)


def test_a_beginning_binds_nobody(path: Path) -> None:
    """The state of a run that had read nothing is replaced under other settings or files."""
    StateFile(str(path), FILES).begin(Processor(Settings(window=3)))
    again = StateFile(str(path), FILES).load(Settings(window=3), outcomes=True)
    assert again.position is not None
    for files, settings in ((FILES, Settings()), ({}, Settings(window=3))):
        loaded = StateFile(str(path), files | {"output.x": "x"}).load(settings, outcomes=True)
        assert (loaded.position, loaded.settings) == (None, settings)


def test_outputs_without_a_state(path: Path) -> None:
    """Outputs are not overwritten, unless they are empty or of a run that had read nothing."""
    names = ("rows.jsonl", "empty.jsonl", "parts.parquet", "none.jsonl", "no.parquet")
    rows, empty, parts, _, no = (path.with_name(name) for name in names)
    rows.write_text("{}")
    empty.touch()
    parts.mkdir()
    (parts / "part-00000000.parquet").touch()
    no.mkdir()
    outputs = {f"output.{n}": str(path.with_name(name)) for n, name in enumerate(names)}
    file = StateFile(str(path), FILES | outputs | {"output.pipe": "-", "output.off": None})
    message = (
        rf"abers\.state: there is no state, but output\.0 {rows} and output\.2 {parts} are there, "
        "and would be lost; put the state back, or move the outputs away to start anew"
    )
    with pytest.raises(StateError, match=message):
        file.load(Settings(), outcomes=True)
    assert not path.exists()
    (parts / "part-00000000.parquet").unlink()
    with pytest.raises(StateError, match=rf"but output\.0 {rows} is there"):
        file.load(Settings(), outcomes=True)
    StateFile(str(path), {"output.0": str(rows)}).begin(Processor())
    assert file.load(Settings(window=3), outcomes=True).position is None


def test_other_settings_are_refused(path: Path) -> None:
    """Settings that would have led to another state are refused."""
    StateFile(str(path), FILES).save(used(), POSITION)
    message = r"abers\.state: the snapshot was made with other settings: window was None and is 7"
    with pytest.raises(StateError, match=message):
        StateFile(str(path), FILES).load(Settings(window=7), outcomes=True)


def test_max_models_may_be_raised(path: Path) -> None:
    """A state continues under other limits, unless it exceeds one of them."""
    StateFile(str(path), FILES).save(used(), POSITION)
    loaded = StateFile(str(path), FILES).load(Settings(max_models=2_000), outcomes=True)
    assert loaded.settings.max_models == 2_000
    message = (
        r"abers\.state: the state holds a model or segment of 7 bytes, and "
        r"limits\.max_name_bytes = 6; set limits\.max_name_bytes to 7 or more"
    )
    with pytest.raises(StateError, match=message):
        StateFile(str(path), FILES).load(Settings(max_name_bytes=6), outcomes=True)


@pytest.mark.parametrize("cut", [0, 5, -1])
def test_a_damaged_file_is_refused(path: Path, cut: int) -> None:
    """A file that is cut anywhere is refused by name."""
    StateFile(str(path), FILES).save(used(), POSITION)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(StateError, match=r"abers\.state: .*; restore them from a copy"):
        StateFile(str(path), FILES).load(Settings(), outcomes=True)


@pytest.mark.parametrize(
    "position",
    [
        {},
        {"files": []},
        {"files": FILES, "source": 3},
        {"files": FILES, "sinks": {"a": 1}},
    ],
)
def test_a_position_of_something_else(path: Path, position: dict[str, Any]) -> None:
    """A snapshot without file positions is refused by name."""
    path.write_bytes(used().snapshot(position | {"layout": 1}))
    with pytest.raises(
        StateError, match=r"abers\.state: the position is not that of a run over files"
    ):
        StateFile(str(path), FILES).load(Settings(), outcomes=True)


def test_a_learner_needs_a_key(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key the state of a learner is neither created nor loaded."""
    monkeypatch.delenv("ABERS_STATE_KEY", raising=False)
    with pytest.raises(
        StateError,
        match=r"abers\.state: .*set ABERS_STATE_KEY in the environment, or state.key_file ",
    ):
        StateFile(str(path), FILES).load(LEARNING, outcomes=True)
    monkeypatch.setenv("ABERS_STATE_KEY", KEY)
    assert StateFile(str(path), FILES).load(LEARNING, outcomes=True).position is None


def test_a_learner_is_saved_under_the_key(path: Path) -> None:
    """The same key restores the learner, another one does not."""
    processor = used(LEARNING)
    StateFile(str(path), FILES, KEY).save(processor, POSITION)
    loaded = StateFile(str(path), FILES, KEY).load(LEARNING, outcomes=True)
    probe = [Observation("probe", 9, x={"a": 1.0})]
    assert loaded.process_many(probe) == processor.process_many(probe)
    with pytest.raises(StateError, match="under another key"):
        StateFile(str(path), FILES, OTHER).load(LEARNING, outcomes=True)


def test_all_of_a_state_is_under_the_key(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sealed state needs its key, and a key refuses a state without a seal."""
    monkeypatch.delenv("ABERS_STATE_KEY", raising=False)
    StateFile(str(path), FILES).save(used(), POSITION)
    with pytest.raises(StateError, match=r"abers\.state: .* is not sealed, .*ABERS_STATE_KEY"):
        StateFile(str(path), FILES, KEY).load(Settings(), outcomes=True)
    StateFile(str(path), FILES, KEY).save(used(), POSITION)
    with pytest.raises(StateError, match=r"abers\.state: .* is sealed, .*ABERS_STATE_KEY"):
        StateFile(str(path), FILES).load(Settings(), outcomes=True)
    moved = path.rename(path.with_name("moved.state"))
    loaded = StateFile(str(moved), FILES, KEY).load(Settings(), outcomes=True)
    assert loaded.state_bytes() == used().state_bytes()


def test_a_state_of_another_run_is_refused(path: Path) -> None:
    """Under the same key, states of a Kafka partition or of other files are refused."""
    path.write_bytes(used().snapshot(POSITION | {"files": FILES}, read_key(KEY), "fraud[0]@7"))
    with pytest.raises(StateError, match=r"sealed for 'fraud\[0\]@7', not for 'a run over files'"):
        StateFile(str(path), FILES, KEY).load(Settings(), outcomes=True)
    StateFile(str(path), FILES, KEY).save(used(), POSITION)
    with pytest.raises(StateError, match="made with other files"):
        StateFile(str(path), FILES | {"input.labels": "b.jsonl"}, KEY).load(
            Settings(), outcomes=True
        )

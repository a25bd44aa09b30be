"""Snapshots in folders and buckets: complete or absent, newest first."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from abers.exceptions import MissingExtraError, ParameterError
from abers_connectors.config.model import Config
from abers_connectors.config.sections import KafkaSection, StateSection
from abers_connectors.preflight import run_problems
from abers_connectors.runtime.snapshots import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["folder", "file://", "memory://"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty storage of each kind."""
    if request.param == "memory://":
        return f"memory://{uuid4().hex}/deep/er"
    prefix = "" if request.param == "folder" else "file://"
    return f"{prefix}{tmp_path}/deep/er"


def blobs(snapshots: SnapshotStore, partition: int = 0) -> list[bytes]:
    """Return the snapshots of a task, newest first."""
    return [blob for _, blob in snapshots.newest(partition)]


def offsets(snapshots: SnapshotStore) -> list[tuple[int, int]]:
    """Return partition and offset of all snapshots."""
    return [(one.partition, one.offset) for one in snapshots.stored()]


def test_newest_first(url: str) -> None:
    """Snapshots come by offset, the largest first, and each task has its own."""
    snapshots = SnapshotStore(url, "app")
    assert (blobs(snapshots), snapshots.stored()) == ([], [])
    for partition, offset in ((0, 9), (0, 100), (10, 7), (2, 8), (0, 10)):
        snapshots.save(partition, offset, b"%d@%d" % (partition, offset))
    assert blobs(snapshots) == [b"0@100", b"0@10", b"0@9"]
    assert blobs(snapshots, 2) == [b"2@8"]
    assert blobs(snapshots, 1) == []
    assert offsets(snapshots) == [(0, 100), (0, 10), (0, 9), (2, 8), (10, 7)]
    assert [one.size for one in snapshots.stored()] == [5, 4, 3, 3, 4]


def test_another_process_finds_them(url: str) -> None:
    """Another process reads a snapshot, under the name that `save` returned."""
    name = SnapshotStore(url, "app").save(3, 5, b"blob")
    assert list(SnapshotStore(url, "app").newest(3)) == [(name, b"blob")]


def test_two_applications(url: str) -> None:
    """Two applications can share a folder."""
    SnapshotStore(url, "a").save(0, 1, b"a")
    SnapshotStore(url, "b").save(0, 2, b"b")
    assert blobs(SnapshotStore(url, "a")) == [b"a"]
    SnapshotStore(url, "a").remove(0)
    assert (blobs(SnapshotStore(url, "a")), blobs(SnapshotStore(url, "b"))) == ([], [b"b"])


def test_too_many_are_removed(url: str) -> None:
    """The oldest are removed beyond the number to keep; those of other tasks stay."""
    snapshots = SnapshotStore(url, "app", keep=2)
    snapshots.save(1, 1, b"")
    for offset in range(5):
        snapshots.save(0, offset, b"%d" % offset)
    assert blobs(snapshots) == [b"4", b"3"]
    assert offsets(snapshots) == [(0, 4), (0, 3), (1, 1)]


def test_an_old_writer_removes_nothing_newer(url: str) -> None:
    """A replaced process that saves late removes no newer snapshot."""
    snapshots = SnapshotStore(url, "app", keep=1)
    snapshots.save(0, 500, b"newer")
    snapshots.save(0, 100, b"late")
    assert blobs(snapshots) == [b"newer", b"late"]


def test_the_same_offset_again(url: str) -> None:
    """A snapshot replaces one of the same offset."""
    snapshots = SnapshotStore(url, "app")
    snapshots.save(0, 1, b"first")
    snapshots.save(0, 1, b"second")
    assert blobs(snapshots) == [b"second"]


def test_partial_and_other_files(url: str) -> None:
    """Partial files are never read, and the next save removes them; other files stay."""
    snapshots = SnapshotStore(url, "app")
    name = snapshots.save(0, 1, b"whole")
    storage, _ = fsspec.core.url_to_fs(url)
    folder = name.rsplit("/", 1)[0]
    partial = [f"{folder}/.{8:020}.abers.77.part", f"{folder}/{9:020}.abers.part"]
    others = [f"{folder}/README", f"{folder}/9.abers", f"{folder}/x.part"]
    for one in partial + others:
        storage.pipe_file(one, b"half")
    storage.makedirs(f"{folder}/../notes")
    storage.makedirs(f"{folder}/{3:020}.abers")
    assert blobs(snapshots) == [b"whole"]
    assert offsets(snapshots) == [(0, 1)]
    snapshots.save(0, 2, b"next")
    assert not any(map(storage.exists, partial))
    assert all(map(storage.exists, others))


def test_a_failed_save_leaves_no_file(tmp_path: Path) -> None:
    """A snapshot that cannot be written leaves the earlier ones, and no other file."""
    snapshots = SnapshotStore(str(tmp_path), "app")
    name = snapshots.save(0, 1, b"old")
    with pytest.raises(OSError, match="TypeError: a bytes-like object is required"):
        snapshots.save(0, 2, "no bytes")  # type: ignore[arg-type]
    assert [*Path(name).parent.iterdir()] == [Path(name)]
    assert blobs(snapshots) == [b"old"]


def test_pieces_that_break_off(url: str) -> None:
    """If the pieces raise, that error is raised, and nothing is saved."""
    snapshots = SnapshotStore(url, "app")
    name = snapshots.save(0, 1, [b"o", b"l", b"d"])

    def broken() -> Iterator[bytes]:
        yield bytes(100_000)
        msg = "the copy of the process was ended"
        raise LookupError(msg)

    with pytest.raises(LookupError, match="was ended"):
        snapshots.save(0, 2, broken())
    assert blobs(snapshots) == [b"old"]
    storage, _ = fsspec.core.url_to_fs(url)
    snapshots.save(0, 3, b"next")
    left = {one.rsplit("/", 1)[-1] for one in storage.ls(name.rsplit("/", 1)[0], detail=False)}
    assert left == {f"{offset:020}.abers" for offset in (1, 3)}


def test_reading_ticks() -> None:
    """The callback is called for each part of a large snapshot, and may raise to stop."""
    snapshots, blob, ticks = SnapshotStore(f"memory://{uuid4().hex}", "app"), bytes(5 << 20), []
    snapshots.save(0, 1, blob)
    assert [one for _, one in snapshots.newest(0, lambda: ticks.append(1))] == [blob]
    assert len(ticks) >= 5

    def give_up() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        next(snapshots.newest(0, give_up))


def test_a_snapshot_is_private(tmp_path: Path) -> None:
    """In a local folder only the owner may read a snapshot."""
    name = SnapshotStore(str(tmp_path), "app").save(0, 7, b"blob")
    assert Path(name).stat().st_mode & 0o777 == 0o600


def test_a_link_instead_of_a_snapshot(tmp_path: Path) -> None:
    """The link is replaced, and its target is unchanged."""
    (tmp_path / "theirs").write_text("kept")
    (tmp_path / "app" / "0").mkdir(parents=True)
    link = tmp_path / "app" / "0" / f"{41:020}.abers"
    link.symlink_to(tmp_path / "theirs")
    SnapshotStore(str(tmp_path), "app").save(0, 41, b"first")
    assert (tmp_path / "theirs").read_text() == "kept"
    assert (link.read_bytes(), link.is_symlink()) == (b"first", False)


def test_a_removed_snapshot(url: str) -> None:
    """A snapshot that is removed during a read is skipped."""
    snapshots = SnapshotStore(url, "app")
    for offset in (1, 2, 3):
        snapshots.save(0, offset, b"%d" % offset)
    reading: Iterator[tuple[str, bytes]] = snapshots.newest(0)
    assert next(reading)[1] == b"3"
    storage, _ = fsspec.core.url_to_fs(url)
    storage.rm_file(snapshots.stored()[1].name)
    assert [blob for _, blob in reading] == [b"1"]


class Flaky(MemoryFileSystem):  # type: ignore[misc]
    """A storage that cannot read what is marked as unreadable."""

    protocol = "flaky"

    def _open(self, path: str, *args: Any, **more: Any) -> Any:  # noqa: ANN401 - as fsspec has it
        """Open a file, unless it is marked."""
        found = super()._open(path, *args, **more)
        if found.getvalue() == b"unreadable":
            raise PermissionError(path)
        return found


def test_an_unreadable_snapshot(caplog: pytest.LogCaptureFixture) -> None:
    """A snapshot that cannot be read is skipped with a warning."""
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    snapshots = SnapshotStore("flaky://folder", "app")
    snapshots.save(0, 1, b"old")
    name = snapshots.save(0, 2, b"unreadable")
    with caplog.at_level(logging.WARNING):
        assert blobs(snapshots) == [b"old"]
    assert caplog.messages == [f"snapshot {name} cannot be read and is skipped: {name}"]


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    """A folder that cannot be written is an OSError."""
    (tmp_path / "file").touch()
    snapshots = SnapshotStore(f"{tmp_path}/file", "app")
    with pytest.raises(OSError, match="file"):
        snapshots.save(0, 1, b"")


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        (
            "nowhere://x",
            ParameterError,
            "snapshots in nowhere://x: .*nowhere; name a folder, or a URL that",
        ),
        ("adl://x", MissingExtraError, "snapshots in adl://x: .*adlfs"),
    ],
)
def test_urls_that_cannot_be_used(url: str, error: type[Exception], message: str) -> None:
    """A URL that is unknown, or needs another library, is an error at once, and of a check."""
    with pytest.raises(error, match=message):
        SnapshotStore(url, "app")
    kafka = KafkaSection(bootstrap_servers=("a:1",), observations="i", predictions="o")
    config = Config(kafka=kafka, state=StateSection(path=url))
    (line,) = run_problems(config, {})
    assert line.startswith(f"state.path: snapshots in {url}: ")


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without fsspec the error names the command that installs it."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r"needs fsspec, .*: pip install 'abers\[kafka\]'"):
        SnapshotStore("folder", "app")


@given(st.lists(st.integers(0, 2**63 - 1), max_size=12), st.integers(1, 5))
def test_kept_snapshots(saved: list[int], keep: int) -> None:
    """After any sequence the newest are kept; a late one removes only older ones."""
    snapshots = SnapshotStore(f"memory://{uuid4().hex}", "app", keep)
    expected: set[int] = set()
    for offset in saved:
        snapshots.save(0, offset, b"%d" % offset)
        expected |= {offset}
        older = sorted((one for one in expected if one <= offset), reverse=True)
        expected -= {*older[keep:]}
    assert blobs(snapshots) == [b"%d" % one for one in sorted(expected, reverse=True)]


def test_a_folder_that_cannot_be_listed_has_no_snapshots(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file instead of the folder is a warning, and no error."""
    (tmp_path / "place").touch()
    assert [*SnapshotStore(str(tmp_path / "place"), "fraud").newest(0)] == []
    assert "snapshots of partition 0 cannot be listed" in caplog.text

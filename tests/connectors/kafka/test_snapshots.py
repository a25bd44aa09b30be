"""Snapshots in folders and buckets: whole or not at all, newest first."""

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
from abers_connectors.checking import hindrances
from abers_connectors.config import Config, Kafka, State
from abers_connectors.kafka.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["folder", "file://", "memory://"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give a place of each kind, with nothing in it."""
    if request.param == "memory://":
        return f"memory://{uuid4().hex}/deep/er"
    prefix = "" if request.param == "folder" else "file://"
    return f"{prefix}{tmp_path}/deep/er"


def blobs(snapshots: Snapshots, partition: int = 0) -> list[bytes]:
    """Give the snapshots of a shard, newest first."""
    return [blob for _, blob in snapshots.newest(partition)]


def offsets(snapshots: Snapshots) -> list[tuple[int, int]]:
    """Give the partition and the offset of all snapshots."""
    return [(one.partition, one.offset) for one in snapshots.stored()]


def test_newest_first(url: str) -> None:
    """Snapshots are given by offset, the largest first, and each shard has its own."""
    snapshots = Snapshots(url, "app")
    assert (blobs(snapshots), snapshots.stored()) == ([], [])
    for partition, offset in ((0, 9), (0, 100), (10, 7), (2, 8), (0, 10)):
        snapshots.save(partition, offset, b"%d@%d" % (partition, offset))
    assert blobs(snapshots) == [b"0@100", b"0@10", b"0@9"]
    assert blobs(snapshots, 2) == [b"2@8"]
    assert blobs(snapshots, 1) == []
    assert offsets(snapshots) == [(0, 100), (0, 10), (0, 9), (2, 8), (10, 7)]
    assert [one.size for one in snapshots.stored()] == [5, 4, 3, 3, 4]


def test_another_process_finds_them(url: str) -> None:
    """What one has saved another one reads, under the name that was told."""
    name = Snapshots(url, "app").save(3, 5, b"blob")
    assert list(Snapshots(url, "app").newest(3)) == [(name, b"blob")]


def test_applications_do_not_meet(url: str) -> None:
    """Two applications have a place together."""
    Snapshots(url, "a").save(0, 1, b"a")
    Snapshots(url, "b").save(0, 2, b"b")
    assert blobs(Snapshots(url, "a")) == [b"a"]
    Snapshots(url, "a").remove(0)
    assert (blobs(Snapshots(url, "a")), blobs(Snapshots(url, "b"))) == ([], [b"b"])


def test_too_many_are_removed(url: str) -> None:
    """The oldest go when there are more than are kept; those of other shards stay."""
    snapshots = Snapshots(url, "app", keep=2)
    snapshots.save(1, 1, b"")
    for offset in range(5):
        snapshots.save(0, offset, b"%d" % offset)
    assert blobs(snapshots) == [b"4", b"3"]
    assert offsets(snapshots) == [(0, 4), (0, 3), (1, 1)]


def test_an_old_writer_removes_nothing_newer(url: str) -> None:
    """A process that was put aside, and saves late, takes no newer snapshot away."""
    snapshots = Snapshots(url, "app", keep=1)
    snapshots.save(0, 500, b"newer")
    snapshots.save(0, 100, b"late")
    assert blobs(snapshots) == [b"newer", b"late"]


def test_the_same_offset_again(url: str) -> None:
    """A snapshot at an offset takes the place of the one that was there."""
    snapshots = Snapshots(url, "app")
    snapshots.save(0, 1, b"first")
    snapshots.save(0, 1, b"second")
    assert blobs(snapshots) == [b"second"]


def test_halves_and_strangers(url: str) -> None:
    """What a killed process left is never read, and goes with the next; other files stay."""
    snapshots = Snapshots(url, "app")
    name = snapshots.save(0, 1, b"whole")
    storage, _ = fsspec.core.url_to_fs(url)
    folder = name.rsplit("/", 1)[0]
    halves = [f"{folder}/.{8:020}.abers.77.part", f"{folder}/{9:020}.abers.part"]
    strangers = [f"{folder}/README", f"{folder}/9.abers", f"{folder}/x.part"]
    for one in halves + strangers:
        storage.pipe_file(one, b"half")
    storage.makedirs(f"{folder}/../notes")
    storage.makedirs(f"{folder}/{3:020}.abers")
    assert blobs(snapshots) == [b"whole"]
    assert offsets(snapshots) == [(0, 1)]
    snapshots.save(0, 2, b"next")
    assert not any(map(storage.exists, halves))
    assert all(map(storage.exists, strangers))


def test_nothing_half_is_seen(tmp_path: Path) -> None:
    """A snapshot that cannot be written leaves what was there, and nothing beside it."""
    snapshots = Snapshots(str(tmp_path), "app")
    name = snapshots.save(0, 1, b"old")
    with pytest.raises(OSError, match="TypeError: a bytes-like object is required"):
        snapshots.save(0, 2, "no bytes")  # type: ignore[arg-type]
    assert [*Path(name).parent.iterdir()] == [Path(name)]
    assert blobs(snapshots) == [b"old"]


def test_pieces_that_break_off(url: str) -> None:
    """Of a snapshot whose maker fails nothing is seen, and the failure is that of the maker."""
    snapshots = Snapshots(url, "app")
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


def test_reading_is_seen_to_move() -> None:
    """Whoever restores is called for each part of a large snapshot, and may give up."""
    snapshots, blob, ticks = Snapshots(f"memory://{uuid4().hex}", "app"), bytes(5 << 20), []
    snapshots.save(0, 1, blob)
    assert [one for _, one in snapshots.newest(0, lambda: ticks.append(1))] == [blob]
    assert len(ticks) >= 5

    def give_up() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        next(snapshots.newest(0, give_up))


def test_a_snapshot_is_for_its_owner(tmp_path: Path) -> None:
    """In a local folder nobody else may read what was learned."""
    name = Snapshots(str(tmp_path), "app").save(0, 7, b"blob")
    assert Path(name).stat().st_mode & 0o777 == 0o600


def test_a_link_in_the_place_of_a_snapshot(tmp_path: Path) -> None:
    """It is replaced, and what it points to is left alone."""
    (tmp_path / "theirs").write_text("kept")
    (tmp_path / "app" / "0").mkdir(parents=True)
    link = tmp_path / "app" / "0" / f"{41:020}.abers"
    link.symlink_to(tmp_path / "theirs")
    Snapshots(str(tmp_path), "app").save(0, 41, b"first")
    assert (tmp_path / "theirs").read_text() == "kept"
    assert (link.read_bytes(), link.is_symlink()) == (b"first", False)


def test_one_that_vanishes(url: str) -> None:
    """A snapshot that is removed while somebody reads is passed over."""
    snapshots = Snapshots(url, "app")
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


def test_one_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """A snapshot that cannot be read is passed over, and that is told."""
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    snapshots = Snapshots("flaky://folder", "app")
    snapshots.save(0, 1, b"old")
    name = snapshots.save(0, 2, b"unreadable")
    with caplog.at_level(logging.WARNING):
        assert blobs(snapshots) == [b"old"]
    assert caplog.messages == [f"snapshot {name} cannot be read and is passed over: {name}"]


def test_a_place_that_is_none(tmp_path: Path) -> None:
    """A place that cannot be written is an OSError, for whoever counts them."""
    (tmp_path / "file").touch()
    snapshots = Snapshots(f"{tmp_path}/file", "app")
    with pytest.raises(OSError, match="file"):
        snapshots.save(0, 1, b"")


@pytest.mark.parametrize(
    ("url", "error", "told"),
    [
        (
            "nowhere://x",
            ParameterError,
            "snapshots in nowhere://x: .*nowhere; name a folder, or a URL that",
        ),
        ("adl://x", MissingExtraError, "snapshots in adl://x: .*adlfs"),
    ],
)
def test_urls_that_cannot_be_used(url: str, error: type[Exception], told: str) -> None:
    """A URL that nobody knows, or that needs another library, is told at once, and by a check."""
    with pytest.raises(error, match=told):
        Snapshots(url, "app")
    kafka = Kafka(bootstrap=("a:1",), observations="i", predictions="o")
    config = Config(kafka=kafka, state=State(path=url))
    (line,) = hindrances(config, {})
    assert line.startswith(f"state.path: snapshots in {url}: ")


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where fsspec is not installed the error names the command that installs it."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r"needs fsspec, .*: pip install 'abers\[kafka\]'"):
        Snapshots("folder", "app")


@given(st.lists(st.integers(0, 2**63 - 1), max_size=12), st.integers(1, 5))
def test_what_is_kept(saved: list[int], keep: int) -> None:
    """After any sequence the newest saved are there; a late one costs only older ones."""
    snapshots = Snapshots(f"memory://{uuid4().hex}", "app", keep)
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
    """A file in its place keeps nobody from restoring by the changelog; it is told."""
    (tmp_path / "place").touch()
    assert [*Snapshots(str(tmp_path / "place"), "fraud").newest(0)] == []
    assert "snapshots of partition 0 cannot be listed" in caplog.text

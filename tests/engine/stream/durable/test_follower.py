"""Reading along with a durable processor, `abers.stream.Follower`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.engine.stream.cases import stream
from tests.engine.stream.durable.test_processor import FIRST, state
from tests.engine.stream.replies import obs

from abers import StateError
from abers.stream import DurableProcessor, Follower, Settings

if TYPE_CHECKING:
    from pathlib import Path


def test_a_follower(tmp_path: Path) -> None:
    """A follower has what the writer had when it was asked, across files of the journal."""
    made = stream(300, every=20)
    with DurableProcessor(tmp_path, journal_bytes=5_000) as durable:
        follower = Follower(tmp_path)
        groups = 0
        for at in range(0, len(made), 5):
            durable.process(made[at : at + 5], at)
            if at % 3 == 0:
                groups += follower.poll()
                assert follower.processor.state_bytes() == state(durable)
                assert follower.position == at
        assert groups > 0
        assert follower.poll() + groups == -(-len(made) // 5)
        assert follower.poll() == 0


def test_a_follower_that_is_far_behind(tmp_path: Path) -> None:
    """A follower whose file was removed goes on from the newest snapshot."""
    made, groups = stream(10_000, every=20), 0
    settings = Settings(monitors=False, tests=False, window=50, label_timeout=2_000)
    with DurableProcessor(tmp_path, settings, journal_bytes=2_000) as durable:
        follower = Follower(tmp_path, settings)
        while (tmp_path / FIRST).exists():
            durable.process(made[20 * groups : 20 * groups + 20])
            groups += 1
        assert follower.poll() == groups
        assert follower.processor.state_bytes() == state(durable)


def test_a_frame_that_is_being_written(tmp_path: Path) -> None:
    """A frame that is written in part is read when all of it is there."""
    with DurableProcessor(tmp_path) as durable:
        follower = Follower(tmp_path)
        durable.process([obs("a")])
    whole = (tmp_path / FIRST).read_bytes()
    for end in range(20, len(whole)):
        (tmp_path / FIRST).write_bytes(whole[:end])
        assert follower.poll() == 0
    (tmp_path / FIRST).write_bytes(whole)
    assert follower.poll() == 1


def test_what_cannot_be_followed(tmp_path: Path) -> None:
    """Other settings, damage, and a folder without a state are refused."""
    with pytest.raises(FileNotFoundError):
        Follower(tmp_path / "none")
    with pytest.raises(StateError, match="there is no snapshot"):
        Follower(tmp_path)
    with DurableProcessor(tmp_path) as durable:
        with pytest.raises(StateError, match="other settings"):
            Follower(tmp_path, Settings(calibrator="platt"))
        follower = Follower(tmp_path)
        durable.process([obs("a")])
        durable.process([obs("b")])
    whole = bytearray((tmp_path / FIRST).read_bytes())
    whole[60] ^= 1
    (tmp_path / FIRST).write_bytes(bytes(whole))
    with pytest.raises(StateError, match="is damaged at byte 20"):
        follower.poll()

"""Frames of a journal, `abers.stream.durable.journal_file`: what is cut, and what is damaged."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.stream.replies import lab, obs

from abers import StateError
from abers.stream import JournalEntry, Processor
from abers.stream.durable.journal_file import START, Frames, file_head, frame, require_head

NAME = "journal"


def frames() -> list[bytes]:
    """Return the frames of a few events."""
    processor = Processor()
    entries: list[JournalEntry] = [
        processor.process_logged([event])[1] for event in (obs("a"), obs("b", 3), lab("a", 5))
    ]
    return [frame(entry, number) for number, entry in enumerate(entries)]


WRITTEN = frames()
WHOLE = b"".join(WRITTEN)
ENDS = [len(b"".join(WRITTEN[:count])) for count in range(len(WRITTEN) + 1)]


def positions(data: bytes) -> list[int]:
    """Read what may be cut, and return the positions of the frames."""
    read = Frames(data, START, NAME)
    found = [one.position for one in read]
    read.require_torn()
    assert read.end == START + ENDS[len(found)]
    return found


def test_frames_come_back() -> None:
    """What is written is read, and an incomplete rest is none."""
    assert positions(WHOLE) == [0, 1, 2]
    Frames(b"", START, NAME).require_whole()


def test_a_cut_at_every_byte() -> None:
    """A cut at any byte leaves the frames before it."""
    for cut in range(len(WHOLE) + 1):
        complete = sum(end <= cut for end in ENDS[1:])
        assert positions(WHOLE[:cut]) == list(range(complete))


def test_a_flipped_bit_at_every_byte() -> None:
    """A changed bit is damage wherever it is, also in the last frame, which the disk had."""
    for at in range(len(WHOLE)):
        for bit in (1, 128):
            changed = bytearray(WHOLE)
            changed[at] ^= bit
            with pytest.raises(StateError, match="journal is damaged at byte"):
                positions(bytes(changed))


@given(data=st.data())
def test_sectors_that_were_never_written(data: st.DataObject) -> None:
    """A last frame with sectors that the disk never wrote is cut, and so is all of it."""
    long = frame(Processor().process_logged([obs(f"{i}" * 30) for i in range(60)])[1], 3)
    whole = bytearray(WHOLE + long)
    begins = START + len(WHOLE)
    ends = [*range(512 - begins % 512, len(long), 512), len(long)]
    sectors = [*zip([0, *ends[:-1]], ends, strict=True)]
    lost = data.draw(st.lists(st.sampled_from(sectors), min_size=1, unique=True))
    for start, end in lost:
        whole[len(WHOLE) + start : len(WHOLE) + end] = bytes(end - start)
    assert positions(bytes(whole)) == [0, 1, 2]


def test_unwritten_sectors_before_an_intact_frame() -> None:
    """A frame was on disk before the next was written, so zeros before that are damage."""
    for start, end in pairwise(ENDS[:-1]):
        changed = WHOLE[:start] + bytes(end - start) + WHOLE[end:]
        with pytest.raises(StateError, match=f"damaged at byte {START + start:,}"):
            positions(changed)


@pytest.mark.parametrize("lost", [1, 10, ENDS[1], ENDS[1] + 5])
def test_bytes_that_are_missing_in_the_middle(lost: int) -> None:
    """Bytes that are missing before an intact frame are damage."""
    changed = WHOLE[3 : -len(WRITTEN[2])][:-lost] + WRITTEN[2]
    with pytest.raises(StateError, match="damaged at byte 20"):
        positions(changed)


def test_an_incomplete_rest_before_another_file() -> None:
    """Before another file nothing may be left."""
    read = Frames(WHOLE[:-1], START, NAME)
    assert len([*read]) == 2
    with pytest.raises(StateError, match=f"damaged at byte {START + ENDS[2]}"):
        read.require_whole()


def test_the_head_of_a_file() -> None:
    """A file of another number, another format or another kind is refused."""
    require_head(file_head(7) + WHOLE, 7, NAME)
    with pytest.raises(StateError, match="journal does not begin as a journal from frame 8 on"):
        require_head(file_head(7), 8, NAME)
    newer = bytearray(file_head(7))
    newer[7] = 9
    with pytest.raises(StateError, match="format 9, and this abers reads format 1"):
        require_head(bytes(newer), 7, NAME)
    with pytest.raises(StateError, match="does not begin as a journal"):
        require_head(b"", 0, NAME)

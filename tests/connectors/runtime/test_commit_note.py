"""What routers commit with their offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers_connectors.runtime.application import CommitNote

NUMBERS = st.none() | st.integers(-(2**63), 2**63)


@given(NUMBERS, NUMBERS)
def test_a_note_is_read_as_it_was_written(reached: int | None, waiting: int | None) -> None:
    """Both numbers come back, each with or without the other."""
    note = CommitNote(reached, waiting)
    assert CommitNote.decoded(note.encoded()) == note


@pytest.mark.parametrize(
    "text", ["", "1700", "reached=", "waiting=x", "reached=1_0", "a b=c =", "=1"]
)
def test_what_somebody_else_wrote_says_nothing(text: str) -> None:
    """A text of another tool is no note."""
    assert CommitNote.decoded(text) == CommitNote()

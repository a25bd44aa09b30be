"""Lines of chunks: the same however the bytes are divided."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from abers_connectors.sources.line_formats import OversizedLine, is_blank, lines, shown

CHUNKS = st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"\xef\xbb\xbf", b"a\nb"]))


@given(CHUNKS, st.integers(1, 9))
def test_lines_are_those_of_the_whole(chunks: list[bytes], limit: int) -> None:
    """Chunks of any length result in the same lines; oversized ones have their length."""
    found = [line for block in lines(chunks, limit) for line in block]
    expected = b"".join(chunks).split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert len(found) == len(expected)
    for number, (line, whole) in enumerate(zip(found, expected, strict=True)):
        if isinstance(line, OversizedLine):
            assert line == (whole, len(whole))
            assert len(whole) > limit
        else:
            assert len(whole) <= limit
            assert line == (whole if number else whole.removeprefix(b"\xef\xbb\xbf"))


def test_only_the_head_of_a_long_line_is_kept() -> None:
    """4,000 bytes of an oversized line are kept, enough for 1,000 characters."""
    (((line,)),) = lines([b"0123456789" * 100] * 1000, limit=5_000)
    assert line == OversizedLine((b"0123456789" * 400), 1_000_000)
    assert shown(line) == "0123456789" * 100 + "… (1000000 bytes)"


def test_white_space_is_blank() -> None:
    """A line of white space is blank; an oversized line is not."""
    assert [is_blank(line) for line in (b"", b" \t\r", b"x", OversizedLine(b" ", 9))] == [
        True,
        True,
        False,
        False,
    ]


def test_any_bytes_can_be_shown() -> None:
    """Bytes that are not UTF-8 are shown with backslashes; the end of the line is left out."""
    assert shown(b"a\xff\xc3\xa9\r") == "a\\xffé"

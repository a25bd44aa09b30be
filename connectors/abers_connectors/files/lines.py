"""From chunks of bytes to lines, none of them longer than allowed.

Governing rule: at any moment no more is held than one chunk and one line of the
allowed length; of a longer one only the head and the length are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["HEAD", "Line", "Oversized", "is_blank", "lines", "shown"]

_SHOWN = 1000  # characters of an oversized line
HEAD = 4 * _SHOWN
"""Bytes that are kept of an oversized line: they hold what is shown, whatever they are."""

_MARK = b"\xef\xbb\xbf"  # byte order mark, which some programs write first


class Oversized(NamedTuple):
    """What is kept of a line that is too long: its first bytes, and how many there were."""

    head: bytes
    size: int


Line: TypeAlias = bytes | Oversized


class _Unfinished:
    """A line that comes in parts."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self.size = 0

    def add(self, part: bytes) -> None:
        """Take one more part, or just its length."""
        self.size += len(part)
        if self.size <= self._limit:
            self._parts.append(part)
        elif sum(map(len, self._parts)) < HEAD:
            self._parts.append(part[:HEAD])
        if self.size > self._limit:
            self._parts = [b"".join(self._parts)[:HEAD]]

    def take(self) -> Line:
        """Give the line, and start another."""
        whole, size = b"".join(self._parts), self.size
        self._parts, self.size = [], 0
        return whole if size <= self._limit else Oversized(whole, size)


def lines(
    chunks: Iterable[bytes], limit: int, keeps: Callable[[Line], bool] = lambda _: True
) -> Iterator[list[Line]]:
    r"""Split chunks into lines.

    Parameters
    ----------
    chunks
        Of bytes, of any length.
    limit
        How many bytes a line may have.
    keeps
        Whether a last line without its end is one, by default always.

    Yields
    ------
    list of bytes or Oversized
        The lines that a chunk completes, without their ends.

    Examples
    --------
    >>> list(lines([b"one\ntw", b"o\n\nlonger", b" line"], limit=5))
    [[b'one'], [b'two', b''], [Oversized(head=b'longer line', size=11)]]
    """
    unfinished, first = _Unfinished(limit), True
    for chunk in chunks:
        found: list[Line] = [*chunk.split(b"\n")]
        last = found.pop()
        if found:
            unfinished.add(found[0])  # type: ignore[arg-type]
            found[0] = unfinished.take()
            if len(chunk) > limit:
                found = [_limited(line, limit) for line in found]
            yield _unmarked(found) if first else found
            first = False
        unfinished.add(last)  # type: ignore[arg-type]
    if unfinished.size:
        found = [unfinished.take()]
        found = _unmarked(found) if first else found
        if keeps(found[0]):
            yield found


def _limited(line: Line, limit: int) -> Line:
    if isinstance(line, Oversized) or len(line) <= limit:
        return line
    return Oversized(line[:HEAD], len(line))


def _unmarked(found: list[Line]) -> list[Line]:
    if isinstance(found[0], bytes):
        found[0] = found[0].removeprefix(_MARK)
    return found


def is_blank(line: Line) -> bool:
    """Say whether a line holds nothing but white space."""
    return isinstance(line, bytes) and not line.strip()


def shown(line: Line) -> str:
    """Write a line as text, whatever its bytes; an oversized one cut, its length told."""
    if isinstance(line, bytes):
        return line.removesuffix(b"\r").decode("utf-8", "backslashreplace")
    head = line.head.decode("utf-8", "backslashreplace")[:_SHOWN]
    return f"{head}… ({line.size} bytes)"

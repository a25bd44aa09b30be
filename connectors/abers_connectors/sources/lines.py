r"""Lines of text from chunks of bytes, none longer than allowed.

No more than one chunk and one line of the allowed length is kept; of a longer line only the head
and the length are kept. A file that is not UTF-8 text is an error, because its lines would all be
bad records or, without any \n, a header. A growing file may still become text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from abers.exceptions import RecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["HEAD", "OversizedLine", "RawLine", "is_blank", "lines", "require_text", "shown"]

_SHOWN_CHARACTERS = 1000  # of an oversized line in a message
HEAD = 4 * _SHOWN_CHARACTERS
"""Bytes kept of an oversized line, enough for the characters shown."""

_MARK = b"\xef\xbb\xbf"  # byte order mark, which some programs write first
_SIGNATURE = 4  # first bytes, by which a format is recognized
_UTF16 = "text in UTF-16 or UTF-32; write it in UTF-8, as iconv does"
_OTHERS = {
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
    b"\x1f\x8b": "compressed by gzip; end the name of the file in .gz, or unpack it",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; end the name of the file in .zst, or unpack it",
    b"PAR1": "a Parquet file; end its name in .parquet",
    b"PK\x03\x04": "a zip archive; unpack it",
}
_NOTHING = b"\xef\xbb\xbf\0\r\n \t"
"""Bytes of a file without content: byte order marks, NULs and white space."""


class OversizedLine(NamedTuple):
    """Head and length of a line that is too long."""

    head: bytes
    size: int


RawLine: TypeAlias = bytes | OversizedLine


class _PartialLine:
    """A line that comes in parts."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self.size = 0

    def add(self, part: bytes) -> None:
        """Add a part, or just its length."""
        self.size += len(part)
        if self.size <= self._limit:
            self._parts.append(part)
        elif sum(map(len, self._parts)) < HEAD:
            self._parts.append(part[:HEAD])
        if self.size > self._limit:
            self._parts = [b"".join(self._parts)[:HEAD]]

    def take(self) -> RawLine:
        """Return the line, and start another."""
        whole, size = b"".join(self._parts), self.size
        self._parts, self.size = [], 0
        return whole if size <= self._limit else OversizedLine(whole, size)


def lines(
    chunks: Iterable[bytes], limit: int, keeps: Callable[[RawLine], bool] = lambda _: True
) -> Iterator[list[RawLine]]:
    r"""Split chunks into lines.

    A list has the lines that a chunk completes, without their ends; a line with more than `limit`
    bytes is oversized. `keeps` says whether a last line without its end counts.

    >>> list(lines([b"one\ntw", b"o\n\nlonger", b" line"], limit=5))
    [[b'one'], [b'two', b''], [OversizedLine(head=b'longer line', size=11)]]
    """
    unfinished, first = _PartialLine(limit), True
    for chunk in chunks:
        found: list[RawLine] = [*chunk.split(b"\n")]
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


def _limited(line: RawLine, limit: int) -> RawLine:
    if isinstance(line, OversizedLine) or len(line) <= limit:
        return line
    return OversizedLine(line[:HEAD], len(line))


def _unmarked(found: list[RawLine]) -> list[RawLine]:
    if isinstance(found[0], bytes):
        found[0] = found[0].removeprefix(_MARK)
    return found


def is_blank(line: RawLine) -> bool:
    """Return whether a line has nothing but white space."""
    return isinstance(line, bytes) and not line.strip()


def shown(line: RawLine) -> str:
    """Return a line as text, with any bytes; an oversized line as its head and length."""
    if isinstance(line, bytes):
        return line.removesuffix(b"\r").decode("utf-8", "backslashreplace")
    head = line.head.decode("utf-8", "backslashreplace")[:_SHOWN_CHARACTERS]
    return f"{head}… ({line.size} bytes)"


def require_text(name: str, chunks: Iterable[bytes], *, growing: bool) -> Iterator[bytes]:
    r"""Yield the bytes of a file as they are, after a check that they may be lines of text.

    A RecordError says that the file `name` has another format, that its lines end in \r alone,
    or that it has nothing but a byte order mark or NUL bytes. A `growing` file may be continued.
    """
    check = _TextCheck()
    for chunk in chunks:
        check.add(chunk)
        if problem := check.other_format():
            msg = f"{name} is {problem}"
            raise RecordError(msg)
        yield chunk
    if problem := check.at_end(growing=growing):
        msg = f"{name} {problem}"
        raise RecordError(msg)


class _TextCheck:
    """What is known of the bytes so far."""

    def __init__(self) -> None:
        self._head, self._last = b"", b""
        self._empty, self._odd = True, False
        self._ends, self._returns = False, False

    def add(self, chunk: bytes) -> None:
        """Add a chunk; after the first line there is nothing left to check."""
        if len(self._head) < _SIGNATURE:
            self._head += chunk[: _SIGNATURE - len(self._head)]
        if self._empty:
            self._empty = not chunk.strip(_NOTHING)
            self._odd |= not self._empty or bool(chunk.strip(b"\r\n \t"))
        if not self._ends:
            self._ends = b"\n" in chunk
            self._returns |= b"\r" in self._last + chunk[:-1]
            self._last = chunk[-1:]

    def other_format(self) -> str | None:
        """Describe the format, if it is not UTF-8 by its first bytes."""
        for head, problem in _OTHERS.items():
            if self._head.startswith(head):
                return problem
        if len(self._head) < _SIGNATURE:
            return None
        # NULs alone may be a hole before good records, as log rotation leaves it.
        return _UTF16 if b"\0" in self._head[:2] and self._head.strip(b"\0") else None

    def at_end(self, *, growing: bool) -> str | None:
        """Describe what is wrong with the whole file."""
        if not self._ends and (self._returns or (self._last == b"\r" and not growing)):
            return r"has lines that end in \r alone; end them in \n"
        if self._empty and self._odd and not growing:
            return "has no record: it has only a byte order mark or NUL bytes"
        return None

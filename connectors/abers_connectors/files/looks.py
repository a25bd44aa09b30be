r"""A look at the bytes of a file of lines, whether they are text in UTF-8 at all.

Governing rule: a file that is something else ends the run with a sentence, since its lines would
all be bad records or, if it has no \n, a header alone. A file that is to grow is given time to
become one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["require_text"]

_HEAD = 4  # bytes that tell what a file is
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
"""What a file may consist of without saying anything: marks, NULs and white space."""


def require_text(name: str, chunks: Iterable[bytes], *, growing: bool) -> Iterator[bytes]:
    r"""Pass the bytes of a file on, if they may be lines of text.

    Parameters
    ----------
    name
        Of the file.
    chunks
        Its bytes, unpacked.
    growing
        Whether the file is read on later.

    Yields
    ------
    bytes
        The chunks as they are.

    Raises
    ------
    RecordError
        If they are another kind of data, if there is no \n but \r, or if there is nothing but a
        byte order mark or NUL bytes.
    """
    look = _Look()
    for chunk in chunks:
        look.take(chunk)
        if problem := look.kind():
            msg = f"{name} is {problem}"
            raise RecordError(msg)
        yield chunk
    if problem := look.at_end(growing=growing):
        msg = f"{name} {problem}"
        raise RecordError(msg)


class _Look:
    """What was seen so far."""

    def __init__(self) -> None:
        self._head, self._last = b"", b""
        self._empty, self._odd = True, False
        self._ends, self._returns = False, False

    def take(self, chunk: bytes) -> None:
        """Look at some more bytes; after the first line there is nothing left to be seen."""
        if len(self._head) < _HEAD:
            self._head += chunk[: _HEAD - len(self._head)]
        if self._empty:
            self._empty = not chunk.strip(_NOTHING)
            self._odd |= not self._empty or bool(chunk.strip(b"\r\n \t"))
        if not self._ends:
            self._ends = b"\n" in chunk
            self._returns |= b"\r" in self._last + chunk[:-1]
            self._last = chunk[-1:]

    def kind(self) -> str | None:
        """Tell what else than UTF-8 it is, by its first bytes."""
        for head, problem in _OTHERS.items():
            if self._head.startswith(head):
                return problem
        if len(self._head) < _HEAD:
            return None
        # NULs alone may be a hole in front of good records, as the rotation of a log leaves it.
        return _UTF16 if b"\0" in self._head[:2] and self._head.strip(b"\0") else None

    def at_end(self, *, growing: bool) -> str | None:
        """Tell what is wrong with the whole."""
        if not self._ends and (self._returns or (self._last == b"\r" and not growing)):
            return r"has lines that end in \r alone; end them in \n"
        if self._empty and self._odd and not growing:
            return "holds no record: there is nothing in it but a byte order mark or NUL bytes"
        return None

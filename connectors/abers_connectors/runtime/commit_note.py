"""What routers commit with the offsets of their inputs, as a short text."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CommitNote"]


class CommitNote(NamedTuple):
    """What a router says of an input partition, with its offset.

    Examples
    --------
    >>> CommitNote(1_700_000_000_000, 17).encoded()
    'reached=1700000000000 waiting=17'
    >>> CommitNote.decoded("waiting=17")
    CommitNote(reached=None, waiting=17)
    """

    reached: int | None = None  # timestamp of the records that the router writes next
    waiting: int | None = None  # offset of the first label that waits for its observation

    def encoded(self) -> str:
        """Return the text."""
        known = ((name, value) for name, value in self._asdict().items() if value is not None)
        return " ".join(f"{name}={value}" for name, value in known)

    @classmethod
    def decoded(cls, text: str) -> CommitNote:
        """Return what a text says; nothing of what somebody else wrote."""
        words = dict(word.partition("=")[::2] for word in text.split())
        found = {name: words.get(name, "") for name in cls._fields}
        numbers = {name: int(one) for name, one in found.items() if _is_number(one)}
        return cls(**numbers)


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdecimal()

"""Words on the values of keys, from which the meaning of a configuration is made."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Line", "Meaning", "percent"]


class Meaning(NamedTuple):
    """Words on the values of some keys."""

    text: str
    keys: tuple[str, ...] = ()


class Line(NamedTuple):
    """Phrases in a line, with what stands between two of them."""

    phrases: tuple[Meaning, ...]
    between: str = "; "

    def __str__(self) -> str:
        """Return the words alone.

        >>> str(Line((Meaning("7 days for a label"), Meaning("then it is dropped"))))
        '7 days for a label; then it is dropped'
        """
        return self.between.join(phrase.text for phrase in self.phrases)


def percent(share: float) -> str:
    """Write a share in per cent; no line breaks before the sign.

    >>> percent(0.1).replace(chr(0xA0), " ")
    '10 %'
    """
    return f"{100 * share:.12g}\u00a0%"

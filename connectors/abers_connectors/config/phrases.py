"""Words on the values of keys, from which the meaning of a configuration is made."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Line", "Meaning"]


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

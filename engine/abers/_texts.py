"""The texts of a batch, looked at once: the executable specification of the native one.

Governing rule: a text is a `str` and of no other type, and can be written down,
which half of a surrogate pair cannot; nothing is decided here, only told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["are_names", "distinct", "is_text"]


def are_names(texts: list[Any]) -> bool:
    """Tell whether all are texts of at least one character that can be written down."""
    return all(is_text(text) and text for text in texts)


def distinct(texts: list[Any], numbers: NDArray[np.uint32]) -> list[str] | None:
    """Write the number of each text, in order of appearance; the texts, or None if one is none."""
    if not all(map(is_text, texts)):
        return None
    known = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    numbers[:] = [known[text] for text in texts]
    return [*known]


def is_text(text: object) -> bool:
    """Tell whether this is a text that can be written down."""
    if type(text) is not str:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

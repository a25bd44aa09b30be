"""The texts of a batch, looked at once: the executable specification of the native one.

Governing rule: a text is a `str` and of no other type, and can be written down,
which half of a surrogate pair cannot; its length is that of its UTF-8, in bytes.
Nothing is decided here, only reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["are_names", "distinct", "fits", "is_text"]


def are_names(texts: list[Any], most: int) -> bool:
    """Return whether all are non-empty texts of at most so many bytes."""
    return all(is_text(text) and text and fits(text, most) for text in texts)


def distinct(texts: list[Any], numbers: NDArray[np.uint32], most: int) -> list[str] | None:
    """Write the number of each text, in order of appearance.

    Return the texts, or None if one of them is no text or takes more than `most` bytes.
    """
    if not all(is_text(text) and fits(text, most) for text in texts):
        return None
    known = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    numbers[:] = [known[text] for text in texts]
    return [*known]


def fits(text: str, most: int) -> bool:
    """Return whether a text takes at most so many bytes."""
    return len(text) <= most and len(text.encode()) <= most


def is_text(text: object) -> bool:
    """Tell whether this is a text that can be written down."""
    if type(text) is not str:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

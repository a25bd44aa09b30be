"""Columns of strings: a specification of the native core.

A valid string has exactly the type `str` and can be encoded as UTF-8, unlike half of a surrogate
pair. Its length is that of its UTF-8, in bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["are_names", "distinct", "fits", "is_text"]


def are_names(texts: list[Any], most: int) -> bool:
    """Return whether all are valid, non-empty strings of at most `most` bytes."""
    return all(is_text(text) and text and fits(text, most) for text in texts)


def distinct(texts: list[Any], numbers: NDArray[np.uint32], most: int) -> list[str] | None:
    """Dictionary-encode a column: write the number of each string, in order of appearance.

    Return the distinct strings, or None if one is invalid or longer than `most` bytes.
    """
    if not all(is_text(text) and fits(text, most) for text in texts):
        return None
    known = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    numbers[:] = [known[text] for text in texts]
    return [*known]


def fits(text: str, most: int) -> bool:
    """Return whether a string takes at most `most` bytes."""
    return len(text) <= most and len(text.encode()) <= most


def is_text(text: object) -> bool:
    """Return whether this is a valid string."""
    if type(text) is not str:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

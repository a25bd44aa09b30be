"""Names and ids as text.

A text has exactly the type `str` and can be encoded as UTF-8, unlike half of a surrogate pair. Its
length is that of its UTF-8, in bytes.
"""

from __future__ import annotations

__all__ = ["fits", "is_text"]


def fits(text: str, most: int) -> bool:
    """Return whether a text takes at most `most` bytes."""
    return len(text) <= most and len(text.encode()) <= most


def is_text(value: object) -> bool:
    """Return whether a value is a text."""
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True

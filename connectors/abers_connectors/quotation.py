"""What a peer says, quoted in an error or in the log unless it repeats a secret."""

from __future__ import annotations

import base64
import html
import re
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_plus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["quoted"]

_HIDDEN = "its answer repeats a secret, and is not shown"
_DEPTH = 3  # encodings, one inside the other
_LONGEST = 64  # characters that encode one of a secret
_MAX_WORK = 4 << 20  # characters that are searched; a text that needs more is not shown
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{2,}")


def quoted(text: str, most: int, *secrets: str) -> str:
    """Return the beginning of a text, or a sentence instead if it has a secret, however encoded.

    A secret may be encoded for a URL or a form, for JSON or HTML, or in Base64, alone or as a part
    of what is encoded, and up to three times.

    Examples
    --------
    >>> quoted("unknown client", 7, "sesame"), quoted("no such key: c2VzYW1l", 99, "sesame")
    ('unknown', 'its answer repeats a secret, and is not shown')
    """
    near = text[: most + _LONGEST * max(map(len, secrets), default=0)]
    return _HIDDEN if _shows(near, [one for one in secrets if one]) else text[:most]


def _shows(text: str, secrets: Sequence[str]) -> bool:
    """Return whether a text, or what it may encode, has a secret in it."""
    forms, seen, work = {text}, set[str](), 0
    for _ in range(_DEPTH + 1):
        for form in forms:
            work += len(form)
            if work > _MAX_WORK or any(one in form for one in secrets):
                return True
        seen |= forms
        forms = {decode(form) for form in forms for decode in _DECODERS} - seen
    return False


def _unescaped(text: str) -> str:
    """Decode the escapes of JSON; other characters behind a backslash are not in any secret."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], text)


def _from_base64(skipped: int, text: str) -> str:
    """Decode all that may be Base64, each from a character on: its beginning may be missing."""

    def decoded(found: re.Match[str]) -> str:
        digits = found[0][skipped:].translate(_STANDARD)
        whole = digits[: len(digits) - (len(digits) % 4 == 1)]  # one digit alone is no byte
        return base64.b64decode(whole + "=" * (-len(whole) % 4)).decode(errors="replace")

    return _BASE64.sub(decoded, text)


_STANDARD = str.maketrans("-_", "+/")
_DECODERS: list[Callable[[str], str]] = [
    unquote,
    unquote_plus,
    html.unescape,
    _unescaped,
    *(partial(_from_base64, skipped) for skipped in range(4)),
]

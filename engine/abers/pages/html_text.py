"""Text of others as part of a page."""

from __future__ import annotations

import html
import re

__all__ = ["escape"]

_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def escape(text: str) -> str:
    r"""Return text that HTML shows as it is, with controls and reversals of text as escapes.

    A terminal shows the same escapes. Joiners stay, for some scripts need them.

    Examples
    --------
    >>> print(escape("<b>\x1b[31m\u202e"))
    &lt;b&gt;\x1b[31m\u202e
    """
    return html.escape(_UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text))

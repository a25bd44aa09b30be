"""Texts of others on a terminal.

Governing rule: whatever a record, a file or a broker calls a thing, one line stays one line,
nothing moves the cursor or asks the terminal for something, and no order is turned around.
Whatever is printed for a person goes through here; JSON has escapes of its own.
"""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    r"""Escape all that is no visible character or space: controls, line ends, overrides of order.

    Parameters
    ----------
    text
        Of a line.

    Returns
    -------
    str
        The same, if there is nothing to escape.

    Examples
    --------
    >>> print(printable("fraud\x1b[2J\n\u202eliam"))
    fraud\x1b[2J\n\u202eliam
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)

"""Safe printing of text that others wrote.

A name from a record, a file or a broker may contain control characters. Every line for a terminal
passes through `printable`, so it stays one line, moves no cursor and reverses no text. JSON output
has its own escapes. It needs no engine, for a command also says why that cannot be imported;
documents of the engine have the same in `abers.pages.ink`.
"""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    r"""Return the text with control characters, line ends and bidirectional overrides escaped.

    Examples
    --------
    >>> print(printable("fraud\x1b[2J\n\u202eliam"))
    fraud\x1b[2J\n\u202eliam
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)

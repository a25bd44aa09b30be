"""Words in colours on lines of a terminal: how they break, and how wide they are."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers.pages.blocks import State, Tone, Words

__all__ = ["UNBROKEN", "Ink", "Line", "Piece", "Style", "joined", "pieces", "width_of"]

Style: TypeAlias = "Tone | State | Literal['', 'head']"

# Parameters of the escape sequence "select graphic rendition".
COLOURS: dict[str, str] = {
    "strong": "1",
    "soft": "90",
    "head": "1;90",
    "raw": "38;5;208",
    "calibrated": "34",
    "yes": "1;32",
    "no": "1;31",
    "partly": "1;33",
    "recovering": "1;33",
    "undecided": "90",
    "waiting": "90",
}
SIGNS: dict[State, str] = {
    "yes": "✓",
    "no": "✗",
    "partly": "!",
    "recovering": "!",
    "undecided": "·",
    "waiting": "·",
}
SIGNS_IN_ASCII = {"✓": "+", "✗": "x", "!": "!", "·": "?"}
UNBROKEN = "\u00a0"  # a space at which no line breaks
SPACES = str.maketrans({UNBROKEN: " ", "\u202f": " ", "\u2009": " "})
ASCII = str.maketrans(
    {"−": "-", "–": "-", "≥": ">=", "≤": "<=", "→": "->", "←": "<-", "…": "...", "°": "deg "}
    | {"“": '"', "”": '"', "’": "'", "·": "*"}
)
RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


class Piece(NamedTuple):
    """Characters in a style."""

    text: str
    style: Style = ""


Line: TypeAlias = "list[Piece]"


def pieces(words: Words, style: Style = "") -> Line:
    """Return words as pieces, in a style where they have no tone of their own."""
    if isinstance(words, str):
        return [Piece(words, style)] if words else []
    return [
        Piece(one, style)
        if isinstance(one, str)
        else Piece(one.words.replace(" ", UNBROKEN) if one.tone == "code" else one.words, one.tone)
        for one in words
    ]


def width_of(text: str) -> int:
    """Return the number of columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(one) in {"W", "F"} for one in text)
    return len(text) + wide - sum(unicodedata.combining(one) > 0 for one in text)


def joined(parts: Iterable[Line], between: str) -> Line:
    """Return lines as one, with a text between them."""
    line: Line = []
    for part in parts:
        if line and part:
            line.append(Piece(between, part[0].style))
        line += part
    return line


class Ink:
    """How text is written: its width, with or without colours and characters beyond ASCII."""

    def __init__(self, width: int, *, colour: bool, unicode: bool) -> None:
        self.width = width
        self._colour = colour
        self.unicode = unicode

    def sign(self, state: State) -> str:
        """Return the sign of a state."""
        return SIGNS[state] if self.unicode else SIGNS_IN_ASCII[SIGNS[state]]

    def clean(self, text: str) -> str:
        """Return text as a terminal may have it: no control characters, and ASCII if it must."""
        text = text.translate(SPACES)
        if not self.unicode:
            text = RAISED.sub(
                lambda found: "^" + found[0].translate(LOWERED), text.translate(ASCII)
            )
            text = text.encode("ascii", "backslashreplace").decode()
        return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)

    def wrapped(self, words: Iterable[Piece], width: int) -> list[Line]:
        """Break words at their spaces into lines of a width; a longer word has its own line."""
        lines: list[Line] = []
        room = 0
        for word in self._words(words):
            needed = sum(width_of(piece.text) for piece in word)
            if lines and needed < room:
                lines[-1] += [Piece(" ", lines[-1][-1].style), *word]
                room -= needed + 1
            else:
                lines.append(word)
                room = width - needed
        return lines

    def _words(self, words: Iterable[Piece]) -> list[Line]:
        """Split pieces at spaces: a word may have several styles."""
        found: list[Line] = [[]]
        for piece in words:
            first, *others = piece.text.split(" ")
            found[-1] += [Piece(self.clean(first), piece.style)] * bool(first)
            found += [[Piece(self.clean(one), piece.style)] if one else [] for one in others]
        return [word for word in found if word]

    def hung(self, head: Line, words: Iterable[Piece], column: int) -> list[str]:
        """Return words as lines behind a head; they and all that follows begin at a column."""
        lines = self.wrapped(words, self.width - column) or [[]]
        gap = column - sum(width_of(piece.text) for piece in head)
        first = [*head, Piece(" " * gap), *lines[0]]
        return [
            self.painted(first),
            *(self.painted([Piece(" " * column), *one]) for one in lines[1:]),
        ]

    def painted(self, line: Sequence[Piece]) -> str:
        """Return clean pieces as one text, in colours if they are wanted."""
        if not self._colour:
            return "".join(piece.text for piece in line).rstrip()
        parts: list[Piece] = []
        for piece in line:
            if parts and parts[-1].style == piece.style:
                parts[-1] = Piece(parts[-1].text + piece.text, piece.style)
            elif piece.text:
                parts.append(piece)
        return "".join(self._coloured(piece) for piece in parts).rstrip()

    @staticmethod
    def _coloured(piece: Piece) -> str:
        code = COLOURS.get(piece.style)
        return f"\x1b[{code}m{piece.text}\x1b[0m" if code else piece.text

"""Documents as text, for terminals of any width and for logs."""

from __future__ import annotations

import re
import unicodedata
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from abers.pages.blocks import (
    AlarmBlock,
    AnswerBlock,
    AnswersBlock,
    ChoiceBlock,
    FigureBlock,
    FoldBlock,
    Mark,
    Picture,
    SectionBlock,
    TableBlock,
    TextBlock,
    TilesBlock,
    plain,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers.pages.blocks import (
        Block,
        Cell,
        Column,
        Detail,
        Document,
        State,
        TableRow,
        Tone,
        Trace,
        Traces,
        Words,
    )

__all__ = [
    "UNBROKEN",
    "Ink",
    "Line",
    "Piece",
    "Style",
    "joined",
    "pieces",
    "table_lines",
    "text",
    "trace_lines",
    "width_of",
]

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


INDENT = 2  # spaces before the first column
GAP, NARROW = 3, 2  # spaces between two columns, with and without room
LEAST_WORDS = 16  # columns of a terminal that a column of words keeps when it is made narrower
COLUMNS = (("any", "some", "much"), ("any", "some"), ("any",))


def table_lines(table: TableBlock, ink: Ink) -> list[str]:
    """Return the lines of a table. Columns that need much room go first if it has too little."""
    for shown in COLUMNS:
        kept = [
            number
            for number, column in enumerate(table.columns)
            if column.room in shown and not _has_pictures(table, number)
        ]
        columns = [table.columns[number] for number in kept]
        cells = [[_cell(row.cells[number], row, ink) for number in kept] for row in table.rows]
        heads = [_head(column, ink) for column in columns]
        if layout := _layout(columns, heads, cells, ink.width - INDENT):
            return [
                line for row in (heads, *cells) for line in _row_lines(columns, row, layout, ink)
            ]
    return [line for row in cells for line in _listed(columns, row, ink)]


def _has_pictures(table: TableBlock, number: int) -> bool:
    return any(isinstance(row.cells[number], Picture) for row in table.rows)


def _cell(cell: Cell, row: TableRow, ink: Ink) -> Line:
    """Return a cell in pieces that are clean."""
    style: Style = "strong" if row.main else ""
    if isinstance(cell, Picture):
        return []
    if isinstance(cell, Mark):
        note = f" {cell.note}" if cell.note else ""
        line = [Piece(f"{ink.sign(cell.state)} {cell.word}", cell.state), Piece(note, "soft")]
    else:
        line = pieces(cell, style)
    return [Piece(ink.clean(piece.text), piece.style) for piece in line]


def _head(column: Column, ink: Ink) -> Line:
    unit = f", {column.unit}" if column.unit else ""
    return [Piece(ink.clean(column.head + unit), "head")]


def _width(line: Line) -> int:
    return sum(width_of(piece.text) for piece in line)


class _Layout(NamedTuple):
    widths: list[int]
    gap: int


def _layout(
    columns: Sequence[Column], heads: Sequence[Line], cells: Sequence[Sequence[Line]], room: int
) -> _Layout | None:
    """Return the widths of columns; with too little room heads break, then words."""
    below = [max(map(_width, column)) for column in zip(*cells, strict=True)] or [0] * len(heads)
    words = [max(map(width_of, head[0].text.split(" "))) for head in heads]
    for gap, least in ((GAP, map(_width, heads)), (NARROW, map(_width, heads)), (NARROW, words)):
        widths = [max(pair) for pair in zip(below, least, strict=True)]
        over = sum(widths) + gap * (len(widths) - 1) - room
        if over <= 0:
            return _Layout(widths, gap)
    left = [number for number, column in enumerate(columns) if column.align == "left"]
    widest = max(left, key=lambda number: widths[number], default=None)
    if widest is None or widths[widest] - over < LEAST_WORDS:
        return None
    widths[widest] -= over
    return _Layout(widths, NARROW)


def _row_lines(
    columns: Sequence[Column], row: Sequence[Line], layout: _Layout, ink: Ink
) -> list[str]:
    """Return the lines of a row; only words need several."""
    broken = [
        ink.wrapped(cell, width) if _width(cell) > width else [cell]
        for cell, width in zip(row, layout.widths, strict=True)
    ]
    lines = []
    for number in range(max(map(len, broken))):
        line: Line = [Piece(" " * INDENT)]
        for column, cell, width in zip(columns, broken, layout.widths, strict=True):
            part = cell[number] if number < len(cell) else []
            gap = [Piece(" " * (width - _width(part)))]
            left = column is columns[0] or column.align == "left"
            line += [*part, *gap] if left else [*gap, *part]
            line.append(Piece(" " * layout.gap))
        lines.append(ink.painted(line))
    return lines


def _listed(columns: Sequence[Column], row: Sequence[Line], ink: Ink) -> list[str]:
    """Return a row as its name and a line for each other cell."""
    lines = ink.hung([], row[0], INDENT)
    for column, cell in zip(columns[1:], row[1:], strict=True):
        if cell:
            lines += ink.hung([], [*_head(column, ink), Piece(" "), *cell], 2 * INDENT)
    return lines


HEIGHTS = "▁▂▃▄▅▆▇█"
NAMES = 20  # columns that names have at least, so that several figures are alike
LEAST_TRACE = 10  # columns in which a line over time says something


def trace_lines(traces: Traces, ink: Ink) -> list[str]:
    """Return the lines of traces on one scale; none without the characters or the room."""
    numbers = [y for trace in traces.traces for y in trace.values if y is not None]
    names = [ink.clean(trace.name) for trace in traces.traces]
    column = 2 + max([NAMES, *map(width_of, names)]) + 2
    if not numbers or not ink.unicode or ink.width - column < LEAST_TRACE:
        return []
    scale = f"from {traces.low} ({HEIGHTS[0]}) to {traces.high} ({HEIGHTS[-1]})"
    lines = ink.hung([], [*pieces(traces.title, "soft"), Piece(f" {scale}", "soft")], column)
    for name, trace in zip(names, traces.traces, strict=True):
        gap = " " * (column - 2 - width_of(name))
        drawn = _drawn(trace, min(numbers), max(numbers), ink.width - column)
        lines.append(ink.painted([Piece("  "), Piece(name, "strong"), Piece(gap), drawn]))
    return lines


def _drawn(trace: Trace, low: float, high: float, room: int) -> Piece:
    """Return a trace as one piece; if it is longer than its room, neighbours become their mean."""
    size = -(-len(trace.values) // room)
    parts = [trace.values[start : start + size] for start in range(0, len(trace.values), size)]
    return Piece("".join(_height(part, low, high) for part in parts), trace.tone or "")


def _height(values: tuple[float | None, ...], low: float, high: float) -> str:
    known = [y for y in values if y is not None]
    if not known:
        return " "
    share = (sum(known) / len(known) - low) / (high - low) if high > low else 0.5
    return HEIGHTS[round(share * (len(HEIGHTS) - 1))]


WIDEST = 100  # columns; longer lines are hard to read
ORDER: tuple[Detail, ...] = ("answers", "usual", "more")
LEAST_BESIDE = 30  # columns that a sentence needs to stand to the right of its state


def text(
    document: Document,
    width: int = 80,
    *,
    colour: bool = False,
    unicode: bool = True,
    detail: Detail = "usual",
) -> str:
    """Return a document as lines that end at a width, or at 100 columns, and break at words.

    Parameters
    ----------
    document
        The document.
    width
        Columns of the terminal.
    colour
        Whether to write escape sequences for colours. Signs and words are the same without.
    unicode
        Whether the terminal shows more than ASCII.
    detail
        Answers only, what most readers need, or more.

    Returns
    -------
    str
        The lines, each with its end.
    """
    page = _TextPage(Ink(min(width, WIDEST), colour=colour, unicode=unicode), detail)
    return "".join(f"{line}\n" for line in page.lines(document.blocks))


class _TextPage:
    """Blocks as lines, at a level of detail."""

    def __init__(self, ink: Ink, detail: Detail) -> None:
        self._ink = ink
        self._detail = detail

    def lines(self, blocks: Iterable[Block]) -> list[str]:
        """Return the lines of blocks, with an empty line between two, but not between sentences."""
        lines: list[str] = []
        before: Block | None = None
        for block in blocks:
            if found := self._shown(block):
                sentences = isinstance(block, _SENTENCES) and isinstance(before, _SENTENCES)
                lines += [""] * (bool(lines) and not sentences)
                lines += found
                before = block
        return lines

    def _shown(self, block: Block) -> list[str]:
        """Return the lines of a block, if a text of this detail has it."""
        if block.place == "page" or ORDER.index(block.detail) > ORDER.index(self._detail):
            return []
        return self._lines(block)

    @singledispatchmethod
    def _lines(self, block: Block) -> list[str]:
        """Return the lines of a block."""
        raise NotImplementedError(block)

    @_lines.register(TextBlock)
    def _text(self, block: TextBlock) -> list[str]:
        return self._ink.hung([], pieces(block.words), INDENT)

    @_lines.register(FigureBlock)
    def _figure(self, block: FigureBlock) -> list[str]:
        return trace_lines(block.traces, self._ink) if block.traces else []

    @_lines.register(SectionBlock)
    def _section(self, block: SectionBlock) -> list[str]:
        return self._titled(block.title, block.why_text or block.why, block.blocks)

    @_lines.register(FoldBlock)
    def _fold(self, block: FoldBlock) -> list[str]:
        return self._titled(block.title, block.summary, block.blocks)

    @_lines.register(AnswersBlock)
    def _answers(self, block: AnswersBlock) -> list[str]:
        lines = self._columns(block.cards)
        if block.note and self._detail != "answers":
            lines += self._ink.hung([], pieces(block.note, "soft"), 0)
        return lines

    @_lines.register(AnswerBlock)
    def _answer(self, card: AnswerBlock) -> list[str]:
        return self._columns([card])

    def _columns(self, cards: Sequence[AnswerBlock]) -> list[str]:
        """Return answers in columns: sign, name, state, and what each says."""
        ink = self._ink
        names = [ink.clean(card.name) for card in cards]
        words = [ink.clean((card.word or card.state).upper()) for card in cards]
        name_width, word_width = (
            max(map(width_of, column), default=0) for column in (names, words)
        )
        lines = []
        for card, name, word in zip(cards, names, words, strict=True):
            gap = " " * (name_width - width_of(name) + 2)
            sign = Piece(f"{ink.sign(card.state)} ", card.state)
            head = [sign, Piece(name, "strong"), Piece(gap), Piece(word, card.state)]
            lines += self._said(card, head, 2 + name_width + 2 + word_width + 2)
        return lines

    def _said(self, card: AnswerBlock, head: Line, column: int) -> list[str]:
        """Return what an answer says behind its state, or below if there is too little room."""
        ink = self._ink
        said = _sentence(card)
        sure = pieces("; ".join(filter(None, (card.range, card.remark))), "soft")
        if ink.width - column < LEAST_BESIDE:
            column = INDENT
            lines = [ink.painted(head), *ink.hung([], said, column)]
        else:
            lines = ink.hung(head, said, column)
        return lines + (ink.hung([], sure, column) if sure else [])

    @_lines.register(AlarmBlock)
    def _alarm(self, block: AlarmBlock) -> list[str]:
        ink = self._ink
        said = joined(
            [pieces(block.head, block.state), pieces(block.words), pieces(block.small, "soft")], " "
        )
        sign = "!" if block.state == "no" else ink.sign(block.state)
        return ink.hung([Piece(sign, block.state)], said, INDENT)

    @_lines.register(TilesBlock)
    def _tiles(self, block: TilesBlock) -> list[str]:
        ink = self._ink
        labels = [ink.clean(tile.label) for tile in block.tiles]
        column = INDENT + max(map(width_of, labels), default=0) + 3
        if ink.width - column < LEAST_BESIDE:
            column = 2 * INDENT
        lines = []
        for tile, label in zip(block.tiles, labels, strict=True):
            head = [Piece(" " * INDENT), Piece(label, "strong")]
            if INDENT + width_of(label) < column:
                lines += ink.hung(head, pieces(tile.value), column)
            else:
                lines += ink.hung([], head[1:], INDENT)
                lines += ink.hung([], pieces(tile.value), column)
        return lines

    @_lines.register(TableBlock)
    def _table(self, block: TableBlock) -> list[str]:
        ink = self._ink
        title = ink.hung([], pieces(block.title, "strong"), INDENT) if block.title else []
        note = ink.hung([], pieces(block.note, "soft"), INDENT) if block.note else []
        return [*title, *table_lines(block, ink), *note]

    @_lines.register(ChoiceBlock)
    def _choice(self, block: ChoiceBlock) -> list[str]:
        """Return the first group, or with more detail all under their names."""
        if self._detail != "more":
            return self.lines(block.options[0].blocks)
        lines: list[str] = []
        for option in block.options:
            found = self._titled(option.name, "", option.blocks)
            lines += [""] * (bool(lines) and bool(found))
            lines += found
        return lines

    def _titled(self, title: Words, more: Words, blocks: Iterable[Block]) -> list[str]:
        """Return blocks, with more detail under their title; none if they have no lines."""
        lines = self.lines(blocks)
        if not lines or self._detail != "more":
            return lines
        titles = self._ink.hung([], pieces(title, "strong"), 0)
        if plain(more):
            titles += self._ink.hung([], pieces(more, "soft"), 0)
        return [*titles, "", *lines]


_SENTENCES = (AlarmBlock, TextBlock)


def _sentence(card: AnswerBlock) -> Line:
    """Return what an answer says, with its number."""
    group = f"{card.group}: " if card.group else ""
    if not card.number:
        return pieces(group + card.sentence)
    number = f"{card.number}{UNBROKEN}{card.unit}"
    if not card.sentence:
        return pieces(number, "strong")
    return [Piece(f"{group}{card.sentence.removesuffix('.')}: "), Piece(number, "strong")]

"""Documents as text, for terminals of any width and for logs."""

from __future__ import annotations

from functools import singledispatchmethod
from typing import TYPE_CHECKING

from abers.pages.blocks import (
    AlarmBlock,
    AnswerBlock,
    AnswersBlock,
    ChoiceBlock,
    FigureBlock,
    FoldBlock,
    SectionBlock,
    TableBlock,
    TextBlock,
    TilesBlock,
    plain,
)
from abers.pages.ink import UNBROKEN, Ink, Piece, joined, pieces, width_of
from abers.pages.text_table import table_lines
from abers.pages.text_traces import trace_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers.pages.blocks import Block, Detail, Document, Words
    from abers.pages.ink import Line

__all__ = ["text"]

WIDEST = 100  # columns; longer lines are hard to read
ORDER: tuple[Detail, ...] = ("answers", "usual", "more")
INDENT = 2
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

"""Each block as an element of HTML, with its key as its id."""

from __future__ import annotations

from functools import singledispatch
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
from abers.pages.figures import draw, sign
from abers.pages.html_table import table
from abers.pages.html_text import escape
from abers.pages.html_words import heading, inline, picture

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers.pages.blocks import Block, Picture

__all__ = ["body"]

WIDE, ALONE, NARROW = 520.0, 720.0, 330.0  # pixels of a chart, as the style sheet has them


@singledispatch
def body(block: Block, level: int) -> str:
    """Return the element of a block; its headings begin at a level."""
    raise NotImplementedError(block, level)


def _bodies(blocks: Iterable[Block], level: int) -> str:
    return "\n".join(body(block, level) for block in blocks if block.place != "text")


def _id(block: Block) -> str:
    return f'id="{escape(block.key)}"'


@body.register(SectionBlock)
def _section(block: SectionBlock, level: int) -> str:
    why = f'<p class="why">{inline(block.why)}</p>' if plain(block.why) else ""
    named = f"{escape(block.key)}:title"
    return (
        f'<section class="box" {_id(block)} aria-labelledby="{named}">'
        f'<h{level} id="{named}">{inline(block.title)}</h{level}>{why}'
        f"{_bodies(block.blocks, level + 1)}</section>"
    )


@body.register(FoldBlock)
def _fold(block: FoldBlock, level: int) -> str:
    summary = f" <span>{inline(block.summary)}</span>" if plain(block.summary) else ""
    return (
        f'<details class="box" {_id(block)}><summary><h{level}>{inline(block.title)}</h{level}>'
        f"{summary}</summary><div>{_bodies(block.blocks, level + 1)}</div></details>"
    )


@body.register(ChoiceBlock)
def _choice(block: ChoiceBlock, level: int) -> str:
    """Return radio buttons before their groups; the style sheet shows the group that is chosen."""
    name = escape(block.key)
    buttons = "".join(
        f'<label><input type="radio" name="{name}"{" checked" * (number == 0)}>'
        f"<span>{escape(option.name)}</span></label>"
        for number, option in enumerate(block.options)
    )
    groups = "".join(f"<div>{_bodies(option.blocks, level)}</div>" for option in block.options)
    return (
        f'<div class="choice" {_id(block)}><fieldset><legend>{escape(block.words)}</legend>'
        f"{buttons}</fieldset>{groups}</div>"
    )


@body.register(TextBlock)
def _text(block: TextBlock, level: int) -> str:  # noqa: ARG001 - it has no heading
    look = ' class="note"' if block.note else ""
    return f"<p {_id(block)}{look}>{inline(block.words)}</p>"


@body.register(TilesBlock)
def _tiles(block: TilesBlock, level: int) -> str:  # noqa: ARG001 - they have no headings
    tiles = "".join(
        f"<div><dt>{escape(tile.label)}</dt><dd>{escape(tile.value)}</dd></div>"
        for tile in block.tiles
    )
    return f'<dl class="tiles" {_id(block)}>{tiles}</dl>'


@body.register(AnswersBlock)
def _answers(block: AnswersBlock, level: int) -> str:
    progress = ""
    if block.progress:
        known, needed = block.progress
        progress = (
            f'<progress value="{known}" max="{needed}" aria-label="labels known">'
            f"{known} of {needed}</progress>"
        )
    note = f'<p class="facts">{inline(block.note)}</p>' if plain(block.note) else ""
    cards = _bodies(block.cards, level)
    return f'<div {_id(block)}>{note}{progress}<div class="cards">{cards}</div></div>'


@body.register(AnswerBlock)
def _answer(card: AnswerBlock, level: int) -> str:
    named = f"{escape(card.key)}:title"
    word = escape(card.word or card.state.capitalize())
    said = " ".join(
        filter(None, (_sentence(card.group, card.sentence), _sentence("", card.remark)))
    )
    parts = [
        f'<h{level} id="{named}">{escape(card.question)}</h{level}>',
        f'<p class="word">{sign(card.state)}<span>{word}</span></p>',
        f'<p class="say">{escape(said)}</p>',
    ]
    if card.number:
        parts.append(f'<p class="big">{escape(card.number)} <span>{escape(card.unit)}</span></p>')
    if card.range:
        parts.append(f'<p class="range">{escape(card.range)}</p>')
    if card.spark:
        parts.append(f'<div class="spark">{picture(card.spark)}</div>')
    if card.then:
        parts.append(f'<p class="then">{escape(card.then)}</p>')
    return (
        f'<article class="card {card.state}" {_id(card)} aria-labelledby="{named}">'
        f"{''.join(parts)}</article>"
    )


def _sentence(group: str, words: str) -> str:
    """Return words as a sentence; a group is quoted as it is."""
    if not words:
        return group
    said = f"{group}: {words}" if group else words[0].upper() + words[1:]
    return said if said.endswith((".", "?", "!")) else f"{said}."


@body.register(TableBlock)
def _table(block: TableBlock, level: int) -> str:
    note = f'<p class="small soft">{inline(block.note)}</p>' if plain(block.note) else ""
    return f"<div {_id(block)}>{heading(block.title, level)}{table(block)}{note}</div>"


@body.register(FigureBlock)
def _figure(block: FigureBlock, level: int) -> str:
    entries = "".join(
        f'<li><span class="sample {one.sample}"></span>{inline(one.words)}</li>'
        for one in block.legend
    )
    legend = f'<ul class="legend">{entries}</ul>' if entries else ""
    wide = WIDE if block.pictures[1:] else ALONE
    figures = "".join(_chart(one, level, wide) for one in block.pictures)
    return f'<div {_id(block)}>{legend}<div class="figures">{figures}</div></div>'


def _chart(one: Picture, level: int, wide: float) -> str:
    """Return a figure drawn twice, as its texts would be too small on a telephone."""
    drawn = "".join(
        f'<div class="{place}">{draw(one.kind, one.data, label=one.label, width=width)}</div>'
        for place, width in (("wide", wide), ("narrow", NARROW))
    )
    caption = f"<figcaption>{inline(one.caption)}</figcaption>" if plain(one.caption) else ""
    return f"<figure>{heading(one.title, level)}{drawn}{caption}</figure>"


@body.register(AlarmBlock)
def _alarm(block: AlarmBlock, level: int) -> str:  # noqa: ARG001 - it has no heading
    role = f' role="{"alert" if block.state == "no" else "status"}"' if block.active else ""
    small = f'<br><span class="small">{inline(block.small)}</span>' if plain(block.small) else ""
    return (
        f'<p class="alarm {block.state}" {_id(block)}{role}>'
        f"<b>{escape(block.head)}</b> {inline(block.words)}{small}</p>"
    )

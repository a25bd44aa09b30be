"""Documents as HTML: pages, blocks and tables, words, headings and pictures.

A document becomes a file that opens offline, fragments of a live page, and output of a notebook. No
page has a script, asks a server for anything, or has a style beyond its own sheet; its policy
forbids them, should a text that was not escaped try.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache, singledispatch
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

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
    walk,
)
from abers.pages.figures import draw, sign
from abers.pages.html_text import escape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers.pages.blocks import Block, Cell, Column, Document, Span, TableRow, Words

__all__ = ["body", "fragment", "heading", "inline", "notebook", "page", "picture", "table"]


def inline(words: Words) -> str:
    """Return words with their tones as elements."""
    if isinstance(words, str):
        return escape(words)
    return "".join(escape(one) if isinstance(one, str) else _span(one) for one in words)


def _span(span: Span) -> str:
    words = escape(span.words)
    match span.tone:
        case "code":
            return f"<code>{words}</code>"
        case "soft":
            return f'<span class="soft">{words}</span>'
        case "strong":
            return f"<b>{words}</b>"
        case view:
            return f'<b class="{view}">{words}</b>'


def heading(title: Words, level: int) -> str:
    """Return a heading; nothing without words."""
    return f"<h{level}>{inline(title)}</h{level}>" if plain(title) else ""


def picture(one: Picture) -> str:
    """Return a small picture with its caption."""
    caption = f'<p class="small soft">{inline(one.caption)}</p>' if plain(one.caption) else ""
    return draw(one.kind, one.data, label=one.label) + caption


LONG_WORD, LONG_NAME = 12, 24  # characters from which a name may break anywhere, and at spaces
MANY = 6  # columns; a narrow page sets more in smaller type


def table(block: TableBlock) -> str:
    """Return a table with its caption, the scopes of its heads, and the names of its rows."""
    dense = ' class="dense"' if len(block.columns) > MANY else ""
    heads = "".join(_column_head(column) for column in block.columns)
    rows = "".join(_row(block.columns, row) for row in block.rows)
    return (
        f"<table{dense}><caption>{escape(block.caption)}</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _look(column: Column) -> str:
    """Return the class of a column: its side, and how much room it needs."""
    return f"{column.align} {column.room}"


def _column_head(column: Column) -> str:
    unit = f'<span class="much">, {escape(column.unit)}</span>' if column.unit else ""
    return f'<th scope="col" class="{_look(column)}">{escape(column.head)}{unit}</th>'


def _row(columns: tuple[Column, ...], row: TableRow) -> str:
    look = " ".join(["main"] * row.main + ["separated"] * row.separated)
    first, *others = zip(columns, row.cells, strict=True)
    cells = "".join(f'<td class="{_look(column)}">{_cell(cell)}</td>' for column, cell in others)
    return f'<tr class="{look}">{_name(*first)}{cells}</tr>'


def _name(column: Column, cell: Cell) -> str:
    """Return the name of a row; the style sheet breaks it by its length."""
    words = "" if isinstance(cell, Mark | Picture) else plain(cell)
    length = "short" if len(words) <= LONG_NAME else ""
    if any(len(word) > LONG_WORD for word in words.split()):
        length = "long"
    return f'<th scope="row" class="{_look(column)} {length}">{_cell(cell)}</th>'


def _cell(cell: Cell) -> str:
    match cell:
        case Mark():
            note = f' <span class="small soft much">{escape(cell.note)}</span>' if cell.note else ""
            keep = " keep" * cell.keep
            word = f"<span>{escape(cell.word)}</span>"
            return f'<span class="mark {cell.state}{keep}">{sign(cell.state)}{word}</span>{note}'
        case Picture():
            return picture(cell)
        case words:
            return inline(words)


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


MAIN = ":main"  # no key of a block has a colon


@cache
def _style() -> str:
    return (files("abers.pages") / "style.css").read_text("utf-8")


def page(document: Document) -> str:
    """Return a document as one file of HTML that needs nothing else."""
    hashed = b64encode(sha256(_style().encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'; base-uri 'none'; form-action 'none'"
    foot = f"<footer>{inline(document.foot)}</footer>" if document.foot else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{escape(_title(document))}</title>
<style>{_style()}</style>
</head>
<body class="abers">
<a class="skip" href="#{MAIN}">Skip to the answers</a>
<header><div class="brand">abers</div>{_head(document)}</header>
<main id="{MAIN}">
{_blocks(document)}
</main>
{foot}
</body>
</html>
"""


def notebook(document: Document) -> str:
    """Return a document as the output of a cell; its style touches nothing around it.

    The form keeps its choices apart from those of the same document in another cell.
    """
    return (
        f'<style>{_style()}</style><form class="abers"><div class="brand">abers</div>'
        f"{_head(document)}{_blocks(document)}</form>"
    )


def fragment(block: Block, level: int = 2) -> str:
    """Return the element of a block, with its key as id; its headings begin at a level."""
    return body(block, level)


def _title(document: Document) -> str:
    """Return the title of a page, which warns of alarms that are active."""
    alarms = (one for one in walk(document.blocks) if isinstance(one, AlarmBlock))
    warning = "(!) " if any(one.active and one.state == "no" for one in alarms) else ""
    return f"{warning}{document.title} · abers"


def _head(document: Document) -> str:
    lead = f'<p class="lead">{inline(document.lead)}</p>' if plain(document.lead) else ""
    facts = "".join(f"<li>{inline(one)}</li>" for one in document.facts)
    listed = f'<ul class="facts">{facts}</ul>' if facts else ""
    return f"<h1>{escape(document.title)}</h1>{lead}{listed}"


def _blocks(document: Document) -> str:
    return "\n".join(body(one, 2) for one in document.blocks if one.place != "text")

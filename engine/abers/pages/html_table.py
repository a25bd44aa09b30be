"""Tables as HTML; a narrow page hides the columns that need room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.pages.blocks import Mark, Picture, plain
from abers.pages.figures import sign
from abers.pages.html_text import escape
from abers.pages.html_words import inline, picture

if TYPE_CHECKING:
    from abers.pages.blocks import Cell, Column, TableBlock, TableRow

__all__ = ["table"]

LONG_WORD, LONG_NAME = 12, 24  # characters from which a name may break anywhere, and at spaces
MANY = 6  # columns; a narrow page sets more in smaller type


def table(block: TableBlock) -> str:
    """Return a table with its caption, the scopes of its heads, and the names of its rows."""
    dense = ' class="dense"' if len(block.columns) > MANY else ""
    heads = "".join(_head(column) for column in block.columns)
    rows = "".join(_row(block.columns, row) for row in block.rows)
    return (
        f"<table{dense}><caption>{escape(block.caption)}</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _look(column: Column) -> str:
    """Return the class of a column: its side, and how much room it needs."""
    return f"{column.align} {column.room}"


def _head(column: Column) -> str:
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

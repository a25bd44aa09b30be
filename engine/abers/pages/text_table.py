"""Tables in text: as many columns as the width has room for, else a few lines a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from abers.pages.blocks import Mark, Picture
from abers.pages.ink import Line, Piece, pieces, width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.pages.blocks import Cell, Column, TableBlock, TableRow
    from abers.pages.ink import Ink, Style

__all__ = ["table_lines"]

INDENT = 2  # spaces before the first column
GAP, NARROW = 3, 2  # spaces between two columns, with and without room
LEAST = 16  # columns of a terminal that a column of words keeps when it is made narrower
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
    if widest is None or widths[widest] - over < LEAST:
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

"""Tables with a row for each thing that is compared, for terminals of any width."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich import box
from rich.table import Column, Table
from rich.text import Text

from abers_connectors.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["row_table", "text_cell"]

_LONG = 24  # characters of a name; a longer name is folded
_BETWEEN, _BESIDE = 3, 4  # spaces between two columns, and at both ends of a line


def text_cell(text: str) -> Text:
    """Return a cell or a title in which a [name] is not markup."""
    return Text(printable(text))


def row_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> Table:
    """Return a table of named rows, or a block of lines for each row if it does not fit a width.

    The first column has the names. Headers may take several lines; no word and no number is cut.
    """
    headers = columns
    if _width(headers, rows) > width:
        headers = [_wrapped(*column) for column in zip(columns, *rows, strict=True)]
    if _width(headers, rows) > width:
        return _blocks(title, columns, rows)
    table = Table(title=text_cell(title), box=box.SIMPLE)
    table.add_column(headers[0], overflow="fold")
    for header in headers[1:]:
        table.add_column(header, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(text_cell, row))
    return table


def _wrapped(header: str, *cells: str) -> str:
    """Return a header in lines that are no wider than its cells and its longest word."""
    return textwrap.fill(header, max(map(len, (*header.split(), *cells))))


def _width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return the width of a table in which only a long name is folded."""
    cells = [[*column.split("\n"), *found] for column, *found in zip(columns, *rows, strict=True)]
    name, *others = (max(map(len, one)) for one in cells)
    return min(name, _LONG) + sum(others) + _BETWEEN * len(others) + _BESIDE


def _blocks(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table with a line for each number, below the name of its row."""
    table = Table(
        Column(overflow="fold"),
        Column(justify="right", no_wrap=True),
        title=text_cell(title),
        box=None,
        show_header=False,
        pad_edge=False,
    )
    for name, *cells in rows:
        table.add_row(text_cell(name))
        for column, cell in zip(columns[1:], cells, strict=True):
            if cell:
                table.add_row(text_cell(f" {column}"), text_cell(cell))
    return table

"""Tables with a row for each thing that is compared."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from abers_connectors.terminal import row_table

COLUMNS = ["", "log loss", "Brier score", "ECE, 10 bins", "events / s"]
ROWS = [
    ["raw score", "0.5844", "0.2002", "0.1401", ""],
    ["ivap", "0.5418", "-", "0.0179", "50,031"],
]


def printed(width: int, rows: list[list[str]] = ROWS) -> list[list[str]]:
    """Print a table, and return the words of its lines that have some."""
    file = StringIO()
    Console(file=file, width=width).print(row_table("[a].csv", COLUMNS, rows, width))
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    return [line.split() for line in lines if line.strip()]


def test_a_row_has_a_line() -> None:
    """Where there is room each row is a line, with its name first and the numbers below theirs."""
    title, header, _, raw, ivap = printed(80)
    assert title == ["[a].csv"]
    assert header == ["log", "loss", "Brier", "score", "ECE,", "10", "bins", "events", "/", "s"]
    assert raw == ["raw", "score", "0.5844", "0.2002", "0.1401"]
    assert ivap == ["ivap", "0.5418", "-", "0.0179", "50,031"]


def test_headers_wrap_before_anything_is_cut() -> None:
    """With less room the headers take several lines, and the numbers still are one line a row."""
    assert ["ivap", "0.5418", "-", "0.0179", "50,031"] in printed(50)
    late = [["50 observations late", "0.5844", "0.2002", "0.1401", "1"]]
    assert late[0][0].split() + late[0][1:] in printed(62, late)


@pytest.mark.parametrize("width", [25, 30, 40])
def test_a_narrow_terminal_has_a_line_for_each_number(width: int) -> None:
    """Where a line would be cut, each row is a block of lines, without the numbers it lacks."""
    assert printed(width)[1:] == [
        ["raw", "score"],
        ["log", "loss", "0.5844"],
        ["Brier", "score", "0.2002"],
        ["ECE,", "10", "bins", "0.1401"],
        ["ivap"],
        ["log", "loss", "0.5418"],
        ["Brier", "score", "-"],
        ["ECE,", "10", "bins", "0.0179"],
        ["events", "/", "s", "50,031"],
    ]


def test_a_long_name_is_folded() -> None:
    """A name that alone is wider than the terminal takes several lines, and is complete."""
    found = printed(60, [["x" * 100, "1", "2", "3", "4"]])
    assert sum(line[0].count("x") for line in found) == 100

"""HTML of a report: a body for a notebook, and a page that needs no network.

Every text is escaped. Colours are those of the page around, so both are readable in light and dark.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abers.monitoring import Figure, LabelNeed, Verdict
    from abers.notebook.forecast_rows import Group

__all__ = ["body", "note", "page", "shown"]

_TITLE = "Report on forecasts"

_MOST_ROWS = 200  # of the table of a figure; JSON has all
_STYLE = """
:root { color-scheme: light dark; }
body { max-width: 60rem; margin: 1.5rem auto; padding: 0 1rem; }
body { font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
table { border-collapse: collapse; }
th, td { padding: 0.15rem 0.9rem 0.15rem 0; text-align: left; vertical-align: top; }
"""
# No request is allowed. The scripts are plotly's, inline.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)


def body(  # noqa: PLR0913 - what a report has
    verdict: Verdict,
    numbers: Mapping[str, str],
    *,
    needs: Sequence[LabelNeed],
    notes: Sequence[str],
    verdicts: Mapping[Group, Verdict],
    figures: Sequence[Figure],
    plots: Sequence[str],
) -> str:
    """Return the HTML of the parts of a report; only `plots` are HTML already."""
    head = f"<p><strong>{escape(verdict.sentence)}</strong></p>{_table((), numbers.items())}"
    needed = "".join(note(one) for one in (*(one.sentence for one in needs), *notes))
    rows = [(shown(name), f"{one.labels:,}", one.sentence) for name, one in verdicts.items()]
    groups = _table(("group", "labels", "verdict"), rows) if rows else ""
    return f"<div>{head}{needed}{''.join(plots)}{_tables(figures)}{groups}</div>"


def page(content: str) -> bytes:
    """Return a document with this body."""
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_TITLE}</title><style>{_STYLE}</style>"
    )
    shell = f'<!doctype html><html lang="en"><head>{head}</head><body><h1>{_TITLE}</h1>'
    return f"{shell}{content}</body></html>".encode()


def note(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(text)}</p>"


def shown(name: Group) -> str:
    """Return the name of a model, a segment, or both, in one line."""
    text = name if isinstance(name, str) else ", ".join(name)
    return " ".join(text.split())


def _tables(figures: Sequence[Figure]) -> str:
    """Return the caption of each figure, and its numbers as a table that opens."""
    parts = []
    for one in figures:
        if one.missing:
            parts.append(note(f"{one.title}: drawn after {one.missing:,} more labels."))
        parts.append(note(one.caption))
        parts.append(
            f"<details><summary>{escape(one.title)} in numbers</summary>{_rows(one)}</details>"
        )
    return "".join(parts)


def _rows(figure: Figure) -> str:
    rows = [[_cell(one) for one in row] for row in figure.rows[:_MOST_ROWS]]
    left_out = len(figure.rows) - len(rows)
    more = note(f"{left_out:,} more rows are in .figures.") if left_out else ""
    return _table(figure.columns, rows) + more


def _cell(value: str | float | None) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else ""
    return "" if value is None else f"{value:,}" if isinstance(value, int) else value


def _table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; without names of columns the first cell of a row is its heading."""
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in columns)
    body = "".join(_row([*map(escape, row)], headed=not columns) for row in rows)
    return (
        f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
    )


def _row(cells: Sequence[str], *, headed: bool) -> str:
    first = f'<th scope="row">{cells[0]}</th>' if headed else f"<td>{cells[0]}</td>"
    return f"<tr>{first}{''.join(f'<td>{one}</td>' for one in cells[1:])}</tr>"

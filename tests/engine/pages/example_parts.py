"""Parts of the example documents: rows of tables from lines, and the data of their pictures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abers.pages.blocks import Column, LegendEntry, Mark, Picture, Span, TableBlock, TableRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.pages.blocks import Cell, State, Tone, Words

# Tables of runs over flights, forests and temperatures.
NUMBERS: dict[str, str] = dict(
    re.findall(
        r"\[(\w+)\]\n(.*?)(?:\n\n|\Z)",
        Path(__file__).with_name("example_numbers.txt").read_text("utf-8"),
        flags=re.DOTALL,
    )
)
RAW, CALIBRATED = Span("raw", "raw"), Span("calibrated", "calibrated")
LEGEND = (
    LegendEntry("came", "came, with its 95 % range"),
    LegendEntry("raw", (RAW, " promised")),
    LegendEntry("calibrated", (CALIBRATED, " promised")),
    LegendEntry("alarm", "alarm"),
)
STATES: dict[str, State] = {
    "right": "yes",
    "quiet": "yes",
    "too high": "no",
    "too low": "no",
    "too wide": "no",
    "on since 7 Jan": "no",
    "leans high": "partly",
    "leans low": "partly",
    "leans wide": "partly",
    "undecided": "undecided",
    "no fault found": "undecided",
    "too few": "waiting",
}


def mark(words: str, *, keep: bool = False) -> Mark | str:
    """Return the mark of a row's status, which may be followed by a note."""
    for word, state in STATES.items():
        if words.startswith(word):
            return Mark(state, word, words.removeprefix(word).strip(), keep)
    return words


def number(text: str) -> float:
    """Return the number that a text begins with."""
    found = re.match(r"[+−-]?[\d.]+", text)
    assert found is not None, text
    return float(found[0].replace("−", "-"))


def gap(label: str, which: str, limit: float = 25.0) -> Picture:
    """Return the bar of a gap, from its own label."""
    found = [number(one) for one in re.findall(r"[+−][\d.]+", label)]
    middle, low, high, *tolerance = found
    data = {"gap": middle, "low": low, "high": high, "tolerance": tuple(tolerance)}
    return Picture("gap", {"which": which, "limit": limit, "missing": 0, **data}, label)


def spark(
    values: Sequence[float | None], which: str, label: str, caption: str, **more: object
) -> Picture:
    """Return a line over time; `now` is its last tenth."""
    x = [float(row) for row in range(len(values))]
    data: dict[str, Any] = {"which": which, "x": x, "y": [*values], "alarms": [], "missing": 0}
    data |= {"tolerance": (-2.7, 3.1), "now": 0.9 * len(values), **more}
    return Picture("spark", data, label, caption=caption)


GROUPS = (
    Column(head="group", align="left"),
    Column(head="cases", room="some"),
    Column(head="promised", unit="%"),
    Column(head="came", unit="%"),
    Column(head="gap", unit="points"),
    Column(head="range"),
    Column(head="too high ← gap → too low", align="centre", room="much"),
    Column(head="so", align="left"),
)


def groups(key: str, title: Words, which: str, caption: str, lines: str) -> TableBlock:
    """Return the table of groups, whose first three rows are the main ones."""
    rows = []
    for place, line in enumerate(lines.strip().splitlines()):
        name, cases, promised, came, gap_, range_, tolerance, status = map(
            str.strip, line.split("|")
        )
        label = f"gap {gap_} points, range {range_}; tolerance {tolerance}"
        cells: tuple[Cell, ...] = (name, cases, promised, came, gap_, range_)
        cells = (*cells, gap(label, which), mark(status))
        rows.append(TableRow(cells, main=place < 3, separated=place == 3))
    record = {"cases": [int(str(row.cells[1]).replace(",", "")) for row in rows]}
    return TableBlock(
        key=key,
        columns=GROUPS,
        rows=tuple(rows),
        caption=caption,
        title=title,
        detail="more",
        record=record,
    )


def name(text: str) -> Cell:
    """Return the name of a row, in which the words for the two probabilities have their colours."""
    parts = re.split(r"\b(raw|calibrated)\b", text)
    spans = {"raw": RAW, "calibrated": CALIBRATED}
    return tuple(spans.get(part, part) for part in parts if part)


def simple(
    key: str,
    columns: Sequence[Column],
    lines: str,
    caption: str,
    *,
    keep: bool = True,
    **more: Any,  # noqa: ANN401 - fields of the block
) -> TableBlock:
    """Return a table whose cells are texts, or marks where they have a status."""
    rows = []
    for line in lines.strip().splitlines():
        first, *others = (cell.strip() for cell in line.split("|"))
        rows.append(TableRow((name(first), *(mark(cell, keep=keep) for cell in others))))
    return TableBlock(key=key, columns=tuple(columns), rows=tuple(rows), caption=caption, **more)


def over_time(windows: str, alarms: Sequence[float] = ()) -> dict[str, Any]:
    """Return the data of a figure over time: labels, came with its range, raw, calibrated."""
    columns: list[list[float]] = [[], [], [], [], [], []]
    for line in windows.strip().splitlines():
        for column, cell in zip(columns, line.replace(",", "").split(), strict=True):
            column.append(float(cell))
    labels, *shares = columns
    came, low, high, raw, calibrated = ([value / 100 for value in one] for one in shares)
    first, day = 1_357_000_000_000.0, 86_400_000.0
    x = [first + 13 * day * place for place in range(len(labels))]
    return {
        "x": x,
        "zone": "America/New_York",
        "ends": (first, first + 334 * day),
        "labels": [int(one) for one in labels],
        "came": came,
        "low": low,
        "high": high,
        "raw": raw,
        "calibrated": calibrated,
        "alarms": [first + day * one for one in alarms],
        "now": x[-3],
        "reference": None,
        "open": False,
        "missing": 0,
    }


def reliability(which: str, table: TableBlock, tenths: list[int]) -> Picture:
    """Return the diagram of a table of groups, without its main rows."""
    rows = [[str(cell) for cell in row.cells[:6]] for row in table.rows[3:]]
    promised = [float(row[2]) / 100 for row in rows]
    came = [float(row[3]) / 100 for row in rows]
    ranges = [[number(one) / 100 for one in row[5].split(" to ")] for row in rows]
    data = {
        "which": which,
        "names": [row[0] for row in rows],
        "promised": promised,
        "came": came,
        "low": [max(0.0, p + low) for p, (low, _) in zip(promised, ranges, strict=True)],
        "high": [min(1.0, p + high) for p, (_, high) in zip(promised, ranges, strict=True)],
        "cases": [int(row[1].replace(",", "")) for row in rows],
        "tolerance": 1.25,
        "isotonic_x": promised,
        "isotonic_y": sorted(came),
        "tenths": tenths,
        "missing": 0,
    }
    label = f"{which}: share that came against promised probability; the table has the numbers"
    tone: Tone = "raw" if which == "raw" else "calibrated"
    return Picture("reliability", data, label, title=(Span(which.capitalize(), tone),))

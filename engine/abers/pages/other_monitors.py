"""What monitors of their own say: their numbers, and the tables of their figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from abers.monitoring import MixtureMonitor
from abers.monitoring.answers import formats
from abers.pages.blocks import Column, FoldBlock, TableBlock, TableRow

if TYPE_CHECKING:
    from abers.monitoring import Figure, Monitor, Number, TaskMonitor
    from abers.pages.blocks import Block

__all__ = ["other_folds"]

_DIGITS = 4


def other_folds(monitor: TaskMonitor, prefix: str = "") -> tuple[FoldBlock, ...]:
    """Return a fold for each monitor of its own with labels; methods have their own fold."""
    others = [one for one in monitor.others if not isinstance(one, MixtureMonitor)]
    return tuple(_fold(one, prefix) for one in others if monitor.count and _shown(one))


def _shown(monitor: Monitor) -> list[Number]:
    return [one for one in monitor.summary() if one.measure.label and not one.labels]


def _fold(monitor: Monitor, prefix: str) -> FoldBlock:
    figures, numbers = monitor.figures(), _shown(monitor)
    key = f"{prefix}{monitor.name}"
    blocks: list[Block] = [_figure(one, key, first=one is figures[0]) for one in figures]
    return FoldBlock(
        key=key,
        title=figures[0].title if figures else numbers[0].measure.label.capitalize(),
        summary=figures[0].caption if figures else "",
        blocks=(_numbers(numbers, key), *blocks),
        record={one.name: one.value if math.isfinite(one.value) else None for one in numbers},
    )


def _numbers(numbers: list[Number], key: str) -> TableBlock:
    return TableBlock(
        key=f"{key}-numbers",
        caption="Numbers of the monitor",
        columns=(
            Column(head="number", align="left"),
            Column(head="what it means", align="left", room="much"),
            Column(head="value"),
        ),
        rows=tuple(
            TableRow((one.measure.label, one.measure.help, _cell(one.value))) for one in numbers
        ),
        detail="more",
    )


def _figure(figure: Figure, key: str, *, first: bool) -> TableBlock:
    """Return the table of a figure; the fold has title and caption of the first."""
    return TableBlock(
        key=f"{key}-{figure.id}",
        title="" if first else figure.title,
        caption=figure.title,
        columns=tuple(
            Column(head=name, align="right" if place else "left")
            for place, name in enumerate(figure.columns)
        ),
        rows=tuple(TableRow(tuple(map(_cell, row))) for row in figure.rows),
        note="" if first else figure.caption,
        detail="more",
    )


def _cell(value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int):
        return formats.count(value)
    return formats.significant(value, _DIGITS) if math.isfinite(value) else ""

"""What `abers check` prints: the parts of a configuration, and a table of a sample."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

from abers.monitoring.answers import formats
from abers.monitoring.event_time import is_date
from abers.pages.blocks import Column, TableBlock, TableRow
from abers.pages.ink import UNBROKEN, Piece, joined, width_of
from abers.pages.model_findings import city
from abers.pages.text_table import table_lines
from abers.stream import Observation
from abers_connectors.config.description import other_values, usual_keys
from abers_connectors.config.units import counted
from abers_connectors.config.value_types import shown
from abers_connectors.config.written_values import written_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from abers.pages.ink import Ink
    from abers_connectors.cli.config_check import ConfigReport, Sample, SampleRow
    from abers_connectors.config.model import Config
    from abers_connectors.config.phrases import Line

__all__ = ["report_lines", "sample_lines"]

_INDENT, _WITHIN = "  ", 2  # before a part, and before its further lines
_BETWEEN = 2  # spaces behind the longest name of a part
_SECOND, _MINUTE = 1000, 60_000  # milliseconds


def report_lines(report: ConfigReport, path: str, ink: Ink, *, everything: bool) -> Iterator[str]:
    """Yield what a configuration means. What differs from the defaults is not grey."""
    meaning, usual = report.meaning, usual_keys(report.config)
    yield ink.painted([Piece(ink.sign("yes"), "yes"), Piece(f" {ink.clean(path)} is valid")])
    yield ""
    column = len(_INDENT) + max(map(width_of, (*meaning, "Limits"))) + _BETWEEN
    for name, lines in meaning.items():
        for number, line in enumerate(lines):
            yield from _hung(ink, "" if number else name, _inked(line, usual), column, number)
    rest = _others(report.config, meaning, path, everything=everything)
    for number, (words, within) in enumerate(rest):
        yield from _hung(ink, "" if number else "Limits", words, column, within)


def _hung(ink: Ink, name: str, words: Iterable[Piece], column: int, number: int) -> Iterator[str]:
    """Yield a line behind the name of its part, broken at a width; the next ones are indented."""
    within = column + _WITHIN * (number > 0)
    yield from ink.hung([Piece(f"{_INDENT}{name}", "strong")], words, within)


def _inked(line: Line, usual: frozenset[str]) -> list[Piece]:
    of_phrases = (
        [Piece(_whole(one.text) if "\u00b7" in line.between else one.text, _style(one.keys, usual))]
        for one in line.phrases
    )
    return joined(of_phrases, line.between)


def _whole(text: str) -> str:
    """Return words that no line breaks."""
    return text.replace(" ", UNBROKEN)


def _style(keys: Iterable[str], usual: frozenset[str]) -> Any:  # noqa: ANN401 - a style
    return "soft" if usual.issuperset(keys) else ""


def _others(
    config: Config, meaning: Mapping[str, list[Line]], path: str, *, everything: bool
) -> Iterator[tuple[list[Piece], int]]:
    """Yield the options that no part is about, and whether a line belongs to the one above.

    Options that have their default are counted, unless all are asked for.
    """
    usual, hidden = usual_keys(config), 0
    for option, value in other_values(config, meaning):
        if option.key in usual and not everything:
            hidden += 1
            continue
        written = " (not set)" if value is None else f" = {written_value(option, value)}"
        yield [Piece(_whole(f"{option.key}{written}"), _style([option.key], usual))], 0
        if everything:
            yield [Piece(option.sentence, "soft")], 1
    if hidden:
        command = Piece(_whole(f"abers check {path} --all"), "soft")
        yield [Piece(f"{hidden} more, all default: ", "soft"), command], 0


def sample_lines(sample: Sample, name: str, config: Config, ink: Ink) -> Iterator[str]:
    """Yield a table of the first events, and how many records were read."""
    if not sample.records:
        if sample.mistake is None:
            yield f"{_INDENT}{ink.clean(name)} has no record"
        return
    cells = {head: [*map(of, sample.rows)] for head, of in _columns(sample, config).items()}
    filled = {head: column for head, column in cells.items() if any(column)}
    columns = tuple(starmap(_column, filled.items()))
    rows = tuple(TableRow(row) for row in zip(*filled.values(), strict=True))
    if rows:
        table = TableBlock(key="sample", columns=columns, rows=rows, caption="records as read")
        yield from table_lines(table, ink)
    more = sample.records - len(rows)
    if sample.mistake is None:
        yield f"{_INDENT}{counted(more, 'more record') if more else 'all'} read, none unreadable"


def _column(head: str, cells: list[str]) -> Column:
    numeric = all(one.replace(".", "", 1).replace("-", "", 1).isdecimal() for one in cells if one)
    return Column(head=head, align="right" if numeric else "left")


def _columns(sample: Sample, config: Config) -> dict[str, Callable[[SampleRow], str]]:
    zone = config.input.timezone or "UTC"
    times = [time for row in sample.rows for time in (row.event.time, row.known_at) if time]
    step = next((one for one in (_MINUTE, _SECOND) if all(time % one == 0 for time in times)), 1)
    probable = config.settings().scores == "probability"
    return {
        "row": lambda row: row.where,
        "id": lambda row: row.event.id,
        "model": lambda row: row.event.model,
        "segment": lambda row: getattr(row.event, "segment", None) or "",
        f"time ({city(zone)})": lambda row: _moment(row.event.time, zone, step),
        "raw": lambda row: _score(getattr(row.event, "score", None), probable=probable),
        "features": lambda row: _of_observation(row, "x"),
        "label": _label,
        "known at": lambda row: "" if row.known_at is None else _moment(row.known_at, zone, step),
        "passed through": lambda row: _of_observation(row, "extra"),
    }


def _moment(time: int, zone: str, step: int) -> str:
    """Return a time in a zone, with seconds where some time has them."""
    found = formats.moment(time, zone)
    if step < _MINUTE and is_date(time):
        found += f":{time // _SECOND % 60:02}"
        found += f".{time % _SECOND:03}" if step < _SECOND else ""
    return found


def _score(score: Any, *, probable: bool) -> str:  # noqa: ANN401 - a number, or several
    if score is None:
        return ""
    if isinstance(score, dict):
        return " ".join(f"{name}={_score(one, probable=probable)}" for name, one in score.items())
    if isinstance(score, int | float):
        return f"{score:.3f}" if probable else f"{score:.6g}"
    return " ".join(_score(one, probable=probable) for one in score)


def _label(row: SampleRow) -> str:
    return "" if row.value is None else str(row.value)


def _of_observation(row: SampleRow, name: str) -> str:
    value = getattr(row.event, name, None) if isinstance(row.event, Observation) else None
    return "" if value is None else shown(value)

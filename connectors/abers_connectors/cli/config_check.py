"""The report of `abers check`: what a configuration means, and how a sample is read.

Everything that would stop a run before its first record is reported at once. Nothing is written.
"""

from __future__ import annotations

import os
from itertools import islice, starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import ConfigError, ParameterError, RecordError
from abers.monitoring import formats
from abers.monitoring.formats import is_date
from abers.pages.blocks import Column, TableBlock, TableRow
from abers.pages.model_findings import city
from abers.pages.text import UNBROKEN, Piece, joined, table_lines, width_of
from abers.stream import Label, Observation, Processor
from abers.stream.option import written
from abers_connectors.config.description import described, other_values, usual_keys
from abers_connectors.config.model import load
from abers_connectors.config.values import counted, written_value
from abers_connectors.http.credentials import TOKEN, is_local
from abers_connectors.preflight import run_problems
from abers_connectors.replay.job import first_batch, inputs_of, open_input, unreadable
from abers_connectors.schemas.registry import SchemaRegistry
from abers_connectors.secret import is_exposed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from abers.pages.text import Ink
    from abers.stream import DeadLetter, Event
    from abers.stream.settings import Settings
    from abers_connectors.config.description import Line
    from abers_connectors.config.model import Config
    from abers_connectors.sources.base import Batch, Origin, Source

__all__ = ["ConfigReport", "Sample", "check", "report_lines", "sample_lines", "sampled"]

_MAX_SHOWN_RECORDS = 10
_READ = 10_000  # records to read at most; a sample may be years of history
_SECRETS = ("_file", "keyfile")  # ends of keys that name files with secrets
_LONG = 200  # characters of a record


class SampleRow(NamedTuple):
    """An event, as a processor reads it."""

    where: str  # in its source
    event: Event
    label: object = None  # its own, if the record of an observation has one
    known_at: int | None = None  # event time at which that label is known

    @property
    def value(self) -> object:
        """The label, of the event or with it; None where it is not known yet."""
        return self.event.value if isinstance(self.event, Label) else self.label


class Sample(NamedTuple):
    """Some records, as a processor reads them."""

    rows: list[SampleRow]  # the first valid records
    records: int  # number of records that were read
    mistake: str | None  # the first invalid record, and why it is invalid


class ConfigReport(NamedTuple):
    """The result of checking a configuration without mistakes."""

    config: Config
    sample: Sample | None
    findings: list[str] | None = None  # warnings about the topics, if a broker was asked
    warnings: Sequence[str] = ()  # about settings that are allowed but may be mistakes

    @property
    def meaning(self) -> dict[str, list[Line]]:
        """Lines on each part of the configuration."""
        return described(self.config)


def check(
    path: str,
    *,
    sample: str | None = None,
    connect: bool = False,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> ConfigReport:
    """Check a configuration, the files or topics that it names, and a sample of records.

    The sample is a file or topic that is read like the first input, or like the second if it is the
    second. With `connect` the brokers are asked about the topics, and the schema registry for an
    answer. Anything that would stop a run
    before its first record is a ConfigError.
    """
    config = load(path, flags=flags, environ=environ)
    found = [f"{path}: {line}" for line in run_problems(config, environ, path)]
    if sample is not None and config.kafka is None and (problem := unreadable(sample)):
        found.append(f"sample: {problem}")
    if found:
        raise ConfigError(found)
    findings = _asked(path, config, environ) if connect else None
    warned = [*_exposed(config, environ), *([] if sample else _bad_records(config, path))]
    warnings = [f"{path}: {line}" for line in warned]
    if sample is None:
        return ConfigReport(config, None, findings, warnings)
    some = sampled(_sample_source(config, sample, environ), config.settings())
    return ConfigReport(config, some, findings, warnings)


def _exposed(config: Config, environ: Mapping[str, str]) -> Iterator[str]:
    """Warn of secrets that others can read, and of a live page that they can open."""
    for key, file in config.values().items():
        if key.endswith(_SECRETS) and file is not None and is_exposed(file):
            yield f"{key}: every user of this machine can read {file}; run: chmod o-r {file}"
    http = config.http
    protected = TOKEN in environ or http.token_file is not None
    if config.kafka is None or not http.enabled or protected or is_local(http.host):
        return
    yield (
        f"http.host: other machines can reach {http.host}, and the live page has no token; set "
        f"{TOKEN} in the environment, or write {written('127.0.0.1')}"
    )


def _bad_records(config: Config, path: str) -> Iterator[str]:
    """Warn of files with a bad record among the first ones; raise for one that cannot be read."""
    for key, file in inputs_of(config):
        try:
            first = first_batch(config, file)
        except RecordError as error:
            raise ConfigError([f"{path}: {key}: {error}"]) from None
        if first is not None and (mistake := _first_mistake(first, {})):
            yield f"{key}: {mistake}"


def _sample_source(config: Config, sample: str, environ: Mapping[str, str]) -> Source:
    if config.kafka is None:
        return open_input(config, sample)
    from abers_connectors.kafka.topic_history import TopicSample  # noqa: PLC0415 - only with topics

    return TopicSample(config, sample, environ)


def _asked(path: str, config: Config, environ: Mapping[str, str]) -> list[str]:
    from abers_connectors.kafka import topic_checks  # noqa: PLC0415 - only to ask brokers
    from abers_connectors.kafka.generations import generation_in_use  # noqa: PLC0415

    if (registry := config.schema_registry) is not None:
        SchemaRegistry(registry, environ).require()
    found = topic_checks.check(generation_in_use(config, environ).config, environ)
    lines = [f"{path}: {one}" for one in found]
    if any(one.fatal for one in found):
        raise ConfigError(lines)
    return lines


def sampled(source: Source, settings: Settings) -> Sample:
    """Read some records, at most 10,000, and process them."""
    rows: list[SampleRow] = []
    records, mistake = 0, None
    processor = Processor(settings, outcomes=False, front="toml")
    try:
        for batch in source.batches():
            dead = _dead(batch, processor)
            right = (row for row in range(len(batch.events)) if row not in dead)
            more = islice(right, _MAX_SHOWN_RECORDS - len(rows))
            rows += [_row(source, batch, row) for row in more]
            records += batch.records
            mistake = mistake or _first_mistake(batch, dead)
            if records >= _READ or (mistake and len(rows) == _MAX_SHOWN_RECORDS):
                break
    except (RecordError, ParameterError) as error:
        mistake = mistake or str(error)
    return Sample(rows, records, mistake)


def _dead(batch: Batch, processor: Processor) -> dict[int, DeadLetter]:
    """Process a batch and return its dead letters by row."""
    dead = processor.process_batch(batch.events).dead_letters if batch.events else ()
    return {one.row: one for _, one in dead if one.row is not None}


def _first_mistake(batch: Batch, dead: Mapping[int, DeadLetter]) -> str | None:
    bad, row = batch.bad[0] if batch.bad else None, min(dead, default=None)
    # A bad record stands before the event of the same row.
    if bad is not None and (row is None or bad.row <= row):
        return _mistake(bad.origin, bad.reason, bad.detail)
    if row is not None:
        return _mistake(batch.origin(row), dead[row].reason, dead[row].detail)
    return None


def _mistake(origin: Origin, reason: str, detail: str) -> str:
    raw = origin.raw if len(origin.raw) <= _LONG else f"{origin.raw[:_LONG]}…"
    return f"{origin.where}: {reason}: {detail}; the record is {raw!r}"


def _row(source: Source, batch: Batch, row: int) -> SampleRow:
    where = batch.origin(row).where.removeprefix(source.name).strip()
    label, due = (
        None if column is None else column[row]
        for column in (batch.events.awaited, batch.events.awaited_times)
    )
    known_at = None if label is None or due is None else int(due)
    return SampleRow(where, batch.events[row], label, known_at)


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
    return "" if value is None else written(value)

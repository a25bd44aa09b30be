"""Terminal output of a run: the progress bar, the answers, the tables, and commands to try next.

Answers and tables go to standard output, everything else to standard error. Colour and motion
appear only on a terminal.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from abers.monitoring import measure
from abers.pages.method_blocks import methods_of
from abers.pages.text import Ink, text
from abers.stream.option import named
from abers.stream.settings import setting_options
from abers_connectors.config.values import Lateness, counted
from abers_connectors.dashboard.replay_document import FOLDS, replay_document
from abers_connectors.errors import printable
from abers_connectors.replay.summary import NOT_DUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.progress import Progress

    from abers.pages.blocks import Detail, Document
    from abers.stream.option import Front
    from abers_connectors.dashboard.replay_document import FinishedReplay
    from abers_connectors.replay.run import WorkerNumbers
    from abers_connectors.replay.summary import Means, Summary

__all__ = [
    "console",
    "ink",
    "left_out",
    "logged",
    "number",
    "row_table",
    "say",
    "score_labels",
    "show_delays",
    "show_document",
    "show_finished",
    "show_input",
    "show_next",
    "show_notes",
    "show_outputs",
    "show_read",
    "show_report",
    "text_cell",
    "trusted",
    "watching",
]

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


_LARGE = 100.0
_PLAIN = 0.001, 1e9  # outside, four decimals are too few or too many


def score_labels(names: Iterable[str], *, briefly: bool = False) -> dict[str, str]:
    """Return the text of each score that is shown, in the same order.

    Briefly, interval widths are left out, and a pinball loss next to a CRPS.

    Examples
    --------
    >>> score_labels(["brier", "brier_infinite", "coverage_90"])
    {'brier': 'Brier score', 'coverage_90': 'coverage of the 90 % interval'}
    """
    found = {}
    for name in names:
        one = measure(name)
        if one is None or (briefly and name == "pinball" and "crps" in found):
            continue
        words = one.label if not briefly or one.brief is None else one.brief
        if words:
            found[name] = words
    return found


def score_cell(means: Means | None, name: str, labels: int) -> str:
    """Return the text of a cell: a mean score of one view, over a number of labels.

    It is a dash if the view is not scored, and empty if the view does not have this score.

    Examples
    --------
    >>> score_cell({"log_loss": None, "log_loss_infinite": 3}, "log_loss", 50)
    'inf (3 of 50)'
    """
    if means is None:
        return "-"
    if name not in means:
        return ""
    infinite, one = means.get(f"{name}_infinite"), measure(name)
    if infinite and one is not None and not one.finite:
        return f"inf ({infinite:,.0f} of {labels:,})"
    return number(means[name])


def left_out(means: Means, labels: int) -> list[str]:
    """Return a sentence for each calibrated mean that leaves out predictions of infinite loss.

    Examples
    --------
    >>> print(*left_out({"crps": 0.25, "crps_infinite": 3}, 50))
    3 of 50 predictions had an infinite CRPS; they are not in its mean.
    """
    known = ((measure(name), means.get(f"{name}_infinite")) for name in means)
    return [
        f"{infinite:,.0f} of {labels:,} predictions had an infinite {one.label}; they are not in "
        "its mean."
        for one, infinite in known
        if one is not None and one.finite and infinite
    ]


def trusted(experts: Mapping[str, Mapping[str, float | None]]) -> str:
    """Return which method has most weight; empty without any weight.

    Examples
    --------
    >>> trusted({"raw": {"weight": 0.2, "loss": 70.0}, "jumper": {"weight": 0.8, "loss": 60.0}})
    'mostly the method “switching” (80 %)'
    """
    weights = {name: one["weight"] for name, one in experts.items() if one["weight"]}
    if not weights:
        return ""
    most = max(weights, key=lambda name: weights[name] or 0.0)
    method = methods_of(experts)[most].name
    return f"mostly the method “{method}” ({weights[most]:.0%})".replace("%)", " %)")


def number(value: float | None) -> str:
    """Return the text of a count, or of a mean, with fewer decimals if large; a dash if None.

    Examples
    --------
    >>> number(0.25), number(1250.0), number(2.5e-10), number(1250), number(None)
    ('0.2500', '1,250.00', '2.500e-10', '1,250', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    if value and not _PLAIN[0] <= abs(value) < _PLAIN[1]:
        return f"{value:.3e}"
    return f"{value:.4f}" if abs(value) < _LARGE else f"{value:,.2f}"


_WIDEST = 100  # columns of a line
_MINUTE = 60.0  # seconds between two lines of progress in a log
_ALL = 1_000_000  # models in a table
_SHORT = 2  # scores in a narrow table
_WORST = 5  # models in a table
_REST = {
    "early_labels": "arrived before their observation",
    "duplicate_observations": "of a known id, ignored",
    "duplicate_labels": "of a labelled id, ignored",
    "late_labels": "arrived after their observation had expired, ignored",
    "late_events": "behind by more than {allowed_lateness}, still used",
    "ahead_events": "ahead by more than {max_jump}, still used",
    "assumed": "labels that did not come, taken as {unlabelled}",
    "expired": "observations without a label",
    "evicted": "oldest observations, removed beyond {max_pending} or {max_bytes}",
    "evicted_labels": "oldest early labels, removed beyond {max_early} or {max_bytes}",
    "forgotten": "finished ids beyond {dedup_max_ids} or {max_bytes}",
    "retired": "models silent for {retire_after}, removed with their pending events",
}
"""Counters to print, with what they count; names are those of settings."""


class Watched(Protocol):
    """An input with progress, such as a `Source`."""

    @property
    def name(self) -> str:
        """The name for messages."""
        ...

    def fraction(self) -> float | None:
        """Return the part that has been read, from 0 to 1, or None if it is unknown."""
        ...


class _RaisingConsole(Console):
    def on_broken_pipe(self) -> None:
        """Raise, so that the command decides what a closed pipe means."""
        raise BrokenPipeError


def console(*, stderr: bool = True) -> Console:
    """Return a console for standard error, or else for standard output."""
    return _RaisingConsole(stderr=stderr, highlight=False)


def ink(*, stderr: bool = True) -> Ink:
    """Return how text is written to standard error, or else to standard output."""
    screen = console(stderr=stderr)
    colour = screen.color_system is not None and not screen.no_color
    unicode = screen.encoding.startswith("utf")
    return Ink(min(screen.width, _WIDEST), colour=colour, unicode=unicode)


def say(message: str) -> None:
    """Print a sentence without wrapping it."""
    console().print(printable(message), markup=False, soft_wrap=True)


def say_wrapped(message: str) -> None:
    """Print a sentence, on a terminal within its width."""
    screen = console()
    width = min(screen.width, _WIDEST)
    screen.print(printable(message), markup=False, soft_wrap=not screen.is_terminal, width=width)


def say_all(messages: Iterable[str]) -> None:
    """Print sentences, each from a new line on."""
    for message in messages:
        say_wrapped(message)


@contextmanager
def watching(
    source: Watched, *, hidden: bool
) -> Iterator[Callable[[Iterable[int]], Iterator[int]]]:
    """Show the progress of a run inside a `with` block: a bar, or in a log a line each minute.

    The bar is hidden if an output goes to standard output, perhaps to the same terminal. The
    function that is yielded passes on the record counts of a run, and moves the bar.
    """
    screen = console()
    if not screen.is_terminal:
        yield partial(logged, source)
        return
    if hidden:
        yield iter
        return
    with _progress(screen) as progress:
        name = printable(Path(source.name).name)
        task = progress.add_task(name, total=None, count=0, visible=False)
        started = monotonic()

        def watched(counts: Iterable[int]) -> Iterator[int]:
            for count in counts:
                fraction = source.fraction()
                total = None if fraction is None else 1.0
                visible = monotonic() - started >= 1.0
                progress.update(
                    task, completed=fraction or 0.0, total=total, count=count, visible=visible
                )
                yield count

        yield watched


def logged(
    source: Watched, counts: Iterable[int], clock: Callable[[], float] = monotonic
) -> Iterator[int]:
    """Pass on the record counts of a run, and print one each minute."""
    due = clock() + _MINUTE
    for count in counts:
        if clock() >= due:
            due += _MINUTE
            share = source.fraction()
            of = "" if share is None else f", {share:.0%}".replace("%", " %")
            say(f"{source.name}: {counted(count, 'row')}{of}")
        yield count


def _progress(screen: Console) -> Progress:
    """Return a progress bar, which is imported only for a terminal: it takes long."""
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(complete_style="blue", finished_style="blue"),
        TaskProgressColumn("[default]{task.percentage:.0f} %"),
        TextColumn("{task.fields[count]:,} rows", markup=False),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=screen, transient=True)


def show_read(summary: Summary, title: str, delay: Lateness | None = None) -> None:
    """Print what was read of an input, with the delay of its labels."""
    late = "" if delay is None or delay == Lateness() else f", labels {delay}"
    say(
        f"{title}{late}: {counted(summary.observations, 'prediction')}, "
        f"{counted(summary.labels, 'label')}, "
        f"{summary.events_per_second:,.0f} events a second"
    )


def show_input(
    summary: Summary,
    title: str,
    delay: Lateness | None,
    columns: str | None,
    notes: Iterable[str] = (),
) -> None:
    """Print the size of an input, which column is what, and what is assumed of it."""
    late = "" if delay is None or delay == Lateness() else f"; labels {delay}"
    if columns is not None:
        say_wrapped(f"{title}: {counted(summary.observations, 'observation')}. {columns}{late}")
    for note in notes:
        say_wrapped(note)


def show_document(document: Document, detail: Detail = "usual", *, stderr: bool = False) -> None:
    """Print the answers and what is behind them, to standard output unless an output goes there."""
    screen = console(stderr=stderr)
    colour = screen.color_system is not None and not screen.no_color
    unicode = screen.encoding.startswith("utf")
    screen.file.write(text(document, screen.width, colour=colour, unicode=unicode, detail=detail))
    screen.file.flush()


def show_finished(
    run: FinishedReplay,
    outputs: Mapping[str, str],
    detail: Detail = "usual",
    columns: str | None = None,
    notes: Iterable[str] = (),
) -> None:
    """Print the answers of a replay, and unless they are all that is wanted what else it says.

    With more detail all models are in the table, and the worst are shown like a model alone.
    """
    brief = detail == "answers"
    if not brief:
        if columns is None:
            show_read(run.summary, run.title, run.delay)
        show_input(run.summary, run.title, run.delay, columns, notes)
        say("")
    folds, most = (FOLDS, _ALL) if detail == "more" else (0, _WORST)
    found = replay_document(run, folds=folds, most=most)
    show_document(found, detail, stderr="-" in outputs.values())
    if not brief:
        say("")
        show_notes(run.summary, run.delay)
        show_workers(run.summary.workers)
        show_outputs(run.summary, outputs, run.processors[0].front)


def show_notes(summary: Summary, delay: Lateness | None = None) -> None:
    """Print what a reader should know of the input: doubts of its columns, and losses."""
    say_all(summary.notes)
    say_all(summary.losses)
    say_all(left_out(summary.calibrated or {}, summary.labels))
    say_all(_why_unscored(summary, delay))


def _why_unscored(summary: Summary, delay: Lateness | None) -> Iterator[str]:
    """Yield why no prediction was scored, in one note, unless the notes on the input say it."""
    if summary.unlabelled == summary.records > 0 or NOT_DUE in summary.notes:
        return
    if delay is None:
        if summary.observations and not summary.counters.get("labels_in"):
            yield "No label has arrived; if each record has its own, set input.delay."
    elif not summary.observations:
        yield "No observation fits --model, --since and --until."
    elif summary.observations <= (delay.observations or 0):
        yield "The stream ended before the first label came: try a smaller --delay."
    elif not summary.counters.get("labels_in"):
        yield "No label has arrived: see that the column of labels is the right one."


def show_comparison(found: Mapping[str, Summary], title: str) -> None:
    """Print the table of a comparison, with a row for each calibrator, to standard output."""
    first = next(iter(found.values()))
    names = score_labels(first.calibrated or {}, briefly=True)

    def scores(means: Means | None) -> list[str]:
        return [score_cell(means, name, first.labels) for name in names]

    screen = console(stderr=False)
    rows = [] if first.raw is None else [["raw", *scores(first.raw), "", ""]]
    for name, one in found.items():
        width = number(one.mean_width)
        rows.append([name, *scores(one.calibrated), width, _calibrated(one, screen)])
    columns = ["", *names.values(), "interval width", "calibrated"]
    _show_rows(title, columns, rows, screen)
    say(f"{first.observations:,} predictions and {first.labels:,} labels for each.")
    say_all(first.notes)
    for name, one in found.items():
        if sentence := trusted(one.experts):
            say(f"{name}: {sentence}")


def _calibrated(summary: Summary, screen: Console) -> str:
    """Return sign and word of the answer about what is served; or empty."""
    answers = [] if summary.answers is None else summary.answers["answers"]
    states = [one["state"] for one in answers if one["question"] == "calibrated"]
    ink = Ink(screen.width, colour=False, unicode=screen.encoding.startswith("utf"))
    return "".join(f"{ink.sign(state)} {state}" for state in states)


def show_delays(found: Mapping[Lateness, Summary], title: str) -> None:
    """Print the table of a replay at several delays, to standard output."""
    first = next(iter(found.values()))
    names = [*score_labels(first.calibrated or {}, briefly=True).items()][:_SHORT]
    views = ["calibrated"] if first.raw is None else ["raw", "calibrated"]
    columns = ["labels", *(f"{text} {view}" for _, text in names for view in views)]
    rows = []
    for delay, one in found.items():
        shown = [one.calibrated] if first.raw is None else [one.raw, one.calibrated]
        cells = [score_cell(means, name, one.labels) for name, _ in names for means in shown]
        rows.append([str(delay), *cells])
    _show_rows(title, columns, rows, console(stderr=False))
    say_all(first.notes)


def show_workers(workers: Sequence[WorkerNumbers]) -> None:
    """Print what each worker did, if there were several."""
    for row, one in enumerate(workers, 1):
        again = f", begun again {counted(one.restarts, 'time')}" if one.restarts else ""
        say(
            f"Worker {row}: {counted(one.models, 'model')}, {counted(one.events, 'event')}, "
            f"{one.processor_seconds:.1f} s of processor time{again}."
        )
    if workers and sum(one.models for one in workers) < len(workers):
        say("There are fewer models than workers, and a model is the work of one.")


def _show_rows(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], screen: Console
) -> None:
    screen.print(row_table(title, columns, rows, screen.width))


def show_outputs(summary: Summary, outputs: Mapping[str, str], front: Front) -> None:
    """Print the path of each output, and the counters of events that are not in the table."""
    for name, path in outputs.items():
        if name == "dead_letters":
            _show_dead(summary.dead_letters, path)
        elif path == "-":
            say(f"The {name} went to standard output.")
        else:
            say(f"The {name} are in {path}.")
    rest = {name: count for name, count in summary.counters.items() if name in _REST}
    if rest.get("expired", 0) <= summary.unlabelled:  # a note counts these
        rest.pop("expired", None)
    options = {name: named(one, front) for name, one in setting_options().items()}
    for name, count in rest.items():
        say(f"{name.replace('_', ' ')}: {count:,} ({_REST[name].format(**options)})")


def _show_dead(dead: Mapping[str, int], path: str) -> None:
    if not dead:
        say("There were no dead letters.")
        return
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in dead.items())
    total = sum(dead.values())
    count = "1 dead letter is" if total == 1 else f"{total:,} dead letters are"
    say(f"{count} in {path}: {reasons}.")


def show_report(path: str) -> None:
    """Print where the report is."""
    say(f"Report: {path}")


def show_next(steps: Iterable[Sequence[str]]) -> None:
    """Print commands to try next, each by its arguments."""
    command = "abers" if shutil.which("abers") == sys.argv[0] else sys.argv[0]
    if Path(command).name == "__main__.py":
        command = "python -m abers_connectors"
    for place, one in enumerate(steps):
        say(f"{'        ' if place else 'Next:   '}{command} replay {shlex.join(one)}")

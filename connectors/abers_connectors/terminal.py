"""Terminal output of a run: the progress bar, the tables, and commands to try next.

Results that a command prints on request go to standard output, everything else to standard error.
Colour and motion appear only on a terminal.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from abers_connectors.config.units import counted
from abers_connectors.dashboard.models import (
    calibrated_means,
    listed_name,
    model_monitors,
    model_statuses,
    model_table,
)
from abers_connectors.printable import printable
from abers_connectors.replay.score_text import left_out, number, score_cell, score_labels, trusted
from abers_connectors.row_table import row_table, text_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from abers.stream import Processor
    from abers_connectors.config.value_types import Lateness
    from abers_connectors.replay.run import WorkerNumbers
    from abers_connectors.replay.summary import Means, Summary

__all__ = [
    "Watched",
    "console",
    "say",
    "say_all",
    "show_delays",
    "show_models",
    "show_next",
    "show_outputs",
    "show_summary",
    "show_workers",
    "watching",
]

_ALARMS = 10  # alarms to print in full
_MODELS = 20  # rows in the table of models
_SEVERAL = 2
_SHORT = 2  # scores in a narrow table
_SPACIOUS = 50  # columns of a terminal with room beside a table
_REST = {
    "early_labels": "arrived before their observation",
    "duplicate_observations": "of a known id, ignored",
    "duplicate_labels": "of a labelled id, ignored",
    "late_labels": "arrived after their observation had expired, ignored",
    "late_events": "behind by more than limits.allowed_lateness, still used",
    "ahead_events": "ahead by more than limits.max_jump, still used",
    "assumed": "labels that did not come, taken as input.unlabelled",
    "expired": "unmatched observations, after limits.label_timeout",
    "evicted": "oldest observations, removed beyond limits.max_pending or max_bytes",
    "evicted_labels": "oldest early labels, removed beyond limits.max_early or max_bytes",
    "forgotten": "finished ids beyond limits.dedup_max_ids or max_bytes",
    "retired": "models silent for limits.retire_after, removed with their pending events",
}
"""Counters to print, with what they count."""


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


def say(message: str) -> None:
    """Print a sentence without wrapping it."""
    console().print(printable(message), markup=False, soft_wrap=True)


def say_all(messages: Iterable[str]) -> None:
    """Print sentences, a line each."""
    for message in messages:
        say(message)


@contextmanager
def watching(
    source: Watched, *, hidden: bool
) -> Iterator[Callable[[Iterable[int]], Iterator[int]]]:
    """Show a progress bar inside a `with` block.

    It is hidden if an output goes to standard output, perhaps to the same terminal. The function
    that is yielded passes on the record counts of a run, and moves the bar.
    """
    screen = console()
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]:,} records", markup=False),
        TimeRemainingColumn(),
    )
    disabled = hidden or not screen.is_terminal
    with Progress(*columns, console=screen, transient=True, disable=disabled) as progress:
        task = progress.add_task(printable(source.name), total=None, count=0)

        def watched(counts: Iterable[int]) -> Iterator[int]:
            for count in counts:
                fraction = source.fraction()
                total = None if fraction is None else 1.0
                progress.update(task, completed=fraction or 0.0, total=total, count=count)
                yield count

        yield watched


def show_summary(summary: Summary, title: str, delay: Lateness | None = None) -> None:
    """Print verdicts and table at the end of a run of an input, with the delay of its labels."""
    say_all(one["sentence"] for one in (*summary.verdicts, *summary.verdict_parts))
    if summary.calibration is not None:
        say(summary.calibration["sentence"])
    say_all(summary.label_needs)
    late = "" if delay is None else f", labels {delay}"
    screen = console()
    spacious = screen.width >= _SPACIOUS
    table = Table(title=text_cell(f"{title}{late}"), box=box.SIMPLE, pad_edge=spacious)
    table.add_column(min_width=len("observations"))  # a longer word would be cut
    table.add_column("raw score", justify="right")
    table.add_column("calibrated", justify="right")
    if summary.calibrated is not None:
        views = (summary.raw, summary.calibrated)
        names = score_labels(summary.calibrated)
        for name, text in names.items():
            table.add_row(text, *(score_cell(one, name, summary.labels) for one in views))
        if not any(name.startswith("width_") for name in names):
            table.add_row("mean interval width", "", number(summary.mean_width))
        table.add_section()
    table.add_row("observations", "", f"{summary.observations:,}")
    table.add_row("labels", "", f"{summary.labels:,}")
    table.add_row("events a second", "", f"{summary.events_per_second:,.0f}")
    if status := summary.alarm_status:
        table.add_row("alarm", *(status.get(view, "") for view in ("raw", "calibrated")))
    if summary.alarms:
        table.add_row("alarms", "", f"{len(summary.alarms):,}")
    screen.print(table)
    for sentence in _sentences(summary, delay):
        say(sentence)


def _sentences(summary: Summary, delay: Lateness | None) -> Iterator[str]:
    """Yield the sentences below the table."""
    yield from summary.notes
    if sentence := trusted(summary.experts):
        yield sentence
    for alarm in summary.alarms[:_ALARMS]:
        yield f"Alarm: {alarm.message}"
    yield from summary.losses
    yield from left_out(summary.calibrated or {}, summary.labels)
    if "crps" in (summary.calibrated or {}) and not summary.experts:
        yield "The CRPS puts the mass beyond the labels seen at the ends of the support, by default"
        yield "the smallest and the largest label held (see calibrator.support)."
    if delay is None and summary.observations and not summary.counters.get("labels_in"):
        yield "No label has arrived; if each record has its own, set input.delay."
    if delay is not None and not summary.observations:
        yield "No observation lies between --since and --until."
    elif delay is not None and summary.observations <= (delay.observations or 0):
        yield "No prediction used a label, because the stream ended before the first one;"
        yield "try a smaller --delay."


def show_comparison(found: Mapping[str, Summary], title: str) -> None:
    """Print the table of a comparison, with a row for each calibrator, to standard output."""
    first = next(iter(found.values()))
    names = score_labels(first.calibrated or {}, briefly=True)

    def scores(means: Means | None) -> list[str]:
        return [score_cell(means, name, first.labels) for name in names]

    rows = [] if first.raw is None else [["raw score", *scores(first.raw), "", ""]]
    for name, one in found.items():
        speed = f"{one.events_per_second:,.0f}"
        rows.append([name, *scores(one.calibrated), number(one.mean_width), speed])
    columns = ["", *names.values(), "mean width", "events / s"]
    _show_rows(title, columns, rows, console(stderr=False))
    say(f"{first.observations:,} observations and {first.labels:,} labels for each.")
    say_all(first.notes)
    for name, one in found.items():
        if sentence := trusted(one.experts):
            say(f"{name}: {sentence}")


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


def show_models(processors: Collection[Processor]) -> None:
    """Print a row for each model and segment of the processors, if there are several."""
    known = model_monitors(processors)
    if len(known) < _SEVERAL:
        return
    found = model_statuses(known)
    columns, rows = model_table(
        [
            (listed_name(one.key, active=one.active), one.labels, calibrated_means(known[one.key]))
            for one in found[:_MODELS]
        ]
    )
    _show_rows("each model, calibrated", columns, rows, console())
    if more := len(found) - len(rows):
        say(f"Models not listed, with less evidence against them than these: {more:,}.")


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


def show_outputs(summary: Summary, outputs: Mapping[str, str]) -> None:
    """Print the path of each output, and the counters of events that are not in the table."""
    for name, path in outputs.items():
        if name == "dead_letters":
            _show_dead(summary.dead_letters, path)
        elif path == "-":
            say(f"The {name} went to standard output.")
        else:
            say(f"The {name} are in {path}.")
    rest = {name: count for name, count in summary.counters.items() if name in _REST}
    for name, count in rest.items():
        say(f"{name.replace('_', ' ')}: {count:,} ({_REST[name]})")


def _show_dead(dead: Mapping[str, int], path: str) -> None:
    if not dead:
        say("There were no dead letters.")
        return
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in dead.items())
    total = sum(dead.values())
    count = "1 dead letter is" if total == 1 else f"{total:,} dead letters are"
    say(f"{count} in {path}: {reasons}.")


def show_next(steps: Iterable[Sequence[str]]) -> None:
    """Print commands to try next, each by its arguments."""
    command = "abers" if shutil.which("abers") == sys.argv[0] else sys.argv[0]
    say("Try next:")
    say_all(f"  {command} replay {shlex.join(one)}" for one in steps)

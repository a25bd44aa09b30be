"""What a person sees of a run: progress, the table, and where to go from there.

Governing rule: what is asked for goes to standard output, everything else to
standard error; colour and motion appear only on a terminal.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from abers.exceptions import StateError
from abers_connectors._means import called, left_out, number, worded
from abers_connectors._printable import printable
from abers_connectors.kafka.shard import NONE, Place
from abers_connectors.models import calibrated, listed, parts, seen, titled

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from abers.stream import Processor
    from abers_connectors.inspecting import Inspected
    from abers_connectors.summary import Means, Summary

__all__ = [
    "Watched",
    "say",
    "show_inspected",
    "show_models",
    "show_next",
    "show_outputs",
    "show_summary",
    "watching",
]


_ALARMS = 10  # that are told in words
_MODELS = 20  # that are listed
_SEVERAL = 2
_REST = {
    "early_labels": "came before their observation",
    "duplicate_observations": "of an id that was there already, ignored",
    "duplicate_labels": "of an id that was labelled already, ignored",
    "late_labels": "came after their observation was given up, ignored",
    "late_events": "behind by more than limits.lateness, used all the same",
    "ahead_events": "ahead by more than limits.max_jump, used all the same",
    "expired": "observations given up after limits.label_wait",
    "evicted": "observations given up, as limits.max_pending waited",
    "forgotten": "finished ids beyond limits.dedup_max",
    "retired": "models silent for limits.retire_after, forgotten with all that waited",
}
"""Counters that are told, and what they count."""


class Watched(Protocol):
    """What is read under a progress bar, such as a `Source`."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def fraction(self) -> float | None:
        """Say how much has been read, from 0 to 1, or None if that cannot be known."""
        ...


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command what a reader that has seen enough means."""
        raise BrokenPipeError


def _console(*, stderr: bool = True) -> Console:
    return _Console(stderr=stderr, highlight=False)


def say(message: str) -> None:
    """Print a sentence as it is, without wrapping a path in two."""
    _console().print(printable(message), markup=False, soft_wrap=True)


def _text(text: str) -> Text:
    """Make a cell or a title of a text, in which a [name] is no markup."""
    return Text(printable(text))


@contextmanager
def watching(
    source: Watched, *, hidden: bool
) -> Iterator[Callable[[Iterable[int]], Iterator[int]]]:
    """Show a progress bar for the time of a `with` block.

    Parameters
    ----------
    source
        What is read in the block.
    hidden
        Whether to show none, as something goes to standard output: it may well end on the same
        terminal, where a bar would disturb it.

    Yields
    ------
    function
        Passes the numbers of records on that a run gives, which move the bar on their way.
    """
    console = _console()
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]:,} records", markup=False),
        TimeRemainingColumn(),
    )
    disabled = hidden or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=disabled) as progress:
        task = progress.add_task(printable(source.name), total=None, count=0)

        def watched(counts: Iterable[int]) -> Iterator[int]:
            for count in counts:
                fraction = source.fraction()
                total = None if fraction is None else 1.0
                progress.update(task, completed=fraction or 0.0, total=total, count=count)
                yield count

        yield watched


def show_summary(summary: Summary, title: str, delay: int | None = None) -> None:
    """Print the table at the end of a run.

    Parameters
    ----------
    summary
        What the run found.
    title
        What was run.
    delay
        How many observations late the labels were, if that was the rule.
    """
    late = "" if delay is None else f", labels {delay:,} late"
    table = Table(title=_text(f"{title}{late}"), box=box.SIMPLE)
    table.add_column()
    table.add_column("raw score", justify="right")
    table.add_column("calibrated", justify="right")
    if summary.calibrated is not None:
        views = (summary.raw, summary.calibrated)
        told = called(summary.calibrated)
        for name, text in told.items():
            table.add_row(text, *(worded(one, name, summary.labels) for one in views))
        if not any(name.startswith("width_") for name in told):
            table.add_row("mean interval width", "", number(summary.mean_width))
        table.add_section()
    table.add_row("observations", "", f"{summary.observations:,}")
    table.add_row("labels", "", f"{summary.labels:,}")
    table.add_row("events a second", "", f"{summary.events_per_second:,.0f}")
    if summary.alarms:
        table.add_row("alarms", "", f"{len(summary.alarms):,}")
    _console().print(table)
    for sentence in _sentences(summary, delay):
        say(sentence)


def _sentences(summary: Summary, delay: int | None) -> Iterator[str]:
    """Say what a table does not."""
    for alarm in summary.alarms[:_ALARMS]:
        yield f"Alarm: {alarm.sentence}"
    if summary.raw is None and "brier" in (summary.calibrated or {}):
        yield "The raw score has no metrics, as a score need not be a probability;"
        yield (
            "if these are probabilities, "
            + ('set task.scores = "probability".' if delay is None else "add --probabilities.")
        )
    yield from left_out(summary.calibrated or {}, summary.labels)
    if "crps" in (summary.calibrated or {}):
        yield "The CRPS puts the mass beyond the labels seen at the ends of the support, which are"
        yield "the smallest and the largest label held if calibrator.support says nothing else."
    if delay is None and summary.observations and not summary.counters.get("labels_in"):
        yield "No label came yet; if each record carries its own, set input.delay."
    if delay is not None and not summary.observations:
        yield "No observation lies between --since and --until."
    elif delay is not None and summary.observations <= delay:
        yield "No prediction could use a label, as the stream ended before the first came;"
        yield "try a smaller --delay."


def show_comparison(found: Mapping[str, Summary], title: str) -> None:
    """Print the table of a comparison, a row a calibrator, to standard output.

    Parameters
    ----------
    found
        By calibrator what its run found.
    title
        What was run.
    """
    first = next(iter(found.values()))
    told = called(first.calibrated or {}, briefly=True)
    table = Table("", title=_text(title), box=box.SIMPLE)
    for column in (*told.values(), "mean width", "events / s"):
        table.add_column(column, justify="right")

    def scores(means: Means | None) -> list[str]:
        return [worded(means, name, first.labels) for name in told]

    if first.raw is not None:
        table.add_row("raw score", *scores(first.raw))
    for name, one in found.items():
        speed = f"{one.events_per_second:,.0f}"
        table.add_row(name, *scores(one.calibrated), number(one.mean_width), speed)
    _console(stderr=False).print(table)
    say(f"{first.observations:,} observations and {first.labels:,} labels for each.")


def show_models(processors: Collection[Processor]) -> None:
    """Print a row for each model and segment, if there are several.

    Parameters
    ----------
    processors
        What predicted.
    """
    known = parts(processors)
    if len(known) < _SEVERAL:
        return
    found = seen(known)
    columns, rows = listed(
        [
            (titled(one.key, rings=one.rings), one.labels, calibrated(known[one.key]))
            for one in found[:_MODELS]
        ]
    )
    table = Table(title="each model, calibrated", box=box.SIMPLE)
    table.add_column(columns[0], overflow="fold")
    for name in columns[1:]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*map(_text, row))
    _console().print(table)
    if more := len(found) - len(rows):
        say(f"Models that are not listed, as they have no more labels than these: {more:,}.")


def show_outputs(summary: Summary, outputs: Mapping[str, str]) -> None:
    """Say where everything went, and what became of the events that are not in the table.

    Parameters
    ----------
    summary
        What the run found.
    outputs
        The path of each output.
    """
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
    letters = "1 dead letter is" if total == 1 else f"{total:,} dead letters are"
    say(f"{letters} in {path}: {reasons}.")


def show_inspected(found: Inspected) -> None:
    """Print what a file of state says, to standard output.

    Parameters
    ----------
    found
        What was found in it.
    """
    console = _console(stderr=False)
    size = f"{found.path}, {found.bytes:,} bytes, written by abers {found.version}"
    table = Table(title=_text(size), box=box.SIMPLE, show_header=False)
    clock = "none" if found.clock is None else f"{found.clock} ({_moment(found.clock)})"
    rows = {
        "clock": clock,
        "position": _standing(found.position),
        "waiting for labels": f"{found.waiting_for_labels:,}",
        "waiting for observations": f"{found.waiting_for_observations:,}",
        "remembered ids": f"{found.remembered_ids:,}",
        "learners": f"{found.learner_bytes:,} bytes",
        "seal": "under the key" if found.sealed else "a checksum, no key",
        "settings": ", ".join(f"{k}={v}" for k, v in found.settings.items() if v is not None),
        "counters": ", ".join(f"{k}={v:,}" for k, v in found.counters.items() if v),
    }
    for name, text in rows.items():
        table.add_row(name, _text(text))
    console.print(table)
    held = Table("model", "segment", box=box.SIMPLE)
    told = called({name: None for one in found.held for name in one.scores}, briefly=True)
    for column in ("labels held", *told.values()):
        held.add_column(column, justify="right")
    for one in found.held:
        scores = (number(one.scores.get(name)) for name in told)
        held.add_row(_text(one.model), _text(one.segment), f"{one.labels:,}", *scores)
    console.print(held)


def _standing(position: Any) -> str:  # noqa: ANN401 - whatever a snapshot holds
    """Word a position: where a shard of Kafka stands, or as it is."""
    try:
        place = Place.of(position)
    except StateError:
        return str(position)
    observations, labels = place.following
    return (
        f"{place.app}[{place.partition}] before batch {place.batch}; the changelog goes on "
        f"@{place.changelog}, observations @{observations}"
        + ("" if labels == NONE else f", labels @{labels}")
    )


def _moment(milliseconds: int) -> str:
    try:
        return str(datetime.fromtimestamp(milliseconds / 1000, tz=UTC))
    except (OverflowError, ValueError, OSError):
        return "no date"


def show_next(stream: Sequence[str]) -> None:
    """Say what to try next.

    Parameters
    ----------
    stream
        The words that named what was replayed.
    """
    command = "abers" if shutil.which("abers") == sys.argv[0] else sys.argv[0]
    say("Try next:")
    say(f"  {command} replay {shlex.join(stream)} --window 500 --output windowed.jsonl")
    say(f"  {command} replay Bananas --learner tree --report bananas.html --output bananas.jsonl")
    say(f"  {command} replay YOURS.csv --score COLUMN --label COLUMN")

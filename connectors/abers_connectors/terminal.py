"""What a person sees of a replay: progress, the table, and where to go from there.

Governing rule: everything here goes to standard error, which leaves standard
output to data; colour and motion appear only on a terminal.
"""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abers_connectors.records import Observation, Source
    from abers_connectors.replay import Means, Summary

__all__ = ["say", "show_next", "show_summary", "watching"]

_EVERY = 100  # observations between two looks at the progress: rare enough to cost nothing


def _console() -> Console:
    return Console(stderr=True, highlight=False)


def say(message: str) -> None:
    """Print a sentence as it is, without wrapping a path in two."""
    _console().print(message, markup=False, soft_wrap=True)


@contextmanager
def watching(source: Source, output: str) -> Iterator[Iterator[Observation]]:
    """Show a progress bar for the time of a `with` block.

    Parameters
    ----------
    source
        What is read in the block.
    output
        Where the predictions go. From standard output they may well end on the same terminal,
        where a bar would disturb them.

    Yields
    ------
    Iterator
        The observations of the source, which move the bar on their way.
    """
    console = _console()
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]:,} observations", markup=False),
        TimeRemainingColumn(),
    )
    hidden = output == "-" or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        yield _watched(source, progress)


def _watched(source: Source, progress: Progress) -> Iterator[Observation]:
    task = progress.add_task(source.name, total=None, count=0)
    for count, observation in enumerate(source, start=1):
        yield observation
        if count % _EVERY == 0:
            fraction = source.fraction()
            total = None if fraction is None else 1.0
            progress.update(task, completed=fraction or 0.0, total=total, count=count)


def show_summary(summary: Summary, stream: str, delay: int) -> None:
    """Print the table at the end of a replay.

    Parameters
    ----------
    summary
        What the replay found.
    stream, delay
        What was replayed, and how many observations late the labels were.
    """
    title = Text(f"{stream}, labels {delay:,} late")  # as text, a [name] is no markup
    table = Table(title=title, box=box.SIMPLE)
    table.add_column()
    table.add_column("raw score", justify="right")
    table.add_column("calibrated", justify="right")
    raw, calibrated = (_column(m, summary.labels) for m in (summary.raw, summary.calibrated))
    for row in zip(("log loss", "Brier score", "ECE, 10 bins"), raw, calibrated, strict=True):
        table.add_row(*row)
    table.add_row("mean interval width", "", _number(summary.mean_width))
    table.add_section()
    table.add_row("observations", "", f"{summary.observations:,}")
    table.add_row("labels", "", f"{summary.labels:,}")
    table.add_row("events a second", "", f"{summary.events_per_second:,.0f}")
    _console().print(table)
    if summary.raw is None:
        say("The raw score has no metrics, as a score need not be a probability;")
        say("if these are probabilities, add --probabilities.")
    if summary.observations <= delay:
        say("No prediction could use a label, as the stream ended before the first came;")
        say("try a smaller --delay.")


def show_next(stream: str, output: str, observations: int) -> None:
    """Say where the predictions are, and what to try next.

    Parameters
    ----------
    stream, output
        What was replayed, and where its predictions went.
    observations
        How many there were.
    """
    command = "abers" if shutil.which("abers") == sys.argv[0] else sys.argv[0]
    if output == "-":
        say("The predictions went to standard output; --output FILE keeps them.")
    else:
        say(f"The predictions are in {output}, {observations:,} lines of JSON.")
    say("Try next:")
    say(f"  {command} replay {stream} --window 500 --output windowed.jsonl")
    say(f"  {command} replay Bananas --learner tree --output bananas.jsonl")
    say(f"  {command} replay YOURS.csv --score COLUMN --label COLUMN")


def _column(means: Means | None, labels: int) -> tuple[str, str, str]:
    if means is None:
        return "-", "-", "-"
    infinite = f"inf ({means.log_loss_infinite:,} of {labels:,})"
    log_loss = infinite if means.log_loss_infinite else _number(means.log_loss)
    return log_loss, _number(means.brier), _number(means.ece)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"

"""A job from its beginning to its last words.

Governing rule: what came of a run is said after its outputs are in their places.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import msgspec
import typer

from abers_connectors import terminal
from abers_connectors.summary import summarised

if TYPE_CHECKING:
    from abers_connectors.jobs import Job
    from abers_connectors.pace import Pace
    from abers_connectors.running import Run

__all__ = ["carry_out"]


def carry_out(
    job: Job,
    title: str,
    *,
    as_json: bool,
    pace: Pace | None = None,
    delay: int | None = None,
) -> None:
    """Carry out a job, under a progress bar where somebody watches, and say what came of it.

    Parameters
    ----------
    job
        What is to be run.
    title
        What the table is about.
    as_json
        Whether the table is printed as JSON, to standard output unless an output goes there.
    pace
        How fast; None is as fast as can be.
    delay
        How many observations late the labels are, if that is the rule.
    """
    piped = "-" in job.outputs.values()
    started = perf_counter()
    with job.start(pace) as running:
        before = _events(running)
        with terminal.watching(job.source, hidden=piped) as watched:
            for _ in watched(running.run()):
                pass
    events = _events(running) - before
    summary = summarised(running, events, perf_counter() - started)
    if as_json:
        typer.echo(msgspec.json.encode(summary), err=piped)
    else:
        terminal.show_summary(summary, title, delay)
        terminal.show_outputs(summary, job.outputs)


def _events(running: Run) -> int:
    counters = running.processor.counters
    return counters["observations"] + counters["labels_in"]

"""A job from its beginning to its last words.

Governing rule: what came of a run is said after its outputs are in their places.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec
import typer

from abers_connectors import terminal
from abers_connectors.live.replay import ReplayPage
from abers_connectors.report import Reporter
from abers_connectors.summary import summarised
from abers_connectors.webhook import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from abers_connectors.jobs import Job
    from abers_connectors.pace import Pace
    from abers_connectors.running import Run

__all__ = ["carry_out"]


def carry_out(  # noqa: PLR0913 - what a command can say
    job: Job,
    title: str,
    *,
    as_json: bool,
    pace: Pace | None = None,
    delay: int | None = None,
    report: str | None = None,
    live: bool = False,
    webhook: str | None = None,
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
    report
        Path of a report, if there is to be one.
    live
        Whether a page shows it meanwhile, and stays until the command is interrupted.
    webhook
        Where alarms are posted, if anywhere.
    """
    job.require_apart(report)
    piped = "-" in job.outputs.values()
    with ExitStack() as stack:
        reporter = stack.enter_context(Reporter(report)) if report is not None else None
        page = stack.enter_context(ReplayPage(title)) if live else None
        ring = stack.enter_context(_posting(webhook))
        started = perf_counter()
        if page is not None and pace is not None:
            pace.meanwhile(page.look)
        with job.start(pace) as running:
            running.ring = ring
            before = _events(running)
            if reporter is not None:
                reporter.watch(running)
            if page is not None:
                page.watch([running.processor], running.dead, job.source.fraction)
                running.onlookers.append(partial(page.take, running.processor))
            with terminal.watching(job.source, hidden=piped) as watched:
                for _ in watched(running.run()):
                    pass
        events = _events(running) - before
        summary = summarised(running, events, perf_counter() - started)
        if reporter is not None:
            reporter.write(title, job.source, summary, delay)
        if as_json:
            typer.echo(msgspec.json.encode(summary), err=piped)
        else:
            terminal.show_summary(summary, title, delay)
            terminal.show_models([running.processor])
            terminal.show_outputs(summary, job.outputs)
            if report is not None:
                terminal.say(f"The report is in {report}.")
        if page is not None:
            page.stay()


@contextmanager
def _posting(webhook: str | None) -> Iterator[Callable[[bytes], object]]:
    """Post alarms for a `with` block, if there is an address."""
    if webhook is None:
        yield lambda _: None
        return
    posted = Webhook(webhook)
    try:
        yield posted.tell
    finally:
        posted.close()


def _events(running: Run) -> int:
    counters = running.processor.counters
    return counters["observations"] + counters["labels_in"]

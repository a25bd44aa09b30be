"""Runs of jobs by a command, with progress, summary, report and live page.

A short replay takes most of its time for imports, so report, page and webhook are imported where
one is asked for.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from contextlib import ExitStack, closing, nullcontext
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec
import typer

from abers_connectors import terminal
from abers_connectors.dashboard.replay_document import FinishedReplay, observed
from abers_connectors.replay.comparison import compare, replay_delays, windows
from abers_connectors.replay.plan import Said
from abers_connectors.replay.run import Run
from abers_connectors.replay.summary import summarize_run

if TYPE_CHECKING:
    from abers.pages.blocks import Detail
    from abers_connectors.config.values import Lateness
    from abers_connectors.dashboard.observer import Observer
    from abers_connectors.dashboard.report import Reporter
    from abers_connectors.dashboard.server import ReplayPage
    from abers_connectors.replay.job import Job
    from abers_connectors.replay.options import Period, ReplayOptions
    from abers_connectors.replay.run import BaseRun, Pace
    from abers_connectors.replay.summary import Summary
    from abers_connectors.sinks.webhook import Webhook
    from abers_connectors.sources.base import Source

__all__ = ["compare_calibrators", "compare_delays", "run_job"]


def run_job(  # noqa: PLR0913 - the options of a command
    job: Job,
    title: str,
    *,
    as_json: bool,
    detail: Detail = "usual",
    pace: Pace | None = None,
    delay: Lateness | None = None,
    report: str | None = None,
    live: bool = False,
    reference: Period | None = None,
    webhook: str | None = None,
    said: Said = Said(),  # noqa: B008 - immutable
) -> None:
    """Run a job under a progress bar, then print its answers.

    They come after the outputs have appeared under their names, and go to standard output unless an
    output goes there. As JSON the summary is printed instead. With the least detail nothing else is
    printed. Without a pace the run is as fast as possible. A live page stays until the command is
    interrupted. Both show a reference period. Alarms are posted to the URL of the
    webhook.
    """
    job.require_apart(report)
    piped = "-" in job.outputs.values()
    with ExitStack() as stack:
        reporter = None if report is None else stack.enter_context(_reporter(report, reference))
        page = stack.enter_context(_page(title, job.zone, reference)) if live else None
        posts = None if webhook is None else stack.enter_context(closing(_webhook(webhook)))
        started = perf_counter()
        if page is not None and pace is not None:
            pace.meanwhile(page.refresh)
        with job.start(pace, terminal.say) as running:
            if posts is not None:
                running.on_alarm = posts.post
            before = running.events
            if reporter is not None:
                reporter.watch(running)
            if page is not None and isinstance(running, Run):
                page.watch([running.processor], running.dead, job.source.fraction)
                running.observers.append(partial(page.take, running.processor))
            _finish(running, job.source, hidden=piped)
        summary = summarize_run(running, running.events - before, perf_counter() - started)
        observer = observed(running.processors) if reporter is None else reporter.observer()
        run = _finished(job, title, running, summary, observer, delay)
        if reporter is not None:
            reporter.write({title: run})
        if as_json:
            typer.echo(msgspec.json.encode(summary), err=piped)
        else:
            terminal.show_finished(run, job.outputs, detail, *said)
            if report is not None and detail != "answers":
                terminal.show_report(report)
        if page is not None:
            page.stay()


def compare_calibrators(  # noqa: PLR0913 - the options of a command
    job: Job,
    names: str,
    title: str,
    *,
    as_json: bool,
    delay: Lateness | None = None,
    report: str | None = None,
    reference: Period | None = None,
    said: Said = Said(),  # noqa: B008 - immutable
) -> None:
    """Run a job with several calibrators, and print a table, or JSON, to standard output.

    A report has a part for each calibrator.
    """
    job.require_apart(report)
    runs: dict[str, FinishedReplay] = {}
    with nullcontext() if report is None else _reporter(report, reference) as reporter:

        def finish(running: BaseRun) -> None:
            if reporter is not None:
                reporter.watch(running)
            _finish(running, job.source, hidden=False)

        def done(name: str, summary: Summary) -> None:
            if reporter is not None:
                observer = reporter.observer()
                runs[name] = _finished(job, title, reporter.run, summary, observer, delay)

        found = compare(job, names, finish, done, terminal.say)
        if reporter is not None:
            reporter.write(runs)
    if as_json:
        typer.echo(msgspec.json.encode(found))
    else:
        terminal.show_input(next(iter(found.values())), title, delay, *said)
        terminal.show_comparison(found, title)
        for sentence in windows(names, job.settings):
            terminal.say(sentence)
        if report is not None:
            terminal.show_report(report)


def compare_delays(options: ReplayOptions, delays: str, *, as_json: bool, said: Said) -> None:
    """Run a replay at several delays of the labels, and print a table, or JSON."""
    found = replay_delays(options, delays, partial(_finish, hidden=False), terminal.say)
    if as_json:
        typer.echo(msgspec.json.encode({str(delay): one for delay, one in found.items()}))
    else:
        if said.columns is not None:
            terminal.say(f"{options.stream}: {said.columns}")
        terminal.show_delays(found, options.stream)


def _finished(  # noqa: PLR0913, PLR0917 - what a replay leaves
    job: Job,
    title: str,
    running: BaseRun,
    summary: Summary,
    observer: Observer,
    delay: Lateness | None,
) -> FinishedReplay:
    source = job.source.name
    return FinishedReplay(title, delay, source, job.zone, running.processors, summary, observer)


def _reporter(path: str, reference: Period | None) -> Reporter:
    from abers_connectors.dashboard.report import Reporter

    return Reporter(path, reference)


def _page(title: str, zone: str, reference: Period | None) -> ReplayPage:
    from abers_connectors.dashboard.server import ReplayPage

    return ReplayPage(title, zone, reference)


def _webhook(url: str) -> Webhook:
    from abers_connectors.sinks.webhook import Webhook

    return Webhook(url)


def _finish(running: BaseRun, source: Source, *, hidden: bool) -> None:
    """Iterate a run under a progress bar."""
    with terminal.watching(source, hidden=hidden) as watched:
        for _ in watched(running.run()):
            pass

"""`abers report`."""

# ruff: noqa: PLC0415 - a command imports what it needs when it runs, and typer the types
# Annotations are no texts: typer would compile each of them, in every command.

from typing import Annotated

import typer

from abers_connectors.cli.options import JsonTable, Quiet, Verbose, detail_of, output_option
from abers_connectors.cli.stream_options import (
    DelayOption,
    ProbabilityOption,
    ScoresOption,
    SinceOption,
    TaskOption,
    UntilOption,
)
from abers_connectors.exit_codes import CONFIG, USAGE, fail, sentences

__all__ = ["report"]


def report(  # noqa: PLR0913 - the options of the command
    stream: Annotated[
        str,
        typer.Argument(metavar="STREAM|FILE|CONFIG", help="The input, as for abers replay."),
    ],
    *,
    task: TaskOption = None,
    scores: ScoresOption = None,
    probability: ProbabilityOption = None,
    delay: DelayOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    reference: Annotated[
        str | None,
        output_option("START..END", "Show the predictions of this time too. Times as of --since."),
    ] = None,
    output: Annotated[
        str,
        output_option(
            "FILE",
            "The report: a self-contained page (.html), or its numbers (.json).",
            "--output",
            "-o",
        ),
    ] = "report.html",
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: JsonTable = False,
) -> None:
    """Replay a stream only for its report, as a page or JSON.

    No predictions are written. For columns, learners and forgetting: abers replay --report.
    """
    with sentences():
        from abers_connectors.replay.options import ReplayOptions, has_topics, report_format
        from abers_connectors.replay.plan import Said, plan_replay

        detail = detail_of(quiet=quiet, verbose=verbose)
        report_format(output, "--output")  # raises for an unknown one
        options = ReplayOptions(
            stream=stream,
            delay=delay,
            output="-",  # unused: the job has no outputs
            task=task,
            scores=scores,
            probability=probability,
            since=since,
            until=until,
            report=output,
            reference=reference,
        )
        if has_topics(options):
            fail(f"a report reads files, and {stream} has topics", USAGE)
    with sentences():
        plan = plan_replay(options)
    with sentences(CONFIG if options.configured else USAGE):
        from abers_connectors.cli.replay import run_job

        job = plan.job._replace(outputs={})
        run_job(
            job,
            stream,
            delay=plan.delay,
            report=output,
            reference=plan.reference,
            as_json=as_json,
            detail=detail,
            said=Said() if as_json or quiet else plan.said,
        )

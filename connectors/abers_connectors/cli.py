"""The `abers` command.

Governing rule: data goes to standard output and messages to standard error.
Only typer is imported here; what a command needs is imported when it runs, so
that `abers --help` answers at once.
"""

# ruff: noqa: PLC0415 - the imports inside functions are the rule above

from __future__ import annotations

import signal
import sys
import warnings
from typing import Annotated

import typer

from abers_connectors._printable import printable
from abers_connectors.exits import (
    CONFIG,
    FAILURE,
    USAGE,
    drop_output,
    fail,
    refusal,
    sentences,
    tell,
)
from abers_connectors.state_commands import state

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(state, name="state")


def main() -> None:
    """Run the command line."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    warnings.showwarning = lambda message, *_: tell(f"Warning: {message}", err=True)
    try:
        app(prog_name="abers")
    except OSError as error:
        drop_output()
        sys.exit(printable(f"Error: {refusal(error)}"))


def _show_version(*, wanted: bool) -> None:
    if wanted:
        with sentences():
            import abers

            typer.echo(f"abers {abers.__version__} ({abers.backend()} backend)")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Show version and backend."
        ),
    ] = False,
) -> None:
    """Streaming prediction with exact Venn-Abers calibration.

    Each observation gets a calibrated probability interval at once; its label, which comes
    later, improves the next prediction. Begin with: abers replay Phishing
    """


_Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print the final table as JSON, to standard output unless an output goes there.",
    ),
]
_ConfigPath = Annotated[
    str, typer.Argument(metavar="CONFIG", help="A TOML file; see deploy/abers.example.toml.")
]


@app.command()
def run(
    config: _ConfigPath,
    *,
    create_topics: Annotated[
        bool,
        typer.Option(
            "--create-topics",
            help="With Kafka: make the topics that are missing, all of them, or none where the "
            "service could not run.",
        ),
    ] = False,
    seed: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="With Kafka: start an application that has no state from what a replay saved.",
        ),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Process a stream as a configuration says: files, standard input, or topics of Kafka.

    With [state] in the configuration a stopped run goes on where it was. With [kafka] it serves
    until it is stopped, and goes on where it was in any case.
    """
    with sentences(parameter=CONFIG):
        from abers_connectors.carrying_out import carry_out
        from abers_connectors.config import load
        from abers_connectors.jobs import of_config

        loaded = load(config)
        if loaded.kafka is not None:
            from abers_connectors.kafka.command import serve

            serve(loaded, config, create_topics=create_topics, seed=seed)
            return
        for option, given in (("--create-topics", create_topics), ("--seed", seed)):
            if given:
                fail(f"{option} is for Kafka, and {config} has no section [kafka]", USAGE)
        webhook = loaded.alerts.webhook
        carry_out(of_config(loaded, config), config, as_json=as_json, webhook=webhook)


@app.command()
def check(
    config: _ConfigPath,
    *,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Show ten records of a file, or topic, as they are understood."
        ),
    ] = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Ask the Kafka brokers whether the topics will do.")
    ] = False,
) -> None:
    """Say what a configuration means, or everything that is wrong with it."""
    with sentences():
        from abers_connectors.checking import check as checked

        report = checked(config, sample=sample, connect=connect)
        for part, meaning in report.meaning.items():
            tell(f"{part}: {meaning}")
        for line in report.warnings:
            tell(f"Warning: {line}", err=True)
        if report.findings is not None:
            for line in report.findings:
                tell(f"Warning: {line}", err=True)
            typer.echo("topics: a service can run on them")
        if report.sample is not None:
            for line in report.sample.lines:
                tell(line)
            if report.sample.mistake is not None:
                fail(report.sample.mistake, FAILURE)


@app.command()
def inspect(
    snapshot: Annotated[str, typer.Argument(metavar="SNAPSHOT", help="A saved state.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Say what a saved state holds. Nothing in it is executed."""
    with sentences():
        import msgspec

        from abers_connectors import terminal
        from abers_connectors.inspecting import inspected

        found = inspected(snapshot)
        if as_json:
            typer.echo(msgspec.json.encode(found))
        else:
            terminal.show_inspected(found)


@app.command()
def rules(
    *,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write them there."),
    ] = None,
) -> None:
    """Print what Prometheus is to record and to alert on; docs/operations.md explains it."""
    from importlib.resources import files

    text = files("abers_connectors").joinpath("rules.yml").read_text("utf-8")
    if output is None:
        typer.echo(text, nl=False)
    else:
        with sentences():
            from abers_connectors.files.places import write_whole

            write_whole(output, text.encode())


@app.command()
def report(  # noqa: PLR0913 - the options of the command
    stream: Annotated[
        str,
        typer.Argument(
            metavar="STREAM|FILE|CONFIG", help="What is replayed; see abers replay --help."
        ),
    ],
    *,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The report: a page that needs nothing else (.html), or its numbers (.json).",
        ),
    ] = "report.html",
    delay: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="As of replay, for a stream or a file."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="TASK", help="Of a file: binary or regression.")
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="The file's scores are probabilities.")
    ] = False,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Leave out what was before.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Leave out what was then or later.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Replay a stream only for its report: a page or JSON, and the table in the terminal.

    It writes no predictions. For columns, learners and forgetting: abers replay --report.
    """
    with sentences():
        from abers_connectors.replaying import Words, has_topics, planned

        words = Words(
            stream=stream,
            delay=delay,
            output="-",  # nothing goes there: the job has no outputs
            task=task,
            probabilities=probabilities,
            since=since,
            until=until,
            report=output,
        )
        if has_topics(words):
            fail(f"a report is of files, and {stream} has topics", USAGE)
        plan = planned(words)
    with sentences(parameter=CONFIG if plan.configured else USAGE):
        from abers_connectors.carrying_out import carry_out

        job = plan.job._replace(outputs={})
        carry_out(job, stream, delay=plan.delay, report=output, as_json=as_json)


@app.command()
def replay(  # noqa: PLR0913 - the options of the command
    stream: Annotated[
        str,
        typer.Argument(
            metavar="STREAM",
            help="A stream that river brings along (of two classes Bananas, Phishing, Shuttle; of "
            "several ImageSegments; of numbers AirlinePassengers, ChickWeights, SP500Stocks, "
            "TrumpApproval, WaterFlow), a file of scores and labels (.csv, .jsonl, .parquet), or "
            "a configuration (.toml).",
        ),
    ],
    *,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="With a configuration: read this in place of its input; with one of topics, read "
            "this topic in place of its observations, or what the service decided: changelog.",
        ),
    ] = None,
    speed: Annotated[
        str,
        typer.Option(metavar="N", help="1x as it happened, 10x ten times as fast, max at once."),
    ] = "max",
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Leave out what was before; RFC 3339 or milliseconds, in topics also @OFFSET.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Leave out what was then or later."),
    ] = None,
    delay: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Release a label after N further observations (50 by default).",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where predictions go, by its suffix JSON Lines, CSV or Parquet; - is standard "
            "output, as is the default of a stream, a file or topics. A file appears when it is "
            "complete. From topics also into one: kafka:TOPIC.",
        ),
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What scores a bundled stream, its features standardised: bayes, forest, "
            "logistic (the default), softmax (that of several classes), tree; of a regression "
            "forest, linear (the default), tree; or the full name of river.",
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="A file's column of scores, by default score."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Of its labels (0 or 1, false or true, or numbers), by default label.",
        ),
    ] = None,
    id_: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="COLUMN", help="Of its ids, by default id or else the row number."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Of its event times (milliseconds or RFC 3339), by default time or else the row "
            "number.",
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="TASK",
            help="What a file's labels are: binary (0 or 1, the default), or regression (numbers).",
        ),
    ] = None,
    distributions: Annotated[
        bool,
        typer.Option(
            "--distributions",
            help="Write the whole predictive distributions of a regression, not only quantiles.",
        ),
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="The file's scores are probabilities: score them beside the calibrated ones.",
        ),
    ] = False,
    window: Annotated[
        int | None,
        typer.Option(metavar="N", help="Calibrate on the last N labels only."),
    ] = None,
    max_age: Annotated[
        str | None,
        typer.Option(
            metavar="SPAN", help='Forget labels older than SPAN, such as "7d" or "5000ms".'
        ),
    ] = None,
    half_life: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="Halve the weight of a label every SPAN."),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Run several calibrators and print one table, writing nothing: ivap, cvap, "
            "platt, isotonic, dir, beta, uncalibrated, with commas between them.",
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write what came of it as a page that needs nothing else (.html), or the numbers "
            "of that page (.json).",
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Show it on a page of this machine meanwhile, and until Ctrl-C; see --speed.",
        ),
    ] = False,
    save_state: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="With topics: keep the state at the end, with the offsets, for abers run --seed.",
        ),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Replay a historical stream: predict, wait for the label, learn.

    Every observation is scored and calibrated before its label is known. The table at the end
    scores these predictions, as they were issued.
    """
    with sentences():
        from abers_connectors.replaying import Words, has_topics, planned

        words = Words(
            stream=stream,
            delay=delay,
            output=output,
            learner=learner,
            columns={"score": score, "label": label, "id": id_, "time": time},
            probabilities=probabilities,
            task=task,
            distributions=distributions,
            forgetting={"window": window, "max_age": max_age, "half_life": half_life},
            from_=from_,
            since=since,
            until=until,
            speed=speed,
            compare=compare,
            report=report,
            live=live,
            save_state=save_state,
        )
        if has_topics(words):
            from abers_connectors.kafka.replaying import replay as replay_topics

            replay_topics(words, as_json=as_json)
            return
        plan = planned(words)
    with sentences(parameter=CONFIG if plan.configured and compare is None else USAGE):
        from abers_connectors.carrying_out import carry_out

        if compare is not None:
            from abers_connectors import comparing

            comparing.compare(plan.job, compare, stream, as_json=as_json)
            return
        carry_out(
            plan.job,
            stream,
            pace=plan.pace,
            delay=plan.delay,
            report=report,
            live=live,
            as_json=as_json,
        )
        if not as_json and not plan.configured:
            from abers_connectors import terminal

            named = {"score": score, "label": label, "id": id_, "time": time}
            named["task"] = task
            options = [f"--{name}={column}" for name, column in named.items() if column]
            terminal.show_next([stream, *options, *(["--probabilities"] * probabilities)])

"""The `abers` command.

Data goes to standard output, messages to standard error. Each command imports what it needs when it
runs, so `abers --help` answers at once. For the same reason annotations are no texts here: typer
would compile each of them, in every command.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from typing import Annotated, Any, Literal

import typer

from abers_connectors.cli.options import (
    CommandGroup,
    ConfigPath,
    GroupedCommand,
    JsonTable,
    declared_option,
    whole_number,
)
from abers_connectors.cli.replay_command import replay, report
from abers_connectors.cli.state_command import state
from abers_connectors.errors import (
    CONFIG,
    FAILURE,
    USAGE,
    drop_output,
    fail,
    refusal,
    sentences,
    show,
    show_error,
    watch_signals,
)

__all__ = ["app", "main", "serve"]

# ruff: noqa: PLC0415 - a command imports what it needs when it runs


def serve(
    config: Annotated[
        str | None, typer.Argument(metavar="CONFIG", help="A TOML file, for the calibrator.")
    ] = None,
    *,
    data: Annotated[str | None, declared_option("--data", more="Default: abers-state.")] = None,
    host: Annotated[str | None, declared_option("--host", more="Default: 127.0.0.1.")] = None,
    port: Annotated[
        int | None, declared_option("--port", more="Default: 8090.", parser=whole_number(0, 65_535))
    ] = None,
) -> None:
    """Serve predictions over HTTP, and learn labels that come.

    What is answered is on disk: a crash loses nothing, and a request may be sent again. Without
    CONFIG scores are probabilities of two classes.
    """
    with sentences(parameter=CONFIG):
        from abers.stream.option import variable
        from abers_connectors.config.model import load
        from abers_connectors.serve.service import serve as run

        given = {"serve.data": data, "http.host": host, "http.port": port}
        flags: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if config is None and not any(name.startswith(variable("task.")) for name in os.environ):
            flags["task.scores"] = "probability"
        run(load(config, flags={"serve": {}} | flags, front="flag"), _show_lines)


def _show_lines(text: str) -> None:
    """Show the lines of a text on standard error."""
    for line in text.splitlines():
        show(line, err=True)


# ruff: noqa: PLC0415 - a command imports what it needs when it runs


app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line."""
    watch_signals()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    warnings.showwarning = lambda message, *_: show(f"Warning: {message}", err=True)
    try:
        app(prog_name="abers")
    except OSError as error:
        drop_output()
        show_error(refusal(error))
        sys.exit(FAILURE)


def _show_version(*, wanted: bool) -> None:
    if wanted:
        with sentences():
            import abers
            from abers.backends import lacking

            typer.echo(f"abers {abers.__version__} ({abers.backend()} backend)")
            if (problem := lacking()) is not None:
                typer.echo(problem)
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

    Each observation gets a calibrated probability interval at once; its label, which arrives
    later, improves the next prediction. To start: abers replay Phishing
    """


def run(  # noqa: PLR0913 - its flags
    config: ConfigPath,
    *,
    create_topics: Annotated[
        bool,
        typer.Option(
            "--create-topics",
            help="Kafka: create all missing topics, unless something else prevents a start.",
        ),
    ] = False,
    initial_state: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Kafka: start an application without state from one that a replay saved.",
        ),
    ] = None,
    take_over: Annotated[
        str | None,
        typer.Option(
            metavar="APPLICATION_ID",
            help="Kafka: learn behind another application, and publish once it has stopped.",
        ),
    ] = None,
    stage: Annotated[
        Literal["router", "tasks"] | None,
        typer.Option(
            help="Kafka, with kafka.route_by: only route records, or only process what is routed.",
        ),
    ] = None,
    as_json: JsonTable = False,
) -> None:
    """Process files, standard input, or topics of Kafka.

    With [state] in the configuration, a stopped run continues where it stopped. With [kafka] it
    serves until it is stopped, and always continues where it stopped.
    """
    with sentences(parameter=CONFIG):
        from abers_connectors.cli.replay import run_job
        from abers_connectors.config.model import load
        from abers_connectors.replay.job import job_of_config

        loaded = load(config)
        if loaded.kafka is not None:
            from abers_connectors.cli.service import run_service

            run_service(
                loaded,
                config,
                create_topics=create_topics,
                initial_state=initial_state,
                take_over=take_over,
                stage=stage,
            )
            return
        given = {
            "--create-topics": create_topics,
            "--initial-state": initial_state,
            "--take-over": take_over,
            "--stage": stage,
        }
        for option in (name for name, value in given.items() if value):
            fail(f"{option} needs a section [kafka], which {config} does not have", USAGE)
        webhook = loaded.alerts.webhook
        run_job(job_of_config(loaded, config), config, as_json=as_json, webhook=webhook)


def check(
    config: ConfigPath,
    *,
    sample: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Show how ten records of a file, or topic, are read."),
    ] = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Ask the Kafka brokers whether the topics fit.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show also the limits that have their default.")
    ] = False,
) -> None:
    """Show what a configuration means, or all mistakes in it."""
    with sentences():
        from abers_connectors.cli import config_check
        from abers_connectors.terminal import ink

        found = config_check.check(config, sample=sample, connect=connect)
        out = ink(stderr=False)
        for line in config_check.report_lines(found, config, out, everything=everything):
            typer.echo(line)
        for line in (*found.warnings, *(found.findings or ())):
            show(f"Warning: {line}", err=True)
        if found.findings is not None:
            typer.echo("topics: a service can use them")
        if found.sample is not None and sample is not None:
            typer.echo()
            for line in config_check.sample_lines(found.sample, sample, found.config, out):
                typer.echo(line)
            if found.sample.mistake is not None:
                fail(found.sample.mistake, FAILURE)


def inspect(
    snapshot: Annotated[str, typer.Argument(metavar="SNAPSHOT", help="A saved state.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show a saved state, without executing anything in it."""
    with sentences():
        import msgspec

        from abers_connectors.cli.inspection import inspected, show_inspected

        found = inspected(snapshot)
        if as_json:
            typer.echo(msgspec.json.encode(found))
        else:
            show_inspected(found)


def prometheus_rules(
    *,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the rules to a file."),
    ] = None,
    page: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Alerts of severity page, separated by commas, or all. All others are tickets.",
        ),
    ] = "",
) -> None:
    """Print recording and alerting rules for Prometheus.

    docs/metrics.md explains them.
    """
    from abers_connectors.metrics.alert_rules import alert_rules

    with sentences():
        text = alert_rules([name.strip() for name in page.split(",") if name.strip()])
        if output is None:
            typer.echo(text, nl=False)
        else:
            from abers_connectors.sinks.destination import write_whole

            write_whole(output, text.encode())


for command in (run, check, inspect, prometheus_rules, report, replay, serve):
    app.command(cls=GroupedCommand)(command)
app.add_typer(state, name="state")

"""The `abers` command.

Governing rule: data goes to standard output and messages to standard error;
whatever goes wrong ends in one sentence and an exit code (1 failure, 2 usage,
128 + n for signal n), never in a traceback. Only typer is imported here; what a
command needs is imported when it runs, so that `abers --help` answers at once.
"""

# ruff: noqa: PLC0415 - the imports inside functions are the rule above

from __future__ import annotations

import os
import signal
import sys
import warnings
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["app", "main"]

_FAILURE, _USAGE = 1, 2

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    warnings.showwarning = lambda message, *_: typer.echo(f"Warning: {message}", err=True)
    try:
        app(prog_name="abers")
    except OSError as error:
        _drop_output()
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(f"Error: {where}{error.strerror}")


def _drop_output() -> None:
    """Let nothing that could not be written fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def _sentences() -> Iterator[None]:
    """Turn an error into its sentence and exit code."""
    try:
        from abers.exceptions import AbersError, ParameterError
    except ImportError as error:  # such as a backend that is asked for and not there
        _fail(str(error), _FAILURE)
    try:
        yield
    except ParameterError as error:
        _fail(str(error), _USAGE)
    except AbersError as error:
        _fail(str(error), _FAILURE)
    except BrokenPipeError:  # the reader has seen enough, as in `abers replay … | head`
        _drop_output()
        raise typer.Exit(128 + signal.SIGPIPE) from None
    except KeyboardInterrupt:
        typer.echo("Stopped.", err=True)
        raise typer.Exit(128 + signal.SIGINT) from None


def _show_version(*, wanted: bool) -> None:
    if wanted:
        with _sentences():
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


@app.command()
def replay(  # noqa: PLR0913 - the options of the command
    stream: Annotated[
        str,
        typer.Argument(
            metavar="STREAM",
            help="A stream that river brings along (Phishing, Bananas, Shuttle), or a file of "
            "scores and labels (.csv, .jsonl, .ndjson).",
        ),
    ],
    *,
    delay: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Release a label after N further observations."),
    ] = 50,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where predictions go, a JSON line each; - is standard output. A file appears "
            "when it is complete.",
        ),
    ] = "-",
    learner: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What scores a bundled stream, its features standardised: bayes, forest, "
            "logistic (the default), tree, or the full name of a river classifier.",
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="A file's column of scores, by default score."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Of its labels (0 or 1, false or true), by default label."
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
            help="Of its event times (numbers, or RFC 3339 made epoch milliseconds), by default "
            "time or else the row number.",
        ),
    ] = None,
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
        float | None,
        typer.Option(metavar="SPAN", help="Forget labels older than SPAN, in the unit of time."),
    ] = None,
    half_life: Annotated[
        float | None,
        typer.Option(metavar="SPAN", help="Halve the weight of a label every SPAN."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print the final table as JSON, to standard output unless predictions go there.",
        ),
    ] = False,
) -> None:
    """Replay a historical stream: predict, wait for the label, learn.

    Every observation is scored and calibrated before its label is known. The table at the end
    scores these predictions, as they were issued.
    """
    with _sentences():
        import msgspec

        from abers import VennAbers
        from abers_connectors import terminal
        from abers_connectors.files import opened
        from abers_connectors.replay import Replay
        from abers_connectors.streams import open_stream

        named = {"score": score, "label": label, "id": id_, "time": time}
        source, scorer = open_stream(
            stream,
            learner_name=learner,
            columns={field: column for field, column in named.items() if column is not None},
            probabilities=probabilities,
        )
        calibrator = VennAbers(window=window, max_age=max_age, half_life=half_life)
        with opened(output) as sink, terminal.watching(source, output) as observations:
            run = Replay(source, scorer, calibrator, sink, delay=delay)
            started = perf_counter()
            run.run(observations)
            seconds = perf_counter() - started
        summary = run.summary(seconds)
        if as_json:
            typer.echo(msgspec.json.encode(summary), err=output == "-")
        else:
            terminal.show_summary(summary, stream, delay)
            terminal.show_next(stream, output, summary.observations)

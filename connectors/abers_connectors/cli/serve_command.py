"""`abers serve`: predictions and labels over HTTP."""

# ruff: noqa: PLC0415 - a command imports what it needs when it runs

import os
from typing import Annotated, Any

import typer

from abers_connectors.cli.options import declared_option, whole_number
from abers_connectors.exit_codes import CONFIG, sentences, show

__all__ = ["serve"]


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

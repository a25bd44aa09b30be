"""`abers serve`: predictions and labels over HTTP."""

# ruff: noqa: PLC0415 - a command imports what it needs when it runs

from typing import Annotated

import typer

from abers_connectors.exit_codes import CONFIG, sentences, show

__all__ = ["serve"]


def serve(
    config: Annotated[
        str | None, typer.Argument(metavar="CONFIG", help="A TOML file, for the calibrator.")
    ] = None,
    *,
    data: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="The folder of the state, by default abers-state."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="The address; by default only this machine."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=65535, help="The port, by default 8090.")
    ] = None,
) -> None:
    """Serve predictions over HTTP, and learn the labels that come later.

    What is answered is on disk: a crash loses nothing, and a request may be sent again.
    """
    with sentences(parameter=CONFIG):
        from abers_connectors.config.model import load
        from abers_connectors.serve.service import serve as run

        given = {"serve.data": data, "http.host": host, "http.port": port}
        flags = {name: value for name, value in given.items() if value is not None}
        run(load(config, flags={"serve": {}} | flags), _show_lines)


def _show_lines(text: str) -> None:
    """Show the lines of a text on standard error."""
    for line in text.splitlines():
        show(line, err=True)

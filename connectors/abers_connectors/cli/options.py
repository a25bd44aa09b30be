"""Options that several commands share, and help with groups of options."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from abers_connectors.cli.flags import FLAGS
from abers_connectors.errors import show_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "CommandGroup",
    "ConfigPath",
    "DelayOption",
    "GroupedCommand",
    "JsonTable",
    "Models",
    "PositiveOption",
    "ProbabilityOption",
    "Quiet",
    "ScoresOption",
    "SinceOption",
    "TaskOption",
    "TimezoneOption",
    "UntilOption",
    "Verbose",
    "calibrator_option",
    "declared_option",
    "detail_of",
    "input_option",
    "output_option",
    "time_option",
    "whole_number",
]

_WHOLE = 1000  # characters, more than any sentence has
# Before what is wrong with a value, in the words of typer.
_VALUE = re.compile(r"^Invalid value for '(?:-\w' / ')?([^']+)'(?: / '-\w')?: (?:Value error, )?")


def _option(group: str, metavar: str | None, text: str, *names: str, **more: Any) -> Any:  # noqa: ANN401 - typer's own
    """Return an option with a help text, in a group of the help."""
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=group, **more)


def declared_option(*names: str, more: str = "", **rest: Any) -> Any:  # noqa: ANN401 - typer's own
    """Return an option that a configuration has too.

    Its sentence is that of the declaration; `more` is true of the flag alone.
    """
    group, metavar, sentence = FLAGS[names[0]]
    return _option(group, metavar, f"{sentence} {more}".rstrip(), *names, **rest)


input_option = partial(_option, "Input")
calibrator_option = partial(_option, "Calibrator")
time_option = partial(_option, "Time")
output_option = partial(_option, "Output")

ConfigPath = Annotated[
    str, typer.Argument(metavar="CONFIG", help="A TOML file; see deploy/abers.example.toml.")
]
JsonTable = Annotated[
    bool,
    output_option(
        None,
        "Print the final table as JSON, to standard output unless an output goes there.",
        "--json",
    ),
]

Quiet = Annotated[
    bool, output_option(None, "Print the answers only; errors as always.", "--quiet", "-q")
]
Verbose = Annotated[
    bool,
    output_option(
        None, "Print also tests, methods, scores and records, and all models.", "--verbose", "-v"
    ),
]

Models = Annotated[
    list[str] | None,
    input_option(
        "NAME",
        "Only events of this model. May be given several times.",
        "--model",
        show_default=False,
    ),
]


def whole_number(least: int, most: int) -> Callable[[object], int]:
    """Return what reads a whole number that only a flag has; its error says what to write."""

    def read(given: object) -> int:
        text = str(given)
        if text.isascii() and text.isdecimal() and least <= int(text) <= most:
            return int(text)
        msg = f"{text!r} is not a whole number from {least} to {most:,}; write one"
        raise typer.BadParameter(msg)

    return read


class CommandGroup(TyperGroup):
    """The commands; a file in the place of one is an error that names `abers replay`."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - typer's own click
        """Run a command; an error of its words is shown like all others."""
        try:
            return super().invoke(ctx)
        except TyperException as error:
            command = " ".join(filter(None, (ctx.command_path, ctx.invoked_subcommand)))
            error.show = partial(_show, error, command)  # type: ignore[attr-defined]
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own click
        """Write all commands with their first sentences, which are not cut."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(_WHOLE)) for name, one in found])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - typer's own click
        """Return a command; fail for a file, None if there is neither."""
        if (found := super().get_command(ctx, cmd_name)) is None and Path(cmd_name).is_file():
            ctx.fail(f"No such command {cmd_name!r}. To replay it: abers replay {cmd_name}")
        return found


def _show(error: Any, command: str) -> None:  # noqa: ANN401 - typer's own click
    """Print what is wrong with the words of a command, what to do, and where more is said."""
    if error.ctx is not None and error.format_message() == error.ctx.get_help():
        typer.echo(error.format_message(), err=True)  # `abers state` without a command of it
        return
    what = error.format_message().partition(" (Possible options: ")[0]
    what = _VALUE.sub(r"\1: ", what).removesuffix(".")
    meant = _guess(what, getattr(error, "possibilities", None) or ())
    command = command if error.ctx is None else error.ctx.command_path
    show_error("; ".join(filter(None, (what, meant, f"see {command} --help"))))


def _guess(what: str, options: Sequence[str]) -> str:
    """Return a question about an option, or a word, that is not among some others."""
    from abers.suggestions import closest  # noqa: PLC0415 - help imports no engine

    if " is not one of " in what:
        word, *known = re.findall("'[^']*'", what)
    else:
        word, known = what.rpartition(" ")[2], [*options]
    near = closest(word, known)
    return f"did you mean {near}?" if near else ""


class GroupedCommand(TyperCommand):
    """A command with a section of help for each `rich_help_panel`, without importing rich."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own
        """Read the words of a command; an option in the place of a value is an error.

        Otherwise an option would take the next option as its value, or as its second one.
        """
        params: list[Any] = self.get_params(ctx)
        named = {name: one for one in params for name in one.opts if name[:1] == "-"}
        for at, word in enumerate(args):
            option = named.get(word)
            if option is None or option.is_flag or option.count:
                continue
            values = args[at + 1 : at + 1 + option.nargs]
            after = next((f" before {one}" for one in values if one in named), "")
            if option.nargs == 1 and after:
                ctx.fail(f"{word} needs a value; write it{after}")
            if option.nargs > 1 and (after or len(values) < option.nargs):
                ctx.fail(f"{word} has {option.nargs} values, {option.metavar}; write all{after}")
        return list(super().parse_args(ctx, args))

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own click
        """Write arguments and options by section, those without a group last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                kind = "Arguments" if param.param_type_name == "argument" else "Options"
                name = getattr(param, "rich_help_panel", None) or kind
                sections.setdefault(name, []).append(record)
        for name in sorted(sections, key="Options".__eq__):
            with formatter.section(name):
                formatter.write_dl(sections[name])


def detail_of(*, quiet: bool, verbose: bool) -> Any:  # noqa: ANN401 - a type of the engine
    """Return how much is printed; raise a ParameterError for two answers at once."""
    if quiet and verbose:
        from abers.exceptions import ParameterError  # noqa: PLC0415 - help imports no engine

        msg = "--quiet does not go with --verbose; leave one of them out"
        raise ParameterError(msg)
    return "answers" if quiet else "more" if verbose else "usual"


PositiveOption = Annotated[
    list[str] | None,
    declared_option("--positive", more="May be given several times."),
]
TimezoneOption = Annotated[
    str | None,
    declared_option("--timezone", more='A name such as "Europe/Berlin" or "UTC".'),
]
TaskOption = Annotated[
    str | None,
    declared_option("--task", more="binary (default), multiclass (see --score) or regression."),
]
ScoresOption = Annotated[
    Literal["any", "probability", "logit", "percent"] | None,
    declared_option(
        "--scores",
        more="Of a file they are probabilities by default if they lie in [0, 1], else any. "
        "Percentages become probabilities as they are read.",
        show_default=False,
    ),
]
ProbabilityOption = Annotated[
    Literal["protected", "merged"] | None,
    declared_option(
        "--probability",
        more="protected: a probability with a loss above that of the score by at most a bounded "
        "amount (default if scores are probabilities; for ivap and cvap also if they are logits). "
        "merged: one computed from the interval alone.",
        show_default=False,
    ),
]
DelayOption = Annotated[
    str | None,
    declared_option(
        "--delay",
        more='N further observations of its model (default 50), or a duration such as "6h" or "7d" '
        "of event time. A column of label times needs none.",
    ),
]
SinceOption = Annotated[
    str | None,
    time_option("TIME", "Skip earlier events: RFC 3339 or milliseconds, for topics also @OFFSET."),
]
UntilOption = Annotated[str | None, time_option("TIME", "Skip events at this time or later.")]

"""`abers state`: looking after the state of a service over Kafka.

Governing rule: what is told goes to standard output; nothing is changed by
`list` and `new-key`, and by the others only with nobody in the group.
"""

# ruff: noqa: PLC0415 - what a command needs is imported when it runs

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from abers_connectors.exits import USAGE, fail, sentences, tell

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from abers_connectors.kafka.standing import Standing
    from abers_connectors.kafka.states import States

__all__ = ["state"]

state = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_ConfigPath = Annotated[
    str, typer.Argument(metavar="CONFIG", help="A TOML file with a section [kafka].")
]
_Partitions = Annotated[
    list[int] | None,
    typer.Option("--partition", metavar="N", help="Only this one; may be given several times."),
]


@state.callback()
def _root() -> None:
    """Look after the state of a service over Kafka: what there is, and what to do without it."""


@state.command("list")
def list_(
    config: _ConfigPath,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Say for each partition what there is, and what a restore would start from."""
    with sentences():
        import msgspec

        with _opened(config) as states:
            standings = [states.standing(number) for number in states.numbers()]
        if as_json:
            typer.echo(msgspec.json.encode(standings))
            return
        for one in standings:
            _show(one)


@state.command()
def rebuild(
    config: _ConfigPath,
    *,
    from_inputs: Annotated[
        bool, typer.Option("--from-inputs", help="From the topics of observations and labels.")
    ] = False,
    partition: _Partitions = None,
    since_what_is_there: Annotated[
        bool,
        typer.Option(
            "--since-what-is-there", help="Also if the topics have lost their first records."
        ),
    ] = False,
) -> None:
    """Derive a lost state anew, up to the committed offsets, and publish nothing.

    The topics are read from their beginning, or from the time that kafka.start says.
    """
    with sentences():
        if not from_inputs:
            fail("say what to derive it from: --from-inputs", USAGE)
        with _opened(config) as states:
            lines = states.rebuild(
                states.numbers(partition or ()), since_what_is_there=since_what_is_there
            )
        for line in lines:
            tell(line)


@state.command()
def reset(
    config: _ConfigPath,
    *,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="All that was learned may be lost.")
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", help="Forget this one alone, in every partition.")
    ] = None,
    partition: _Partitions = None,
) -> None:
    """Begin with an empty state at the committed offsets."""
    with sentences():
        with _opened(config) as states:
            numbers = states.numbers(partition or ())
            lines = states.reset(numbers, model, accept_loss=accept_loss)
        for line in lines:
            tell(line)


@state.command("new-key")
def new_key() -> None:
    """Make a key for ABERS_STATE_KEY, under which all states are sealed; it is kept nowhere."""
    from abers_connectors.state_key import new_key as made

    typer.echo(made())


def _opened(config: str) -> AbstractContextManager[States]:
    from abers_connectors.checking import refuse_hindered
    from abers_connectors.config import load
    from abers_connectors.kafka.states import states

    loaded = load(config)
    refuse_hindered(loaded, config)
    return states(loaded)


def _show(one: Standing) -> None:
    tell(f"partition {one.partition}")
    for name, offset in one.committed.items():
        tell(f"  committed  {name}" + (": nothing" if offset is None else f"@{offset}"))
    tell(f"  changelog  {one.changelog} has @{one.start} to @{one.end}")
    for kept in one.snapshots:
        worth = "good" if kept.unfit is None else f"not to be used: {kept.unfit}"
        tell(f"  snapshot   {kept.name}, {kept.size:,} bytes: {worth}")
    for sentence in one.unread:
        tell(f"  unread     {sentence}")
    tell(f"  a restore starts from {one.restore}")

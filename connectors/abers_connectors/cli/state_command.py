"""`abers state`: manage the state of a service over Kafka.

`list` and `new-key` change nothing; the other commands need an empty consumer group.
"""

# ruff: noqa: PLC0415 - a command imports what it needs when it runs

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from abers_connectors.cli.options import CommandGroup, whole_number
from abers_connectors.errors import USAGE, fail, sentences, show
from abers_connectors.runtime.slots import SLOTS

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from abers_connectors.config.model import Config
    from abers_connectors.kafka.state_admin import StateAdmin
    from abers_connectors.runtime.restore import PartitionStatus

__all__ = ["state"]

_MOST = 2**31 - 1  # of the numbers of partitions

state = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)

_ConfigPath = Annotated[
    str, typer.Argument(metavar="CONFIG", help="A TOML file with a section [kafka].")
]
_Partitions = Annotated[
    list[int] | None,
    typer.Option(
        "--partition",
        metavar="N",
        help="Only this partition; can be repeated.",
        parser=whole_number(0, _MOST),
    ),
]


@state.callback()
def _root() -> None:
    """List, verify, rebuild, reset and rescale the state of a service."""


@state.command("list")
def list_(
    config: _ConfigPath,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show offsets, snapshots and the start of a restore by partition."""
    with sentences():
        import msgspec

        with _opened(config) as states:
            standings = [states.status(number) for number in states.numbers()]
        if as_json:
            typer.echo(msgspec.json.encode(standings))
            return
        for one in standings:
            _show_partition(one)


@state.command()
def verify(
    config: _ConfigPath,
    *,
    partition: _Partitions = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Restore each partition, and add up all records by how they ended.

    Events and predictions are added up too. Exit code 78 says that they do not add up.
    """
    with sentences():
        import msgspec

        from abers.exceptions import StateError
        from abers.stream import accounts

        with _opened(config) as states:
            found = states.accounts(states.numbers(partition or ()))
        whole = accounts.total(found.values())
        wrong = [
            f"partition {number}: {sentence}"
            for number, of in found.items()
            for sentence in accounts.unbalanced(of)
        ]
        if as_json:
            parts = {str(number): of for number, of in found.items()}
            typer.echo(
                msgspec.json.encode({"partitions": parts, "total": whole, "unbalanced": wrong})
            )
        else:
            for account in accounts.ACCOUNTS:
                show(account.sentence(whole))
        if wrong:
            raise StateError("\n".join(wrong))


@state.command()
def rebuild(
    config: _ConfigPath,
    *,
    from_inputs: Annotated[
        bool, typer.Option("--from-inputs", help="Rebuild from the input topics.")
    ] = False,
    partition: _Partitions = None,
    allow_truncated_input: Annotated[
        bool,
        typer.Option("--allow-truncated-input", help="Rebuild even if the first records are gone."),
    ] = False,
) -> None:
    """Rebuild a lost state up to the committed offsets.

    Nothing is published. The topics are read from their beginning, or from the time in
    kafka.starting_offset.
    """
    with sentences():
        if not from_inputs:
            fail("choose what to rebuild from: --from-inputs", USAGE)
        with _opened(config) as states:
            lines = states.rebuild(
                states.numbers(partition or ()), allow_truncated_input=allow_truncated_input
            )
        for line in lines:
            show(line)


@state.command()
def reset(
    config: _ConfigPath,
    *,
    accept_data_loss: Annotated[
        bool, typer.Option("--accept-data-loss", help="Permanently delete the state.")
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", help="Reset only this model, in every partition.")
    ] = None,
    partition: _Partitions = None,
) -> None:
    """Start with an empty state at the committed offsets."""
    with sentences():
        with _opened(config) as states:
            numbers = states.numbers(partition or ())
            lines = states.reset(numbers, model, accept_data_loss=accept_data_loss)
        for line in lines:
            show(line)


@state.command()
def rescale(
    config: _ConfigPath,
    *,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions", metavar="N", help="Number of tasks.", parser=whole_number(1, SLOTS)
        ),
    ],
) -> None:
    """Bring the state to more or fewer partitions, where routers run.

    Nothing is processed. The inputs keep their partitions.
    """
    with sentences():
        from abers_connectors.kafka.state_admin import rescale as rescaled

        for line in rescaled(_loaded(config), partitions):
            show(line)


@state.command("new-key")
def new_key() -> None:
    """Print a new key for ABERS_STATE_KEY, which seals all states.

    It is not saved anywhere.
    """
    from abers_connectors.secret import new_key as made

    typer.echo(made())


def _opened(config: str) -> AbstractContextManager[StateAdmin]:
    from abers_connectors.kafka.state_admin import open_state_admin

    return open_state_admin(_loaded(config))


def _loaded(config: str) -> Config:
    from abers_connectors.config.model import load
    from abers_connectors.preflight import require_ready

    loaded = load(config)
    require_ready(loaded, config)
    return loaded


def _show_partition(one: PartitionStatus) -> None:
    show(f"partition {one.partition}")
    for name, offset in one.committed.items():
        show(f"  committed  {name}" + (": nothing" if offset is None else f"@{offset}"))
    show(f"  changelog  {one.changelog} has @{one.start} to @{one.end}")
    for kept in one.snapshots:
        worth = "good" if kept.unfit is None else f"not to be used: {kept.unfit}"
        show(f"  snapshot   {kept.name}, {kept.size:,} bytes: {worth}")
    for sentence in one.unread:
        show(f"  unread     {sentence}")
    show(f"  a restore starts from {one.restore}")

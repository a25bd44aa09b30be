"""The content of a saved state, for `abers inspect`.

Nothing in the file is executed: learners are counted as bytes and not loaded. A sealed file is read
only with its key.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from rich import box
from rich.table import Table

from abers.calibration import VennAbers
from abers.exceptions import ParameterError, StateError
from abers.serialization import is_keyed
from abers.stream import Settings, accounts, snapshot
from abers.stream.learners import SavedLearners
from abers.stream.pending_store import EARLY, FINISHED, PENDING
from abers.stream.state import ProcessorState
from abers_connectors.config.values import duration
from abers_connectors.files import SUFFIXES, suffix_of
from abers_connectors.regular_files import open_regular
from abers_connectors.replay.summary import Means, finite
from abers_connectors.runtime.application import NO_OFFSET, Checkpoint
from abers_connectors.secret import state_key
from abers_connectors.terminal import console, number, score_labels, text_cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers.monitoring import TaskMonitor

__all__ = ["Held", "Inspected", "inspected", "show_inspected"]

_SPANS = (
    *(
        "label_timeout",
        "learn_after",
        "allowed_lateness",
        "max_clock_skew",
        "dedup_ttl",
        "max_jump",
    ),
    *("retire_after", "max_age", "half_life"),
)
"""Settings in milliseconds."""


class Held(msgspec.Struct, frozen=True):
    """Calibrator of one model and segment: its number of labels and its scores."""

    model: str
    segment: str
    labels: int
    scores: Means


class Inspected(msgspec.Struct, frozen=True):
    """Content of a saved state."""

    path: str
    bytes: int
    sealed: bool
    version: str
    settings: dict[str, Any]
    position: Any
    clock: int | None
    counters: dict[str, int]
    accounts: dict[str, int]
    waiting_for_labels: int
    waiting_for_observations: int
    remembered_ids: int
    learner_bytes: int
    held: list[Held]


def inspected(path: str) -> Inspected:
    """Read a saved state; raise a ParameterError if there is no such file, or it holds records.

    A file that is damaged, has an unknown version, is not the state of a processor, or is sealed
    with another key than the one in the environment is a StateError.
    """
    try:
        with open_regular(path) as file:
            blob = file.read()
    except (FileNotFoundError, IsADirectoryError) as error:
        msg = f"{path}: {error.strerror}; name a file that a run saved as state.path"
        raise ParameterError(msg) from None
    if suffix_of(path) in SUFFIXES:
        msg = f"{path}: a file of records is no saved state; `abers replay {path}` reads it"
        raise ParameterError(msg)
    try:
        _refuse_calibrator(blob)
        sealed = is_keyed(blob)
        whole = snapshot.read(blob, state_key() if sealed else None)
        state = ProcessorState(msgspec.structs.replace(whole.settings, learner=None))
        snapshot.load_state(state, whole)
    except StateError as error:
        msg = f"{path}: {error}"
        raise StateError(msg) from None
    store = state.join.store
    return Inspected(
        path=path,
        bytes=len(blob),
        sealed=sealed,
        version=whole.version,
        settings=msgspec.structs.asdict(whole.settings),
        position=whole.position,
        clock=store.clock,
        counters=state.join.counters,
        accounts=_accounts(whole.position, state),
        waiting_for_labels=store.count(PENDING),
        waiting_for_observations=store.count(EARLY),
        remembered_ids=store.count(FINISHED),
        learner_bytes=_learner_bytes(whole),
        held=_held_calibrators(state),
    )


def _learner_bytes(whole: snapshot.Snapshot) -> int:
    saved = whole.components.get(SavedLearners.name)
    return 0 if saved is None else len(msgspec.msgpack.decode(saved.payload, type=bytes))


def _accounts(position: Any, state: ProcessorState) -> dict[str, int]:  # noqa: ANN401 - any
    """Return the accounts of events and predictions, and of the records of a partition."""
    store = state.join.store
    of = accounts.numbers(state.join.counters, store.undecided(), store.count(EARLY))
    try:
        return of | Checkpoint.from_position(position).counts.numbers()
    except StateError:  # a run over files has no account of records
        return of


def _refuse_calibrator(blob: bytes) -> None:
    try:
        labels = len(VennAbers.from_bytes(blob))
    except StateError:
        return
    msg = (
        f"the file is a calibrator with {labels:,} labels, not the state of a run; "
        "VennAbers.from_bytes loads it"
    )
    raise StateError(msg)


def _held_calibrators(state: ProcessorState) -> list[Held]:
    calibrators = state.calibration.calibrators
    none: Sequence[TaskMonitor | None] = [None] * len(calibrators)
    monitors = state.calibration.monitors or none
    return [
        Held(model, segment, calibrators.size(key), _scores(monitor))
        for key, ((model, segment), monitor) in enumerate(
            zip(state.join.names.pairs, monitors, strict=True)
        )
    ]


def _scores(monitor: TaskMonitor | None) -> Means:
    return {} if monitor is None else finite(monitor.views()["calibrated"]) or {}


def show_inspected(found: Inspected) -> None:
    """Print the content of a saved state to standard output."""
    screen = console(stderr=False)
    size = f"{found.path}, {found.bytes:,} bytes, written by abers {found.version}"
    table = Table(title=text_cell(size), box=box.SIMPLE, show_header=False)
    clock = "none" if found.clock is None else f"{found.clock} ({_moment(found.clock)})"
    rows = {
        "clock": clock,
        "position": _position_text(found.position),
        "waiting for labels": f"{found.waiting_for_labels:,}",
        "waiting for observations": f"{found.waiting_for_observations:,}",
        "remembered ids": f"{found.remembered_ids:,}",
        "learners": f"{found.learner_bytes:,} bytes",
        "seal": "under the key" if found.sealed else "a checksum, no key",
    }
    for name, text in rows.items():
        table.add_row(name, text_cell(text))
    table.add_section()
    for name, text in _account_rows(found.accounts):
        table.add_row(name, text_cell(text))
    table.add_section()
    for name, count in found.counters.items():
        if count:
            table.add_row(name.replace("_", " "), f"{count:,}")
    table.add_section()
    usual = msgspec.structs.asdict(Settings())
    for name, value in found.settings.items():
        if value != usual[name]:
            table.add_row(f"setting {name}", text_cell(_setting_text(name, value)))
    screen.print(table)
    held = Table("model", "segment", box=box.SIMPLE)
    names = score_labels({name: None for one in found.held for name in one.scores}, briefly=True)
    for column in ("labels kept", *names.values()):
        held.add_column(column, justify="right")
    for one in found.held:
        scores = (number(one.scores.get(name)) for name in names)
        held.add_row(text_cell(one.model), text_cell(one.segment), f"{one.labels:,}", *scores)
    screen.print(held)


def _account_rows(of: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the accounts in words, and what does not add up."""
    for account in accounts.ACCOUNTS:
        if account.whole in of:
            yield account.whole, account.sentence(of).removesuffix(": none")
    for sentence in accounts.unbalanced(of):
        yield "does not add up", sentence


def _setting_text(name: str, value: Any) -> str:  # noqa: ANN401 - any setting
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return duration(value) if name in _SPANS else str(value)


def _position_text(position: Any) -> str:  # noqa: ANN401 - any position
    """Describe a position: the checkpoint of a Kafka partition, or the records that were read."""
    try:
        at = Checkpoint.from_position(position)
    except StateError:
        return _records_text(position)
    observations, labels = at.next_offsets
    return (
        f"{at.application_id}[{at.partition}] before batch {at.batch}; the changelog "
        f"continues @{at.changelog_offset}, observations @{observations}"
        + ("" if labels == NO_OFFSET else f", labels @{labels}")
    )


def _records_text(position: Any) -> str:  # noqa: ANN401 - any position
    """Describe how far each input was read, wherever that stands in a position."""
    if not isinstance(position, dict):
        return str(position)
    found, open_parts = [], [position.get("source", position)]
    while open_parts:
        part = open_parts.pop(0)
        if "records" in part:
            found.append(f"{part['records']:,} records")
        elif isinstance(part.get("known") or part.get("at"), dict):
            open_parts.append(part.get("known") or part["at"])
        open_parts += [one for one in part.get("inputs", ()) if isinstance(one, dict)]
    read = f"after {' and '.join(found)}" if found else "at the beginning"
    files = position.get("files") or {}
    names = [files[name] for name in ("input.observations", "input.labels") if files.get(name)]
    return f"{read} of {' and '.join(names)}" if names else read


def _moment(milliseconds: int) -> str:
    try:
        return str(datetime.fromtimestamp(milliseconds / 1000, tz=UTC))
    except (OverflowError, ValueError, OSError):
        return "no date"

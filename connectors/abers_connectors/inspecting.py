"""What `abers inspect` says of a saved state.

Governing rule: nothing in the file is executed; the learners in it are counted
as bytes and not opened. A file under a key is read only with that key.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from abers._clocks import NO_CLOCK
from abers._keyed import is_keyed
from abers.calibration import VennAbers
from abers.exceptions import ParameterError, StateError
from abers.stream import snapshot, task_of
from abers_connectors.state_key import state_key
from abers_connectors.summary import Means, finite

if TYPE_CHECKING:
    from abers.stream.tasks import Task

__all__ = ["Held", "Inspected", "inspected"]


class Held(msgspec.Struct, frozen=True):
    """What is held for one model and segment."""

    model: str
    segment: str
    labels: int
    scores: Means


class Inspected(msgspec.Struct, frozen=True):
    """What a file of state says."""

    path: str
    bytes: int
    sealed: bool
    version: str
    settings: dict[str, Any]
    position: Any
    clock: int | None
    counters: dict[str, int]
    waiting_for_labels: int
    waiting_for_observations: int
    remembered_ids: int
    learner_bytes: int
    held: list[Held]


def inspected(path: str) -> Inspected:
    """Read a file of state.

    Parameters
    ----------
    path
        Its name.

    Returns
    -------
    Inspected
        What it says.

    Raises
    ------
    ParameterError
        If there is no such file.
    StateError
        If it is damaged, of an unknown version, or no state of a processor; or if it is sealed
        under a key other than the one in the environment.
    """
    try:
        blob = Path(path).read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        msg = f"{path}: {error.strerror}; name a file that [state] path wrote"
        raise ParameterError(msg) from None
    try:
        _refuse_calibrator(blob)
        sealed = is_keyed(blob)
        whole, state = snapshot.read(blob, state_key() if sealed else None)
        held = _held(task_of(whole.settings), state)
    except StateError as error:
        msg = f"{path}: {error}"
        raise StateError(msg) from None
    waiting, early, finished = (len(store.ids.lengths) // 4 for store in state.stores)
    return Inspected(
        path=path,
        bytes=len(blob),
        sealed=sealed,
        version=whole.version,
        settings=msgspec.structs.asdict(whole.settings),
        position=whole.position,
        clock=max((one.time for one in state.clocks if one.time != NO_CLOCK), default=None),
        counters=state.counters,
        waiting_for_labels=waiting,
        waiting_for_observations=early,
        remembered_ids=finished,
        learner_bytes=len(whole.learners or b""),
        held=held,
    )


def _refuse_calibrator(blob: bytes) -> None:
    try:
        labels = len(VennAbers.from_bytes(blob))
    except StateError:
        return
    msg = (
        f"the file is a calibrator that holds {labels:,} labels, and no state of a run; "
        "VennAbers.from_bytes loads it"
    )
    raise StateError(msg)


def _held(task: Task, state: snapshot.State) -> list[Held]:
    monitors = state.monitors or [None] * len(state.keys)
    return [
        Held(model, segment, len(task.calibrator(calibrator)), _scores(task, monitor))
        for (model, segment), calibrator, monitor in zip(
            state.keys, state.calibrators, monitors, strict=True
        )
    ]


def _scores(task: Task, monitor: Any) -> Means:  # noqa: ANN401 - as it stands in the state
    return {} if monitor is None else finite(task.monitor(monitor).views()["calibrated"]) or {}

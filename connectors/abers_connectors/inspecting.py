"""What `abers inspect` says of a saved state.

Governing rule: nothing in the file is executed; the learners in it are counted
as bytes and not opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from abers.calibration import VennAbers
from abers.exceptions import ParameterError, StateError
from abers.monitoring import BinaryMonitor
from abers.stream import snapshot

__all__ = ["Held", "Inspected", "inspected"]


class Held(msgspec.Struct, frozen=True):
    """What is held for one model and segment."""

    model: str
    segment: str
    labels: int
    log_loss: float | None
    brier: float | None
    ece: float | None


class Inspected(msgspec.Struct, frozen=True):
    """What a file of state says."""

    path: str
    bytes: int
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
        If it is damaged, of an unknown version, or no state of a processor.
    """
    try:
        blob = Path(path).read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        msg = f"{path}: {error.strerror}; name a file that [state] path wrote"
        raise ParameterError(msg) from None
    try:
        _refuse_calibrator(blob)
        whole, state = snapshot.read(blob)
        held = _held(state)
    except StateError as error:
        msg = f"{path}: {error}"
        raise StateError(msg) from None
    waiting, early, finished = (len(store.ids.lengths) // 4 for store in state.stores)
    return Inspected(
        path=path,
        bytes=len(blob),
        version=whole.version,
        settings=msgspec.structs.asdict(whole.settings),
        position=whole.position,
        clock=state.clock,
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


def _held(state: snapshot.State) -> list[Held]:
    monitors = state.monitors or [None] * len(state.keys)
    return [
        Held(model, segment, len(VennAbers.from_bytes(calibrator)), *_scores(monitor))
        for (model, segment), calibrator, monitor in zip(
            state.keys, state.calibrators, monitors, strict=True
        )
    ]


def _scores(monitor: Any) -> tuple[float | None, float | None, float | None]:  # noqa: ANN401
    scores = None if monitor is None else BinaryMonitor.restore(monitor).calibrated
    if scores is None or not scores.count:
        return None, None, None
    return (None if scores.infinite else scores.log_loss), scores.brier, scores.ece

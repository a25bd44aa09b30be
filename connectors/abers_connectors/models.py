"""The models of a stream, with their segments, and what they are called.

Governing rule: wherever models are listed, the one with most labels is first, and each has the same
name; nothing here depends on how many processors share the stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from abers.monitoring import RegressionMonitor
from abers_connectors._means import called, worded
from abers_connectors.summary import finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers.stream import Processor
    from abers.stream.tasks import Monitor
    from abers_connectors.summary import Means

__all__ = [
    "CHANGE",
    "Key",
    "Part",
    "Seen",
    "calibrated",
    "identified",
    "judged",
    "listed",
    "named",
    "parts",
    "seen",
    "titled",
]

Key: TypeAlias = tuple[str, str]
"""Model and segment."""

CHANGE = "change"
"""The test whose episodes are alarms."""


class Part(NamedTuple):
    """A key in one of the processors."""

    processor: Processor
    number: int

    @property
    def monitor(self) -> Monitor:
        """What judges its predictions."""
        return self.processor.monitors[self.number]


class Seen(msgspec.Struct, frozen=True):
    """A model and segment, with what a list of them says.

    Parameters
    ----------
    key
        Which.
    labels
        How many of its predictions were judged.
    rings
        Whether an alarm is open.
    """

    key: Key
    labels: int
    rings: bool


def parts(processors: Iterable[Processor]) -> dict[Key, list[Part]]:
    """Find all models and segments whose predictions are judged, and who judges them."""
    found: dict[Key, list[Part]] = {}
    for processor in processors:
        for number, key in enumerate(processor.keys[: len(processor.monitors)]):
            found.setdefault(key, []).append(Part(processor, number))
    return found


def seen(found: dict[Key, list[Part]]) -> list[Seen]:
    """List what `parts` found, the model with most labels first."""
    some = (
        Seen(key, sum(judged(part.monitor) for part in many), _rings(many))
        for key, many in found.items()
    )
    return sorted(some, key=lambda one: (-one.labels, one.key))


def _rings(many: Sequence[Part]) -> bool:
    tests = (one for part in many for one in part.monitor.tests)
    return any(one.ringing for one in tests if one.name == CHANGE)


def judged(monitor: Any) -> int:  # noqa: ANN401 - of any task
    """Count the predictions that a monitor judged."""
    one = monitor if isinstance(monitor, RegressionMonitor) else monitor.calibrated
    return int(one.count)


def calibrated(many: Sequence[Part]) -> Means | None:
    """Give the mean scores of the calibrated predictions of a key."""
    monitors = [part.monitor for part in many]
    return finite(type(monitors[0]).total(monitors).views()["calibrated"])


def identified(key: Key) -> str:
    """Write a key for a machine."""
    return msgspec.json.encode(key).decode()


def named(key: Key) -> str:
    """Name a key for a person; the only model of a stream may have no name."""
    model, segment = key
    return f"{model} · {segment}" if segment else model


def titled(key: Key, *, rings: bool) -> str:
    """Name a key in a list, and say if an alarm is open."""
    return (named(key) or "default") + (" (alarm)" if rings else "")


def listed(
    found: Sequence[tuple[str, int, Means | None]],
) -> tuple[list[str], list[list[str]]]:
    """List models in a table.

    Parameters
    ----------
    found
        Of each its title, how many of its predictions were judged, and their calibrated means.

    Returns
    -------
    tuple
        The names of the columns, and the rows.

    Examples
    --------
    >>> listed([("fraud", 1200, {"brier": 0.25}), ("spam", 0, None)])
    (['model', 'labels', 'Brier score'], [['fraud', '1,200', '0.2500'], ['spam', '0', '-']])
    """
    told = called({name: None for _, _, means in found for name in means or ()}, briefly=True)
    rows = [
        [title, f"{labels:,}", *(worded(means, name, labels) for name in told)]
        for title, labels, means in found
    ]
    return ["model", "labels", *told.values()], rows

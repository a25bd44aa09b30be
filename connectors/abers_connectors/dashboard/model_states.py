"""States of many models for their list, the most harmful first.

The answers about a model take some milliseconds, so they are made again only after so many more
labels, and of a few models at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers.monitoring import TaskMonitor
    from abers.monitoring.answers import Answers
    from abers_connectors.runtime.model_index import Key, ModelStatus

__all__ = ["ListedStatus", "ModelStates", "StatesOfModel"]

_ORDER = ("no", "partly", "recovering", "undecided", "yes", "waiting")
_SHOWN = ("model", "calibrated")
_RENEWED = 10  # models with answers that a frame makes
_MORE = 100  # answers are made again after one label more in so many
_LAST = 1_000  # models with answers that are made when the stream has ended


class StatesOfModel(NamedTuple):
    """States of the answers by question, and how many of the latest labels are wrong at least.

    `raw_wrong_by` is None where raw scores promise nothing.
    """

    states: Mapping[str, str]
    wrong_by: float
    raw_wrong_by: float | None

    @classmethod
    def of(cls, answers: Answers) -> StatesOfModel:
        """Return what a list says of the answers."""
        raw = None if answers.now is None else answers.now.views.get("raw")
        return cls(
            {one.question: one.state for one in answers.answers},
            answers.wrong_by,
            None if raw is None else raw.wrong_by,
        )


class ListedStatus(NamedTuple):
    """A model in the list; its states are None until its turn comes, and without tests."""

    status: ModelStatus
    found: StatesOfModel | None = None

    @property
    def key(self) -> Key:
        """Model and segment."""
        return self.status.key


class _KnownStates(NamedTuple):
    labels: int
    active: bool
    turn: int  # number of the renewal that made it
    found: StatesOfModel | None


class ModelStates:
    """States of models; one thread renews them, and others may read the list meanwhile."""

    def __init__(self) -> None:
        self.listed: Sequence[ListedStatus] = ()
        """All models, the most harmful first; never changed, only replaced."""
        self._statuses: Sequence[ModelStatus] = ()
        self._known: dict[Key, _KnownStates] = {}
        self._turn = 0

    def renew(
        self,
        statuses: Sequence[ModelStatus],
        monitor: Callable[[Key], TaskMonitor | None],
        most: int = _RENEWED,
    ) -> None:
        """Renew the states of a few models with more labels, of those that wait longest.

        Parameters
        ----------
        statuses
            All models.
        monitor
            Function that returns the monitor of a model, of all processors together.
        most
            Number of models that are renewed at most.
        """
        due = sorted(filter(self._is_due, statuses), key=self._waits_since)[:most]
        self._turn += 1
        for one in due:
            whole = monitor(one.key)
            answers = None if whole is None else whole.answers()
            found = None if answers is None else StatesOfModel.of(answers)
            self._known[one.key] = _KnownStates(one.labels, one.active, self._turn, found)
        if due or statuses is not self._statuses:
            self._statuses = statuses
            self.listed = self._list(statuses)

    def renew_last(
        self, statuses: Sequence[ModelStatus], monitor: Callable[[Key], TaskMonitor | None]
    ) -> None:
        """Renew the states of a stream that has ended."""
        self.renew(statuses, monitor, _LAST)

    def list_only(self, statuses: Sequence[ModelStatus]) -> Sequence[ListedStatus]:
        """Return models with the states that are known."""
        return self.listed if statuses is self._statuses else self._list(statuses)

    def _is_due(self, one: ModelStatus) -> bool:
        known = self._known.get(one.key)
        if known is None:
            return True
        labels = known.labels
        few = labels <= one.labels < labels + labels / _MORE + 1
        return one.active != known.active or not few

    def _waits_since(self, one: ModelStatus) -> int:
        known = self._known.get(one.key)
        return 0 if known is None else known.turn

    def _list(self, statuses: Sequence[ModelStatus]) -> list[ListedStatus]:
        found = [
            ListedStatus(one, self._known[one.key].found if one.key in self._known else None)
            for one in statuses
        ]
        return sorted(found, key=_harm)


def _harm(one: ListedStatus) -> tuple[float, int]:
    """Return what sorts models by harm; those that are equal stay in the order of evidence."""
    if one.found is None:
        return 0.0, len(_ORDER) if not one.status.active else 0
    state = min(_ORDER.index(one.found.states[name]) for name in _SHOWN)
    return -one.found.wrong_by, state

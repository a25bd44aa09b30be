"""The accounts of a stream: how every record, event and prediction ended, or that it waits.

Whatever comes in ends in exactly one way, or waits. So each account has a whole that is the sum of
its parts, at any time, for a processor, a partition, or all of them together:

- records: events, undecodable records, and tombstones; of topics only, each is at most one event;
- events: predictions, duplicate observations, labels learned, duplicate labels, late labels,
  dead letters, and labels that wait;
- predictions: labels learned, labels assumed, expired, evicted, retired with their models, and
  observations that wait.

The counters are part of the state, so they count from its beginning.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ACCOUNTS", "Account", "numbers", "total", "unbalanced"]


class Account(NamedTuple):
    """A whole, and the parts that add up to it, by their names."""

    whole: str
    parts: tuple[str, ...]

    def ends(self, of: Mapping[str, int]) -> str:
        """Return the parts that are not 0, in words and numbers."""
        return ", ".join(f"{of[name]:,} {_words(name)}" for name in self.parts if of[name])

    def sentence(self, of: Mapping[str, int]) -> str:
        """Return the account in words and numbers."""
        return f"{of[self.whole]:,} {self.whole}: {self.ends(of) or 'none'}"


ACCOUNTS = (
    Account("records", ("events", "undecodable", "tombstones")),
    Account(
        "events",
        (
            "predictions",
            "duplicate_observations",
            "learned",
            "duplicate_labels",
            "late_labels",
            "dead_letters",
            "waiting_labels",
        ),
    ),
    Account(
        "predictions",
        ("learned", "assumed", "expired", "evicted", "retired", "waiting_observations"),
    ),
)
"""All accounts."""


def numbers(
    counters: Mapping[str, int], waiting_observations: int, waiting_labels: int
) -> dict[str, int]:
    """Return the wholes and parts of a processor, all but those of records.

    Parameters
    ----------
    counters
        All counters of the processor.
    waiting_observations
        Number of observations that wait for their label, and for which none was assumed.
    waiting_labels
        Number of labels that wait for their observation.

    Examples
    --------
    >>> from abers.stream import Observation, Processor
    >>> processor = Processor()
    >>> _ = processor.process_many([Observation("a", 0, score=0.5)] * 2)
    >>> for account in ACCOUNTS[1:]:
    ...     account.sentence(processor.accounts)
    '2 events: 1 predictions, 1 duplicate observations'
    '1 predictions: 1 waiting observations'
    >>> unbalanced(processor.accounts)
    []
    """
    dead = sum(count for name, count in counters.items() if name.startswith("dead:"))
    return {
        "events": counters["observations"] + counters["labels_in"],
        "observations": counters["observations"],
        "labels": counters["labels_in"],
        "predictions": counters["predictions"],
        "duplicate_observations": counters["duplicate_observations"],
        "learned": counters["labels"],
        "duplicate_labels": counters["duplicate_labels"],
        "late_labels": counters["late_labels"],
        # A label that a learner fails to learn is a dead letter, and calibrators learn it.
        "dead_letters": dead - counters["unlearned"],
        "waiting_labels": waiting_labels,
        "assumed": counters["assumed"],
        "expired": counters["expired"] - counters["retired_observations"],
        "evicted": counters["evicted"],
        "retired": counters["retired_observations"],
        "waiting_observations": waiting_observations,
        "unknown_labels": counters["unknown_labels"] - counters["evicted_labels"],
        "evicted_labels": counters["evicted_labels"],
    }


def total(many: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums of the numbers of several processors or partitions."""
    found = Counter[str]()
    for one in many:
        found.update(one)
    return dict(found)


def unbalanced(of: Mapping[str, int]) -> list[str]:
    """Return a sentence for each account that does not add up; none of an account without whole."""
    return [
        f"{one.sentence(of)}. These are {sum(of[name] for name in one.parts):,}, not "
        f"{of[one.whole]:,}: abers has lost count of them; report this, with the state"
        for one in ACCOUNTS
        if one.whole in of and of[one.whole] != sum(of[name] for name in one.parts)
    ]


def _words(name: str) -> str:
    return name.replace("_", " ")

"""The protocol of a learner.

Governing rule: a learner scores an observation before it learns its label, and
any object with the two methods of `Learner` is one.
"""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Learner"]


class Learner(Protocol):
    """Scores features, and learns from labels that come later."""

    def score(self, x: dict[str, Any]) -> float:
        """Score the features of one observation, whose label is not yet known."""
        ...

    def learn(self, x: dict[str, Any], value: float) -> None:
        """Learn features and label of one observation."""
        ...

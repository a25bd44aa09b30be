"""The protocol of a learner.

Governing rule: a learner scores an observation before it learns its label, and
any object with the two methods of `Learner` is one.
"""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Learner"]


class Learner(Protocol):
    """Scores features, and learns from labels that come later."""

    def score(self, x: dict[str, Any]) -> Any:  # noqa: ANN401
        """Score the features of one observation, whose label is not yet known.

        The score is a number, or for several classes a mapping from class to number.
        """
        ...

    def learn(self, x: dict[str, Any], value: Any) -> None:  # noqa: ANN401
        """Learn features and label of one observation: 0 or 1, a class, or a number."""
        ...

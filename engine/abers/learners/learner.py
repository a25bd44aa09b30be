"""The protocol of a learner.

A learner scores an observation before it learns its label. Any object with the two methods of
`Learner` is one.
"""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Learner"]


class Learner(Protocol):
    """A model that scores features, and learns from labels that arrive later."""

    def score(self, x: dict[str, Any]) -> Any:  # noqa: ANN401
        """Score the features of one observation, before its label is known.

        The score is a number, or for several classes a mapping from class to number.
        """

    def learn(self, x: dict[str, Any], value: Any) -> None:  # noqa: ANN401
        """Learn the features and the label of one observation: 0 or 1, a class, or a number."""

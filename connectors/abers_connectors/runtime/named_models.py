"""Models that have metrics of their own; all others share one name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["OTHERS", "NamedModels"]

OTHERS = "other"
"""Name under which metrics have the sum over all models without metrics of their own."""


class NamedModels:
    """The first models, up to a number.

    The name of a model is decided when something is counted, so no counter ever falls. A model that
    is retired leaves its place to one that is counted next.

    Examples
    --------
    >>> names = NamedModels(2)
    >>> [names.name(model) for model in ("a", "b", "c", "a")]
    ['a', 'b', 'other', 'a']
    >>> names.drop(["a"])
    >>> names.name("c")
    'c'
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[str] = set()

    def __contains__(self, model: str) -> bool:
        """Return whether a model has metrics of its own."""
        return model in self._names

    def name(self, model: str) -> str:
        """Return the name of a model in metrics."""
        if model in self._names:
            return model
        if model == OTHERS or len(self._names) >= self._most:
            return OTHERS
        self._names.add(model)
        return model

    def drop(self, models: Iterable[str]) -> None:
        """Drop models that are retired."""
        self._names.difference_update(models)

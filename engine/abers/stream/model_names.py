"""The numbers of models, and of their segments, in order of appearance."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["ModelNames", "NewNames"]

K = TypeVar("K")


class ModelNames:
    """The models of a stream, and its pairs of model and segment, each with its number.

    Attributes
    ----------
    models, keys
        Number of each model, and of each pair.
    by_number, pairs
        Models, and pairs, by their numbers.
    """

    def __init__(self, models: Sequence[str] = (), keys: Sequence[tuple[str, str]] = ()) -> None:
        self.by_number: list[str] = []
        self.pairs: list[tuple[str, str]] = []
        self.models: dict[str, int] = {}
        self.keys: dict[tuple[str, str], int] = {}
        self.add(models, keys)

    def add(self, models: Sequence[str], keys: Sequence[tuple[str, str]]) -> None:
        """Add new models and pairs, which get the next numbers."""
        self.models.update(zip(models, count(len(self.models)), strict=False))
        self.keys.update(zip(keys, count(len(self.keys)), strict=False))
        self.by_number += models
        self.pairs += keys

    def without(self, gone: Collection[int]) -> ModelNames:
        """Return the names without the models of some numbers; the others are renumbered."""
        if not gone:
            return self
        models = [name for name, number in self.models.items() if number not in gone]
        kept = {*models}
        return ModelNames(models, [pair for pair in self.pairs if pair[0] in kept])


class NewNames(Generic[K]):
    """Names that a batch brings, with the numbers that follow those of known names.

    Examples
    --------
    >>> names = NewNames({"a": 0})
    >>> names.numbers(["b", "a", "b"]).tolist(), names.new
    ([1, 0, 1], {'b': 1})
    """

    def __init__(self, known: Mapping[K, int]) -> None:
        self._known = known
        self.new: dict[K, int] = {}

    def __len__(self) -> int:
        """Return the number of names, known and new."""
        return len(self._known) + len(self.new)

    def __contains__(self, name: object) -> bool:
        """Return whether a name is known or new."""
        return name in self._known or name in self.new

    def number(self, name: K) -> int:
        """Return the number of a name, which is new if it is not known."""
        found = self._known.get(name)
        return self.new.setdefault(name, len(self)) if found is None else found

    def numbers(self, names: Sequence[K]) -> NDArray[np.uint32]:
        """Return the numbers of names."""
        found = [*map(self._known.get, names)]
        if None in found:
            found = [*map(self.number, names)]
        return np.array(found, np.uint32)

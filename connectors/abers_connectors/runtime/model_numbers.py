"""Numbers of the models in an index of ids; they are limited, and used again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["ModelNumbers"]

_SHARE = 4  # of the numbers come between two searches, as models


class ModelNumbers:
    """The models of the ids of an index, at most so many.

    Which models have numbers depends only on their order, and on the numbers that are in use when
    none is free.

    Examples
    --------
    >>> numbers = ModelNumbers(2)
    >>> [numbers.of(model, in_use=lambda: [1]) for model in ("a", "b", "b", "c")]
    [0, 1, 1, 0]
    >>> numbers.names
    ['c', 'b']
    """

    def __init__(self, most: int, names: Sequence[str | None] = (), since: int = 0) -> None:
        self._most = most
        self.names: list[str | None] = [*names]
        """By number; None where a number is free."""
        self._numbers = {name: number for number, name in enumerate(names) if name is not None}
        self._free = self._without_name()
        self.since = since
        """How many further models came since the last search for free numbers."""

    def __getitem__(self, model: str) -> int:
        """Return the number of a model that has one."""
        return self._numbers[model]

    def of(self, model: str, in_use: Callable[[], Iterable[int]]) -> int | None:
        """Return the number of a model, a new one if it has none; None if all are in use.

        `in_use` is called when no number is free, but not again before a quarter as many further
        models came as there are numbers: it takes long.
        """
        number = self._numbers.get(model)
        return self._new(model, in_use) if number is None else number

    def _new(self, model: str, in_use: Callable[[], Iterable[int]]) -> int | None:
        self.since += 1
        if len(self.names) < self._most:
            self._free.append(len(self.names))
            self.names.append(None)
        if not self._free and _SHARE * self.since > self._most:
            self._keep({*in_use()})
        if not self._free:
            return None
        number = self._free.pop()
        self.names[number] = model
        self._numbers[model] = number
        return number

    def _keep(self, numbers: set[int]) -> None:
        """Keep only the models with these numbers."""
        self.since = 0
        self._numbers = {name: one for name, one in self._numbers.items() if one in numbers}
        self.names = [name if name in self._numbers else None for name in self.names]
        self._free = self._without_name()

    def _without_name(self) -> list[int]:
        """Return the free numbers, the first to use last."""
        return [number for number, name in enumerate(self.names) if name is None][::-1]

"""Mondrian calibration: a calibrator of its own for each category.

Categories share nothing but the way in which their calibrators are made.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from abers.arrays import unmasked
from abers.exceptions import InputError, ParameterError
from abers.serialization import CopiedWhole
from abers.validation import count, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from numpy.typing import ArrayLike

    from abers.base import Calibrator

__all__ = ["Mondrian"]

_CATEGORIES = 10_000


C = TypeVar("C", bound="Calibrator[Any, Any, Any, Any]")


class Mondrian(CopiedWhole, Generic[C]):
    """Calibrate each category by itself, so that no group pays for another.

    Parameters
    ----------
    make_calibrator
        Makes an empty calibrator, such as `VennAbers` or a `functools.partial` of it.
    max_categories
        Largest number of categories; memory grows with each.

    Raises
    ------
    ParameterError
        If `max_categories` is not a positive whole number.

    Notes
    -----
    **Guarantee.** With `VennAbers`, within each category that of `VennAbers`: if the category of
    an observation is fixed by its object and the observations are exchangeable, one of `p0` and
    `p1` is perfectly calibrated among the observations of the category.

    A category that was never learned is predicted by an empty calibrator, and takes up nothing.

    References
    ----------
    Vovk, Gammerman & Shafer (2005), Algorithmic learning in a random world, section 4.5.

    Examples
    --------
    >>> from abers import VennAbers
    >>> from abers.batch import Mondrian
    >>> calibrator = Mondrian(VennAbers)
    >>> calibrator.learn_many(["new", "new", "old", "old"], [0.2, 0.6, 0.2, 0.6], [0, 1, 1, 1])
    >>> calibrator.predict_one("new", 0.2), calibrator.predict_one("old", 0.2)
    (VennInterval(p0=0.0, p1=0.5), VennInterval(p0=0.5, p1=1.0))
    >>> calibrator.predict_one("unheard of", 0.2)
    VennInterval(p0=0.0, p1=1.0)
    """

    def __init__(self, make_calibrator: Callable[[], C], max_categories: int = _CATEGORIES) -> None:
        self._make, self._most = make_calibrator, count(max_categories, "max_categories", 1)
        self._calibrators: dict[Hashable, C] = {}

    @property
    def categories(self) -> tuple[Hashable, ...]:
        """The categories learned, in the order of their first label."""
        return tuple(self._calibrators)

    def __len__(self) -> int:
        """Return the number of categories learned."""
        return len(self._calibrators)

    def __bool__(self) -> bool:
        """Be true even when it is empty, so that `calibrator or default` keeps it."""
        return True

    def __getitem__(self, category: Hashable) -> C:
        """Return the calibrator of a category, to be inspected; a new category is empty."""
        found = self._calibrators.get(_checked(category))
        return self._make() if found is None else found

    def predict_one(self, category: Hashable, score: float, **options: Any) -> Any:
        """Predict for one score of a category.

        Parameters
        ----------
        category
            Anything hashable.
        score, options
            As the calibrators' `predict_one` takes them.

        Returns
        -------
        object
            What the category's calibrator predicts.

        Raises
        ------
        InputError
            If an argument cannot be used.
        """
        return self[category].predict_one(score, **options)

    def learn_one(self, category: Hashable, score: float, label: int, **options: Any) -> None:
        """Learn one labelled observation of a category.

        Parameters
        ----------
        category
            Anything hashable.
        score, label, options
            As the calibrators' `learn_one` takes them.

        Raises
        ------
        ParameterError
            If the category would be one too many.
        InputError
            If an argument cannot be used; nothing is learned then.
        """
        calibrator = self[category]
        self._check_count([category])
        calibrator.learn_one(score, label, **options)
        self._calibrators[category] = calibrator

    def learn_many(
        self,
        categories: Iterable[Hashable],
        scores: ArrayLike,
        labels: ArrayLike,
        **columns: Sequence[Any] | ArrayLike,
    ) -> None:
        """Learn arrays of observations; as `learn_one` for each, or nothing if a row is bad.

        Parameters
        ----------
        categories
            n categories.
        scores, labels
            Arrays of shape (n,), or of n rows where an observation has several scores.
        columns
            Arrays of n rows, such as `weights` and `times`, as the calibrators' `learn_many`
            takes them.

        Raises
        ------
        ParameterError
            If columns differ in length, or there would be too many categories.
        InputError
            If a row cannot be used; the message names the category, and the row among its own.
        """
        rows = _rows_by_category(categories)
        given = {"scores": scores, "labels": labels, **columns}
        arrays = {name: np.asarray(unmasked(column)) for name, column in given.items()}
        n = sum(map(len, rows.values()))
        for name, array in arrays.items():
            if array.ndim == 0 or len(array) != n:
                msg = f"{name} has shape {array.shape}, not a row for each of {n} categories"
                raise ParameterError(msg)
        self._check_count(rows)
        learned = {category: self._copy(category) for category in rows}
        for category, own in rows.items():
            part = {name: array[own] for name, array in arrays.items()}
            score, label = part.pop("scores"), part.pop("labels")
            try:
                learned[category].learn_many(score, label, **part)
            except InputError as error:
                msg = f"category {shown(category)}: {error}"
                raise type(error)(msg) from None
        self._calibrators.update(learned)

    def _copy(self, category: Hashable) -> C:
        found = self._calibrators.get(category)
        return self._make() if found is None else copy.deepcopy(found)

    def _check_count(self, categories: Iterable[Hashable]) -> None:
        new = [category for category in categories if category not in self._calibrators]
        if len(self._calibrators) + len(new) > self._most:
            msg = (
                f"category {shown(new[self._most - len(self._calibrators)])} is one more than "
                f"max_categories={self._most}; pool rare categories, or allow more"
            )
            raise ParameterError(msg)


def _checked(category: Hashable) -> Hashable:
    try:
        hash(category)
    except TypeError:
        msg = f"category {shown(category)} is not hashable; give a string, a number or a tuple"
        raise ParameterError(msg) from None
    if category != category:  # noqa: PLR0124 - NaN is never found again
        msg = f"category {shown(category)} does not equal itself; give missing values a name"
        raise ParameterError(msg)
    return category


def _rows_by_category(categories: Iterable[Hashable]) -> dict[Hashable, list[int]]:
    rows: dict[Hashable, list[int]] = {}
    for i, category in enumerate(categories):
        rows.setdefault(_checked(category), []).append(i)
    return rows

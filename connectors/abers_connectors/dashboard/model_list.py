"""List of models: the worst of all for a page, and any part of it for a search or a program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from abers_connectors.dashboard.live_models import models_table
from abers_connectors.dashboard.models import key_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers_connectors.dashboard.model_states import ListedStatus, StatesOfModel
    from abers_connectors.dashboard.models import ModelStatus

__all__ = [
    "LISTED",
    "LONGEST",
    "ListedModel",
    "ModelList",
    "listed_sentence",
    "model_list",
]

LISTED = 20
"""Models that a page lists; of more it lists the worst, and has a field to search the others."""

LONGEST = 10_000
"""Models in one answer to a program at most: about 2 MB."""


class ListedModel(msgspec.Struct, frozen=True):
    """Model and segment with its answers and its strongest evidence, in numbers.

    Evidence is null without tests; states and `wrong_by` are null until their turn comes, too.
    """

    model: str
    segment: str
    labels: int
    alarm_active: bool
    alarms: int
    view: str
    test: str
    evidence_log10: float | None
    evidence_threshold_log10: float | None
    states: Mapping[str, str] | None  # of the answers, by question
    wrong_by: float | None  # number of the latest labels by which predictions are off at least

    @classmethod
    def of(cls, one: ModelStatus, found: StatesOfModel | None = None) -> ListedModel:
        """Return the entry of a model, with its answers if they are known."""
        tens = [value / math.log(10.0) for value in (one.log_wealth, one.log_threshold)]
        return cls(
            *one.key,
            one.labels,
            one.active,
            one.alarms,
            one.view,
            one.test,
            *(tens if one.test else [None, None]),
            *((None, None) if found is None else (found.states, found.wrong_by)),
        )


class ModelList(msgspec.Struct, frozen=True):
    """Part of the list of all models, for programs and for a page.

    `listed` says which models these are, and `table` has the same for a page, as HTML.
    """

    total: int  # number of all models
    found: int  # number of those that the search finds
    models: Sequence[ListedModel]
    listed: str
    table: str


def model_list(
    models: Sequence[ListedStatus], search: str = "", offset: int = 0, limit: int = LISTED
) -> ModelList:
    """Return a part of the models, in order; a search finds a part of a name in any case.

    Examples
    --------
    >>> from abers_connectors.dashboard.model_states import ListedStatus
    >>> from abers_connectors.runtime.model_index import ModelStatus
    >>> names = ("fraud-uk", "fraud-de", "spam")
    >>> models = [ListedStatus(ModelStatus(key=(name, ""), labels=3)) for name in names]
    >>> found = model_list(models, "FRAUD", limit=1)
    >>> [one.model for one in found.models], found.listed
    (['fraud-uk'], '2 of 3 models have this in their names; the first is listed.')
    """
    part = search.casefold()
    found = [one for one in models if part in key_name(one.key).casefold()] if part else models
    some = found[offset : offset + limit]
    sentence = listed_sentence(len(models))
    if search:
        sentence = _found_sentence(len(models), len(found), len(some))
    listed = [ListedModel.of(*one) for one in some]
    table = models_table(some[:LISTED], sentence, None)
    return ModelList(len(models), len(found), listed, sentence, table)


def listed_sentence(total: int) -> str:
    """Return which models a page lists; empty if it lists all."""
    if total <= LISTED:
        return ""
    return (
        f"The {LISTED} worst of {total:,} models, by how many of their latest labels are wrong, at "
        "least. Type a part of a name to find any other."
    )


def _found_sentence(total: int, found: int, listed: int) -> str:
    if not found:
        return f"None of {total:,} models has this in its name."
    verb = "has this in its name" if found == 1 else "have this in their names"
    sentence = f"{found:,} of {total:,} models {verb}"
    if listed == found:
        return f"{sentence}."
    part = "the first is" if listed == 1 else f"the worst {listed:,} are"
    return f"{sentence}; {part} listed."

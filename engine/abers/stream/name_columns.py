"""The names of models and segments in a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.backends import core

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.stream.column_types import Column
    from abers.stream.columns import Events

    Numbers = NDArray[np.uint32]

__all__ = ["BatchNames", "names_of"]


class BatchNames(NamedTuple):
    """The models of a batch, and the pairs of model and segment of its observations.

    Each name is listed once, in order of appearance, and each row has its number in that order.
    """

    models: list[str]
    model: Numbers
    pairs: list[tuple[str, str]]
    pair: Numbers


def names_of(events: Events, most: int) -> BatchNames | None:
    """Return the names of a batch; None if one is not a string, or longer than `most` bytes."""
    observed = ~events.labels
    models, segments = _distinct(events.models, most), _distinct(events.segments[observed], most)
    if models is None or segments is None:
        return None
    (model, names), (segment, parts) = models, segments
    if len(names) == len(parts) == 1:  # sorting takes longer than all the rest
        return BatchNames(names, model, [(names[0], parts[0])], segment)
    # A pair is one number, as there can be too many of them for a table.
    pairs = model[observed].astype(np.int64) * len(parts) + segment
    found, first, pair = np.unique(pairs, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.uint32)
    number[order] = np.arange(len(order), dtype=np.uint32)
    of, part = (one.tolist() for one in np.divmod(found[order], len(parts)))
    named = [(names[one], parts[other]) for one, other in zip(of, part, strict=True)]
    return BatchNames(names, model, named, number[pair])


def _distinct(texts: Column, most: int) -> tuple[Numbers, list[str]] | None:
    numbers = np.empty(len(texts), np.uint32)
    names = core.distinct(texts.tolist(), numbers, most)
    return None if names is None else (numbers, names)

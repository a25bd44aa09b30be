"""The first rows of a file, which say what its columns are and where its labels stand."""

from __future__ import annotations

import math
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.stream.cells import Fields
from abers.stream.readers import is_no_label
from abers_connectors.sources.base import SourceOptions
from abers_connectors.sources.registry import open_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["SAMPLE", "FirstLabels", "rows_from_the_first_label", "rows_of"]

SAMPLE = 100  # rows


def rows_of(
    file: str, columns: Sequence[str], csv: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a file, each with those of some columns that have a value in it.

    `csv` says how CSV is read, as `SourceOptions` takes it.
    """
    fields = Fields(
        id="row", time="row", model="const:any", score="const:0", passthrough=tuple(columns)
    )
    for batch in open_source(file, SourceOptions(fields, **csv)).batches():
        for row in () if batch.events.extra is None else batch.events.extra:
            yield {name: one for name, one in (row or {}).items() if not _is_none(one)}


def _is_none(value: object) -> bool:
    """Return whether a value stands for none, in a column of numbers or of texts."""
    return (isinstance(value, float) and math.isnan(value)) or is_no_label(value)


class FirstLabels(NamedTuple):
    """What the rows of a file say up to its first labels."""

    scored: bool  # a row up to the first label has a score
    labels_alone: bool  # there are labels, and no row of the first ones has a score too


def rows_from_the_first_label(
    rows: Iterable[Mapping[str, Any]], scores: Iterable[str], label: str
) -> FirstLabels:
    """Return what rows say: as many as it takes to the first label, and the sample from there.

    Examples
    --------
    >>> rows_from_the_first_label([{"p": 0.5}] * 500 + [{"y": 1}], ["p"], "y")
    FirstLabels(scored=True, labels_alone=True)
    >>> rows_from_the_first_label([{"p": 0.5, "y": 1}, {"y": 1}], ["p"], "y")
    FirstLabels(scored=True, labels_alone=False)
    """
    left, scores = iter(rows), {*scores}
    scored = False
    for row in left:
        scored = scored or not scores.isdisjoint(row)
        if label in row:
            sample = chain([row], islice(left, SAMPLE - 1))
            of_labels = (one for one in sample if label in one)
            return FirstLabels(scored, all(scores.isdisjoint(one) for one in of_labels))
    return FirstLabels(scored, labels_alone=False)

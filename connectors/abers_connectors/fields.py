"""From a record to an event: which field is what.

Governing rule: what is read where is decided once, when the mapping is
compiled. Batches with values of the right types in top-level fields are read at
once; everything else goes the general way, which gives the same events and says
what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from abers.stream import Label, Observation
from abers_connectors import _columns, values
from abers_connectors._paths import getter, missing, optional, required, root
from abers_connectors._typed import Typed, typed
from abers_connectors.reads import Reads, binary
from abers_connectors.records import Labelled, Row

if TYPE_CHECKING:
    from abers.stream import Events
    from abers_connectors._columns import Columns
    from abers_connectors._paths import Record

__all__ = ["Fields", "Kind", "Mapper", "labelled", "labels", "mixed"]

T = TypeVar("T")
FromRecord: TypeAlias = Callable[["Record", int], T]


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Which field of a record is what.

    Each is the name of a field, a dotted path into nested ones ("payload.id"), or a constant
    ("const:fraud"); id and time may be "row", the number of the record.

    Parameters
    ----------
    id, time, model, score, label
        Where these are; a record without a model is of the model "default".
        The scores of several classes are one object, or each is in a field of its own, by class.
    segment
        Where the segment is, if there are any.
    x
        Where the features are, or which fields they are, if a learner scores them.
    extra
        Fields that are passed through to the prediction.
    """

    id: str = "id"
    time: str = "time"
    model: str = "model"
    segment: str | None = None
    score: str | Mapping[str, str] = "score"
    x: str | Sequence[str] | None = None
    label: str = "label"
    extra: Sequence[str] = ()

    @property
    def scored(self) -> tuple[str, ...]:
        """Where a score or features are: a record that has one of them is an observation."""
        score = (self.score,) if isinstance(self.score, str) else tuple(self.score.values())
        return (*score, *self.features)

    @property
    def features(self) -> Sequence[str]:
        """Where features are, one path or many."""
        return [self.x] if isinstance(self.x, str) else self.x or ()


@dataclass(frozen=True)
class Mapper:
    """A compiled mapping.

    Parameters
    ----------
    row
        From a record and its number to a row, or a BadRecordError.
    columns
        From columns to the events of all rows, or None if they need a closer look.
    typed
        How plain JSON is read at once; None if the mapping is not plain.
    reads
        The top-level fields that are looked at.
    needs
        Of each of these groups of paths a record has at least one.
    """

    row: FromRecord[Row]
    columns: Callable[[Columns], Events | None]
    typed: Typed | None
    reads: frozenset[str]
    needs: tuple[tuple[str, ...], ...]


class Kind(Protocol):
    """What the records of an input are: `mixed`, `labels` or `labelled`."""

    def __call__(self, fields: Fields, reads: Reads | None = None, *, text: bool = False) -> Mapper:
        """Compile a mapping."""
        ...


def mixed(fields: Fields, reads: Reads | None = None, *, text: bool = False) -> Mapper:
    """Compile the mapping of an input whose records are observations or labels.

    Parameters
    ----------
    fields
        Which field is what.
    reads
        How scores and labels are read, by default those of a binary task.
    text
        Whether all values are texts, as in CSV, where features that read as numbers are such.

    Returns
    -------
    Mapper
        A record with a score or features is an observation, one with only a label a label.

    Examples
    --------
    >>> row = mixed(Fields()).row
    >>> row({"id": "a1", "time": 5, "score": 0.5}, 1).score
    0.5
    >>> row({"id": "a1", "time": 9, "label": True}, 2).value
    1
    """
    reads = reads or binary()
    observe, label = _observer(fields, reads, text=text), _labeller(fields, reads)
    scored = fields.scored
    known, given = [getter(path) for path in scored], getter(fields.label)

    def row(record: Record, number: int) -> Row:
        if any(values.is_given(get(record, number)) for get in known):
            return observe(record, number)
        if values.is_given(given(record, number)):
            return label(record, number)
        raise missing(*scored, fields.label)

    return Mapper(
        row,
        _columns.mixed(fields, reads),
        typed(fields, reads),
        _reads(fields, *scored, fields.label),
        ((fields.id,), (fields.time,), (*scored, fields.label)),
    )


def labels(fields: Fields, reads: Reads | None = None, *, text: bool = False) -> Mapper:
    """Compile the mapping of an input that holds labels only; see `mixed`."""
    del text  # a label reads the same either way
    reads = reads or binary()
    return Mapper(
        _labeller(fields, reads),
        _columns.labels(fields, reads),
        typed(fields, reads),
        frozenset(_roots(fields.id, fields.time, fields.model, fields.label)),
        ((fields.id,), (fields.time,), (fields.label,)),
    )


def labelled(fields: Fields, reads: Reads | None = None, *, text: bool = False) -> Mapper:
    """Compile the mapping of an input whose records are observations with labels; see `mixed`."""
    reads = reads or binary()
    observe = _observer(fields, reads, text=text)
    value = required(fields.label, reads.label)

    def row(record: Record, number: int) -> Row:
        return Labelled(observe(record, number), value(record, number))

    scored = fields.scored
    return Mapper(
        row,
        _columns.labelled(fields, reads),
        typed(fields, reads),
        _reads(fields, *scored, fields.label),
        ((fields.id,), (fields.time,), scored, (fields.label,)),
    )


def _observer(fields: Fields, reads: Reads, *, text: bool) -> FromRecord[Observation]:
    identity, time = required(fields.id, values.identity), required(fields.time, values.time)
    model, segment = _name(fields.model, "model"), _name(fields.segment, "segment")
    score, x = _score(fields, reads), _features(fields, text=text)
    extra = _gathered(fields.extra, text=text)

    def observe(record: Record, number: int) -> Observation:
        value, found = score(record, number), x(record, number)
        if value is None and found is None:
            raise missing(*fields.scored)
        return Observation(
            identity(record, number),
            time(record, number),
            model(record, number) or values.DEFAULT_MODEL,
            value,
            found,
            segment(record, number) or "",
            None,
            extra(record, number),
        )

    return observe


def _labeller(fields: Fields, reads: Reads) -> FromRecord[Label]:
    identity, time = required(fields.id, values.identity), required(fields.time, values.time)
    model, label = _name(fields.model, "model"), required(fields.label, reads.label)

    def event(record: Record, number: int) -> Label:
        return Label(
            identity(record, number),
            time(record, number),
            model(record, number) or values.DEFAULT_MODEL,
            label(record, number),
        )

    return event


def _score(fields: Fields, reads: Reads) -> FromRecord[Any]:
    if isinstance(fields.score, str):
        return optional(fields.score, reads.score)
    found = [(name, path, optional(path, values.score)) for name, path in fields.score.items()]

    def scores(record: Record, number: int) -> dict[str, float] | None:
        given = [(name, path, get(record, number)) for name, path, get in found]
        absent = [path for _, path, value in given if value is None]
        if absent and len(absent) < len(found):
            raise missing(*absent)
        return {name: value for name, _, value in given if value is not None} or None

    return scores


def _name(path: str | None, name: str) -> FromRecord[str | None]:
    if path is None:
        return lambda _record, _number: None
    return optional(path, lambda value: values.text(value, name, "bad-model"))


def _features(fields: Fields, *, text: bool) -> FromRecord[dict[str, Any] | None]:
    if isinstance(fields.x, str):
        return optional(fields.x, values.features)
    gathered, names = _gathered(fields.features, text=text), fields.features

    def found(record: Record, number: int) -> dict[str, Any] | None:
        features = gathered(record, number)
        if features is not None and len(features) < len(names):
            raise missing(next(name for name in names if name not in features))
        return features

    return found


def _gathered(paths: Sequence[str], *, text: bool) -> FromRecord[dict[str, Any] | None]:
    """Gather the fields that are there; None if none of them is."""
    read = values.number_or_text if text else values.unchanged
    found = [(path, optional(path, read)) for path in paths]

    def gathered(record: Record, number: int) -> dict[str, Any] | None:
        given = {path: get(record, number) for path, get in found}
        if None in given.values():
            given = {path: value for path, value in given.items() if value is not None}
        return given or None

    return gathered


def _reads(fields: Fields, *paths: str) -> frozenset[str]:
    more = [fields.segment] if fields.segment else []
    return frozenset(_roots(fields.id, fields.time, fields.model, *more, *fields.extra, *paths))


def _roots(*paths: str) -> list[str]:
    return [name for path in paths for name in root(path)]

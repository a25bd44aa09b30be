"""Compiled mappings of record fields to events.

A mapping is compiled once per input. A batch whose fields are plain is converted column by column;
any other batch goes record by record, which gives the same events and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from abers.exceptions import ParameterError
from abers.stream import Label, Observation
from abers.stream.readers import (
    CellReader,
    ExtraReader,
    FeaturesReader,
    IdReader,
    NameReader,
    PlainReader,
    ScoreReader,
)
from abers.stream.schema import Schema
from abers.stream.schema_columns import DEFAULT_MODEL, Readers, label_before_observation
from abers_connectors.mapping import columns
from abers_connectors.mapping.fields import (
    Fields,
    known,
    label_without_time,
    missing,
    optional,
    required,
    root,
)
from abers_connectors.mapping.rows import LabelledObservation, Row
from abers_connectors.mapping.typed_record import TypedRecord, typed_record
from abers_connectors.suggestions import did_you_mean

if TYPE_CHECKING:
    from abers_connectors.mapping.columns import EventBuilder
    from abers_connectors.mapping.fields import Record

__all__ = ["Mapper", "MapperFactory", "labelled", "labels", "mixed"]

T = TypeVar("T")
FromRecord: TypeAlias = Callable[["Record", int], T]


@dataclass(frozen=True)
class Mapper:
    """A compiled mapping."""

    row: FromRecord[Row]
    """Maps a record and its number to a row, or raises a BadRecordError."""
    columns: EventBuilder
    schema: Schema
    typed: TypedRecord | None  # type that plain JSON is decoded into, if the mapping is plain
    reads: frozenset[str]  # top-level fields
    needs: tuple[tuple[str, ...], ...]  # a record has at least one path of each group
    names: tuple[str, ...] = ()  # paths of model and segment, which a record may lack

    def require_columns(self, name: str, columns: Sequence[str]) -> None:
        """Raise a ParameterError for an input without a column that the mapping needs.

        A model or a segment may be missing, but not be there under a name in another case.
        """
        for paths in self.needs:
            roots = [root(path) for path in paths]
            if any(not names or not set(names).isdisjoint(columns) for names in roots):
                continue
            hint = next(filter(None, (did_you_mean(path, columns) for path in paths)), "")
            msg = (
                f"{name} has no column {' or '.join(paths)}; its columns are "
                f"{', '.join(columns)}; name the right one in [input.fields]{hint}"
            )
            raise ParameterError(msg)
        for path in self.names:
            same = [one for one in columns if one.casefold() == path.casefold()]
            if same and path not in same:
                msg = (
                    f"{name} has no column {path}, but {' and '.join(same)}; name the right one in "
                    "[input.fields], or rename it"
                )
                raise ParameterError(msg)


class MapperFactory(Protocol):
    """Compiles the mapping of one kind of records: `mixed`, `labels` or `labelled`."""

    def __call__(
        self, fields: Fields, readers: Readers | None = None, *, text: bool = False
    ) -> Mapper:
        """Compile a mapping."""
        ...


def mixed(fields: Fields, readers: Readers | None = None, *, text: bool = False) -> Mapper:
    """Compile the mapping of an input whose records are observations or labels.

    A record with a score or features is an observation, one with only a label is a label. If all
    values are text, as in CSV, features that parse as numbers are numbers. By default scores and
    labels are those of a binary task.

    >>> row = mixed(Fields()).row
    >>> row({"id": "a1", "time": 5, "score": 0.5}, 1).score
    0.5
    >>> row({"id": "a1", "time": 9, "label": True}, 2).value
    1
    """
    readers = readers or Readers.binary()
    observation, label = (
        _observation_reader(fields, readers, text=text),
        _label_reader(fields, readers),
    )
    scored = fields.scored
    get_scored = [optional(path, PlainReader().one) for path in scored]
    get_label = optional(fields.label, PlainReader().one)

    def row(record: Record, number: int) -> Row:
        if any(get(record, number) is not None for get in get_scored):
            return observation(record, number)
        if get_label(record, number) is not None:
            return label(record, number)
        raise missing(*scored, fields.label)

    schema = Schema(fields, readers, text=text)
    return _new_mapper(schema, fields, row, columns.mixed_builder, (*scored, fields.label))


def labels(fields: Fields, readers: Readers | None = None, *, text: bool = False) -> Mapper:
    """Compile the mapping of an input that has labels only; see `mixed`."""
    readers = readers or Readers.binary()
    read = replace(fields, segment=None, passthrough=())  # which no label has
    schema = Schema(read, readers, "labels", text=text)
    row = _label_reader(fields, readers)
    return _new_mapper(schema, read, row, columns.label_builder, (fields.label,))


def labelled(fields: Fields, readers: Readers | None = None, *, text: bool = False) -> Mapper:
    """Compile the mapping of an input whose records are observations with labels; see `mixed`.

    A record without a label is an observation whose label is not known yet.
    """
    readers = readers or Readers.binary()
    observation = _observation_reader(fields, readers, text=text)
    value, timed = known(fields.label, readers.label.one), fields.label_time
    time = (lambda *_: None) if timed is None else optional(timed, readers.time.one)

    def row(record: Record, number: int) -> Row:
        observed, label = observation(record, number), value(record, number)
        if timed is None:
            return LabelledObservation(observed, label)
        if label is None:
            return LabelledObservation(observed, None, observed.time)
        if (at := time(record, number)) is None:
            raise label_without_time(fields.label, timed)
        if at < observed.time:
            raise label_before_observation(at, observed.time)
        return LabelledObservation(observed, label, at)

    needs = (fields.scored, (fields.label,), *([] if timed is None else [(timed,)]))
    schema = Schema(fields, readers, "labelled", text=text)
    return _new_mapper(schema, fields, row, columns.labelled_builder, *needs)


def _new_mapper(
    schema: Schema,
    fields: Fields,
    row: FromRecord[Row],
    build: Callable[[Fields, Readers], EventBuilder],
    *needs: tuple[str, ...],
) -> Mapper:
    """Return the mapping that needs a path of each of some groups, besides id and time."""
    given = [fields.model, *fields.passthrough, *([fields.segment] if fields.segment else [])]
    needs = ((fields.id,), (fields.time,), *needs)
    reads = frozenset(name for path in chain(given, *needs) for name in root(path))
    names = (fields.model, *([fields.segment] if fields.segment else []))
    readers = schema.readers
    typed = typed_record(fields, readers)
    return Mapper(row, build(fields, readers), schema, typed, reads, needs, names)


def _observation_reader(fields: Fields, readers: Readers, *, text: bool) -> FromRecord[Observation]:
    """Compile the conversion of a record to an observation."""
    identity, time = required(fields.id, IdReader().one), required(fields.time, readers.time.one)
    model, segment = _name(fields.model, "model"), _name(fields.segment, "segment")
    score, x = _score(fields, readers), _features(fields, text=text)
    extra = _present(fields.passthrough, text=text)

    def observation(record: Record, number: int) -> Observation:
        """Return the observation of a record."""
        value, found = score(record, number), x(record, number)
        if value is None and found is None:
            raise missing(*fields.scored)
        return Observation(
            identity(record, number),
            time(record, number),
            model(record, number) or DEFAULT_MODEL,
            value,
            found,
            segment(record, number) or "",
            None,
            extra(record, number),
        )

    return observation


def _label_reader(fields: Fields, readers: Readers) -> FromRecord[Label]:
    """Compile the conversion of a record to a label."""
    identity, time = required(fields.id, IdReader().one), required(fields.time, readers.time.one)
    model, label = _name(fields.model, "model"), required(fields.label, readers.label.one)

    def event(record: Record, number: int) -> Label:
        return Label(
            identity(record, number),
            time(record, number),
            model(record, number) or DEFAULT_MODEL,
            label(record, number),
        )

    return event


def _score(fields: Fields, readers: Readers) -> FromRecord[Any]:
    """Compile the reader of the score, or of the scores by class."""
    if isinstance(fields.score, str):
        return optional(fields.score, readers.score.one)
    found = [(name, path, optional(path, ScoreReader().one)) for name, path in fields.score.items()]

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
    return optional(path, NameReader(name).one)


def _features(fields: Fields, *, text: bool) -> FromRecord[dict[str, Any] | None]:
    if isinstance(fields.x, str):
        return optional(fields.x, FeaturesReader().one)
    present, names = _present(fields.features, text=text), fields.features

    def found(record: Record, number: int) -> dict[str, Any] | None:
        features = present(record, number)
        if features is not None and len(features) < len(names):
            raise missing(next(name for name in names if name not in features))
        return features

    return found


def _present(paths: Sequence[str], *, text: bool) -> FromRecord[dict[str, Any] | None]:
    """Compile a reader of the fields that have a value; it returns None if none has."""
    read: CellReader = ExtraReader() if text else PlainReader()
    found = [(path, optional(path, read.one)) for path in paths]

    def present(record: Record, number: int) -> dict[str, Any] | None:
        given = {path: get(record, number) for path, get in found}
        if None in given.values():
            given = {path: value for path, value in given.items() if value is not None}
        return given or None

    return present

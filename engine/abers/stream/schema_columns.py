"""The reading of records: from raw columns to the typed columns of events, and refused rows.

A schema is compiled once per input. Each field has one reader; a row is refused with the error of
its first bad field, in a fixed order, and no other row is affected.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from abers import registry
from abers.monitoring.formats import duration
from abers.stream.cells import (
    ALL,
    ROW,
    BadRecordError,
    Fields,
    Refused,
    any_of,
    both,
    column,
    constant,
    either,
    label_without_time,
    mask_of,
    missing,
    numbers_of,
    others,
    root,
    two_in_one,
)
from abers.stream.option import said
from abers.stream.raw_rows import RawRows
from abers.stream.readers import (
    CellReader,
    ClassReader,
    ClassScoresReader,
    ExtraReader,
    FeaturesReader,
    FoldScoresReader,
    IdReader,
    LabelReader,
    NameReader,
    NumberReader,
    PlainReader,
    ScoreReader,
    is_no_label,
)
from abers.stream.times import TimeReader

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from abers.arrays import Integers
    from abers.stream.cells import Column, Mask, RawColumns, Rows
    from abers.stream.option import Front
    from abers.stream.settings import Settings

__all__ = [
    "DEFAULT_MODEL",
    "UNLABELLED",
    "ColumnSchema",
    "Kind",
    "Readers",
    "SchemaColumns",
    "label_before_observation",
]

DEFAULT_MODEL = "default"
UNLABELLED = "unlabelled"
"""Reason of a refused row of labels without a label so far, which is not a bad record."""

Kind: TypeAlias = Literal["mixed", "log", "labels", "labelled"]
"""What records are: observations or labels, the same but never both, labels only, or observations
with their labels."""

_ID, _MODEL, _SEGMENT = IdReader(), NameReader("model"), NameReader("segment")
_FEATURES = FeaturesReader()


class Readers(NamedTuple):
    """Readers of the values of a task, and where their user writes options."""

    label: CellReader
    score: CellReader
    time: CellReader = TimeReader()
    class_score: CellReader = ScoreReader()  # of a class with a field of its own
    front: Front = "python"

    def in_percent(self) -> Readers:
        """Return the same for scores that are percentages, which become probabilities."""
        kind = type(self.score)
        if not issubclass(kind, ScoreReader):
            return self
        return self._replace(score=kind(percent=True), class_score=ScoreReader(percent=True))

    @classmethod
    def of(
        cls,
        task: str,
        classes: Collection[str] = (),
        calibrator: str | None = None,
        positive: Collection[object] = (),
    ) -> Readers:
        """Return the readers of a task; a calibrator of folds reads a score of each."""
        if task == "multiclass":
            return cls.multiclass(classes)
        if task == "regression":
            return cls.regression()
        if calibrator is not None and registry.capabilities(calibrator, task).score == "folds":
            return cls.cross(positive)
        return cls.binary(positive)

    @classmethod
    def of_settings(cls, settings: Settings) -> Readers:
        """Return the readers of the task of a processor."""
        return cls.of(settings.task, settings.classes, settings.calibrator)

    @classmethod
    def binary(cls, positive: Collection[object] = ()) -> Readers:
        """Return the readers of a binary task; see `LabelReader`."""
        return cls(LabelReader(positive), ScoreReader())

    @classmethod
    def cross(cls, positive: Collection[object] = ()) -> Readers:
        """Return the readers of a binary task in which learners of folds score an observation."""
        return cls(LabelReader(positive), FoldScoresReader())

    @classmethod
    def multiclass(cls, classes: Collection[str]) -> Readers:
        """Return the readers of a multi-class task; see `ClassReader`."""
        return cls(ClassReader(classes), ClassScoresReader())

    @classmethod
    def regression(cls) -> Readers:
        """Return the readers of a regression task."""
        return cls(NumberReader("label", "drop it, or repair its source"), ScoreReader())


class SchemaColumns(NamedTuple):
    """The columns of `Events`, in their order."""

    labels: Mask
    ids: Column
    times: Column
    models: Column
    segments: Column
    scores: Column | None
    values: Column | None
    x: Column | None
    extra: Column | None
    recorded: Column | None
    awaited: Column | None  # None in a row without a label
    awaited_times: Column | None
    refused: Column | None = None  # a BadRecordError of each row that is no event


class ColumnSchema:
    """How records become the columns of events; see `abers.stream.columns.Schema`.

    Parameters
    ----------
    fields
        Where records have the fields of an event.
    readers
        Readers of the values of the task; by default those of a binary one.
    kind
        "mixed": a record with a score or features is an observation, one with only a label is a
        label. "log": the same, and a record with both is refused, since its label would count for
        nothing. "labels": every record is a label. "labelled": every record is an observation,
        with the label that is released later.
    text
        Whether all cells are text, as in CSV, so that features that parse as numbers are numbers.

    Attributes
    ----------
    reads
        Top-level fields that are read.
    needs
        Groups of paths: a record has at least one path of each.
    names
        Paths of model and segment, which a record may lack.
    numbered
        Whether a path means the number of the record.
    """

    def __init__(
        self,
        fields: Fields,
        readers: Readers | None = None,
        kind: Kind = "mixed",
        *,
        text: bool = False,
    ) -> None:
        self.fields, self.kind = fields, kind
        self.readers = readers or Readers.binary()
        self._field = ExtraReader() if text else PlainReader()
        values: list[tuple[str, ...]] = [(*fields.scored, fields.label)]
        if kind == "labels":
            values = [(fields.label,)]
        elif kind == "labelled":
            timed = [] if fields.label_time is None else [(fields.label_time,)]
            values = [fields.scored, (fields.label,), *timed]
        self.needs: Sequence[tuple[str, ...]] = [(fields.id,), (fields.time,), *values]
        segment = [] if kind == "labels" or not fields.segment else [fields.segment]
        passed = [] if kind == "labels" else fields.passthrough
        recorded = [] if fields.recorded is None else [fields.recorded]
        self.names: Sequence[str] = [fields.model, *segment]
        paths = [*self.names, *recorded, *passed, *chain.from_iterable(self.needs)]
        self.numbered = ROW in paths
        self.reads = frozenset(name for path in paths for name in root(path))

    def columns(
        self,
        raw: RawColumns,
        numbers: Sequence[int],
        broken: Mapping[int, BadRecordError] | None = None,
    ) -> tuple[SchemaColumns, Integers, Sequence[Refused]]:
        """Return the columns of the rows that become events, these rows, and the other rows.

        Parameters
        ----------
        raw
            The cells of the records.
        numbers
            Their numbers, which the path "row" means.
        broken
            Why some rows could not be decoded.
        """
        columns, rows = self._read(raw, numbers, broken or {})
        good = rows.good()
        front = self.readers.front
        refused = [Refused(row, reason, said(text, front)) for row, reason, text in rows.refused()]
        return _kept(columns, good), good, refused

    def whole(
        self,
        raw: RawColumns,
        numbers: Sequence[int],
        broken: Mapping[int, BadRecordError] | None = None,
    ) -> SchemaColumns:
        """Return the columns of all rows; rows without an event have their cells as they came.

        The parameters are those of `columns`.
        """
        columns, rows = self._read(raw, numbers, broken or {})
        refused = rows.refused()
        if not refused:
            return columns
        errors = np.full(len(numbers), None)
        for row, reason, text in refused:
            errors[row] = BadRecordError(reason, *text)
        return columns._replace(refused=errors)

    def models(self, raw: RawColumns, numbers: Sequence[int]) -> Column:
        """Return the models of all rows, None where one cannot be read.

        The parameters are those of `columns`; no other field needs to be there.
        """
        rows = RawRows(raw, numbers)
        found = self._models(rows)
        refused = [one.row for one in rows.refused()]
        if refused:
            found = found.astype(object)
            found[refused] = None
        return found

    def keys(self, raw: RawColumns, numbers: Sequence[int]) -> tuple[Column, Column, Column]:
        """Return ids, times and models of all rows; the id is None where one cannot be read.

        The parameters are those of `columns`; no other field needs to be there.
        """
        rows = RawRows(raw, numbers)
        fields, time = self.fields, self.readers.time
        ids, times = rows.required(fields.id, _ID), rows.required(fields.time, time)
        models = self._models(rows)
        refused = [one.row for one in rows.refused()]
        if refused:
            ids = ids.astype(object)
            ids[refused] = None
        return ids, times, models

    def _models(self, rows: RawRows) -> Column:
        return rows.optional(self.fields.model, _MODEL, ALL, DEFAULT_MODEL)

    def _read(
        self, raw: RawColumns, numbers: Sequence[int], broken: Mapping[int, BadRecordError]
    ) -> tuple[SchemaColumns, RawRows]:
        """Return the columns of all rows, with those that are refused."""
        rows = RawRows(raw, numbers)
        for row, error in broken.items():
            rows.refuse_one(row, error)
        fields, time, label = self.fields, self.readers.time, self.readers.label
        if self.kind == "labels":
            unlabelled = others(self._known(rows))
            rows.refuse(unlabelled, lambda: BadRecordError(UNLABELLED, "no label yet"))
        observed = self._observed(rows)
        labels = others(observed)
        scores, x = self._scores(rows, observed), self._features(rows, observed)
        if self.kind == "labelled":
            unscored = others(rows.any_present(fields.scored))
            rows.refuse(unscored, lambda: missing(*fields.scored))
        ids, times = rows.required(fields.id, _ID), rows.required(fields.time, time)
        models = self._models(rows)
        segments = rows.optional(fields.segment, _SEGMENT, observed, "")
        extra = rows.dicts({path: path for path in fields.passthrough}, self._field, observed)
        awaited, due = self._awaited(rows, observed, times)
        values = rows.required(fields.label, label, labels) if any_of(labels) else None
        recorded = rows.optional_or_none(fields.recorded, time, ALL)
        columns = (ids, times, models, segments, scores, values, x, extra, recorded, awaited, due)
        return SchemaColumns(mask_of(labels, rows.size), *columns), rows

    def _observed(self, rows: RawRows) -> Rows:
        """Return which rows are observations."""
        if self.kind in {"labels", "labelled"}:
            return self.kind == "labelled"
        scored, label = self.fields.scored, self.fields.label
        observed = rows.any_present(scored)
        if self.kind == "log" and constant(label) is None:
            observed = self._observed_alone(rows, observed)
        if observed is ALL:
            return ALL
        neither = others(either(observed, rows.any_present([label])))
        rows.refuse(neither, lambda: missing(*scored, label))
        return either(observed, neither)

    def _observed_alone(self, rows: RawRows, observed: Rows) -> Rows:
        """Return which rows of a log are observations; refuse one with a label.

        The score of a label may be NaN, by which a column of floats says that it has no value.
        """
        scored, label = self.fields.scored, self.fields.label
        known = self._known(rows)
        if scored == (self.fields.score,):
            observed = both(observed, others(both(known, rows.nan(scored[0]))))
        twice = both(observed, known)
        for row in numbers_of(twice, rows.size).tolist() if any_of(twice) else ():
            if not self._says_none(rows.cell(label, row)):
                found = [path for path in scored if rows.has(path, row)]
                rows.refuse_one(row, two_in_one(found, label))
        return observed

    def _says_none(self, cell: Any) -> bool:  # noqa: ANN401 - as it came
        """Return whether a cell has a word for no label, which is not the name of a class."""
        if not is_no_label(cell):
            return False
        try:
            self.readers.label.one(cell)
        except BadRecordError:
            return True
        return False

    def _known(self, rows: RawRows) -> Rows:
        """Return which rows have a label."""
        label = self.fields.label
        return both(rows.any_present([label]), others(rows.nan(label)))

    def _scores(self, rows: RawRows, observed: Rows) -> Column | None:
        path = self.fields.score
        if not any_of(observed):
            return None
        if isinstance(path, str):
            return rows.optional(path, self.readers.score, observed, None)
        scores = rows.dicts(path, self.readers.class_score, observed)
        rows.refuse_partial([*path.values()], observed, missing)
        return rows.filled(None, observed) if scores is None else scores

    def _features(self, rows: RawRows, observed: Rows) -> Column | None:
        paths = self.fields.x
        if isinstance(paths, str):
            return rows.optional_or_none(paths, _FEATURES, observed)
        if not paths:
            return None
        x = rows.dicts({path: path for path in paths}, self._field, observed)
        rows.refuse_partial(paths, observed, lambda first, *_: missing(first))
        return x

    def _awaited(
        self, rows: RawRows, observed: Rows, times: Column
    ) -> tuple[Column | None, Column | None]:
        """Return the labels of observations, None where none is known yet, and their times."""
        fields, readers = self.fields, self.readers
        timed = fields.label_time
        if self.kind != "labelled":
            return None, None
        known = self._known(rows)
        awaited = rows.values(fields.label, readers.label, known, observed)
        if timed is None:
            return awaited, None
        late = both(known, others(rows.any_present([timed])))
        rows.refuse(late, lambda: label_without_time(fields.label, timed))
        given = rows.optional(timed, readers.time, known, None)
        due = given if known is ALL else np.where(known, given, times) if any_of(known) else times
        self._refuse_early(rows, timed, due, times)
        return awaited, due

    def _refuse_early(self, rows: RawRows, timed: str, due: Column, times: Column) -> None:
        good = rows.good()
        early = times[good].astype(np.int64) - due[good].astype(np.int64)
        for row in np.flatnonzero(early > 0).tolist():
            error = label_before_observation(timed, self.fields.time, int(early[row]))
            rows.refuse_one(int(good[row]), error)


def label_before_observation(label: str, observation: str, early: int) -> BadRecordError:
    """Return the error for a label that is known some milliseconds before its observation."""
    detail = (
        f"{label}, the label's time, is {duration(early)} before {observation}, that of its "
        "observation; repair one of them, or name another field for the label's time"
    )
    return BadRecordError("bad-time", detail)


def _kept(columns: SchemaColumns, good: Integers) -> SchemaColumns:
    """Return the columns of the rows that are not refused, as if the others had not been there."""
    if len(good) == len(columns.labels):
        return columns
    taken: list[Any] = [None if one is None else one[good] for one in columns]
    kept = SchemaColumns(*taken)
    every, observed = np.ones(len(good), bool), ~kept.labels
    return kept._replace(
        times=_dense(kept.times, every),
        scores=_dense(kept.scores, observed) if observed.any() else None,
        values=_dense(kept.values, kept.labels) if kept.labels.any() else None,
        x=_if_any(kept.x, observed),
        extra=_if_any(kept.extra, observed),
        awaited=_dense(kept.awaited, every),
        awaited_times=_dense(kept.awaited_times, every),
    )


def _dense(one: Any, rows: Mask) -> Any:  # noqa: ANN401 - a column or None
    """Return a column of objects as an array, if in some rows all are numbers of one type."""
    if one is None or one.dtype != object:
        return one
    found = column(one[rows].tolist())
    whole = np.zeros(len(rows), found.dtype)
    whole[rows] = found
    return whole


def _if_any(one: Column | None, rows: Mask) -> Column | None:
    return None if one is None or not np.not_equal(one[rows], None).any() else one

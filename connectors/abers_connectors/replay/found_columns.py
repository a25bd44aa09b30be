"""The columns that options name, or that a file is found to have by its first rows.

The file is read for them once: up to the first label, where labels have rows of their own.
"""

from __future__ import annotations

import math
import shlex
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers.exceptions import ParameterError, RecordError
from abers.frames import REQUIRED, USUAL_NAMES, usual_column
from abers.stream.cells import Fields, root
from abers.stream.readers import is_no_label, number
from abers.suggestions import closest
from abers_connectors.replay.options import arguments, csv_of, flag_of, given
from abers_connectors.sources.base import HasFields, SourceOptions
from abers_connectors.sources.registry import is_rereadable, open_source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers_connectors.replay.options import ReplayOptions
    from abers_connectors.sources.base import Enough

__all__ = [
    "FoundColumns",
    "KnownColumns",
    "are_probabilities",
    "find_columns",
    "values_of",
]

_ANY = "COLUMN"  # in a command that names no column for want of a guess
_NO_ID = "\0"  # no column has this name
_OF_LABELS = {"label_time": "time"}  # what a flag names is the time in a file of labels
_ROUNDING = 0.01  # of probabilities that were written with few digits
_SAMPLE = 100  # rows


class KnownColumns(NamedTuple):
    """The columns of a file by field, and all that it has; empty where they are not known."""

    file: str
    wanted: dict[str, Any]
    known: Sequence[str]

    @property
    def missing(self) -> dict[str, Any]:
        """The columns that the file lacks; the run says what is bad in it."""
        wanted = self.wanted.items() if self.known else ()
        return {one: column for one, column in wanted if _is_missing(column, self.known)}


class FoundColumns(NamedTuple):
    """The columns of a file of scores, and of a second one with labels if there is one."""

    first: KnownColumns
    second: KnownColumns | None
    mixed: bool  # whether labels have rows of their own, among those of scores

    @property
    def fields(self) -> dict[str, Any]:
        """The column of each field of the file of scores."""
        return self.first.wanted

    @property
    def label_fields(self) -> dict[str, str]:
        """The columns of the second file, by field: a label has the time of its row.

        Without a model the file has labels of ids, for all models that predicted them.
        """
        wanted = {} if self.second is None else self.second.wanted
        return {_OF_LABELS.get(one, one): column for one, column in wanted.items()}

    @property
    def by_id(self) -> bool:
        """Whether the labels of a second file name no model, though the first file does."""
        if self.second is None or "model" not in self.fields:
            return False
        return bool(self.second.known) and "model" not in self.second.wanted

    @property
    def unused_label(self) -> str | None:
        """The column of labels in a file of scores that has its labels in a second file."""
        return None if self.second is None else usual_column("label", _left(self.first))


def find_columns(options: ReplayOptions) -> FoundColumns:
    """Return the column of each field of a file, as it was named or by its usual names.

    Model and segment are there if the file has them. A missing id or time is the number of the
    record, unless labels come from a second file. All columns are taken to exist where the first
    record cannot be read in advance, as in a pipe. A ParameterError names all columns that the
    file lacks, and those that the second file lacks, too.
    """
    first, mixed = _first(options)
    second = None if options.labels is None else _second(options, options.labels, first)
    _require(options, [first] if second is None else [first, second])
    return FoundColumns(first, second, mixed)


def _has_rows_of_labels(
    options: ReplayOptions, wanted: Mapping[str, Any], known: Sequence[str]
) -> bool:
    """Return whether the labels of a file have rows of their own, by its first rows with labels.

    If some rows have both a score and a label, a row without a score is a bad record instead, and
    so is each row without ids if none has a score: labels of their own are found by ids.
    """
    if options.labels is not None or not Path(options.stream).is_file():
        return False
    timed = options.columns.get("label_time") is not None
    if timed or any(_is_missing(wanted[one], known) for one in ("score", "label")):
        return False
    scores, label = [*_names(wanted["score"])], wanted["label"]
    rows = _rows_of(options.stream, [*scores, label], csv_of(options))
    found = _rows_from_the_first_label(rows, scores, label)
    has_id = wanted["id"] != "row" and not _is_missing(wanted["id"], known)
    return found.labels_alone and (found.scored or has_id)


def _first(options: ReplayOptions) -> tuple[KnownColumns, bool]:
    """Return the columns of the file of scores, and whether labels have rows of their own."""
    second = options.labels is not None
    elsewhere = {"label", "label_time"} if second else set()
    named = given({**options.columns, "score": options.score})
    named = {one: column for one, column in named.items() if one not in elsewhere}
    wanted = {one: USUAL_NAMES[one][0] for one in REQUIRED if one not in elsewhere} | named
    asked = {one: named.get(one) for one in ("score", "label") if one not in elsewhere}
    known = _fields_of(options, options.stream, partial(_has_all, asked))
    if known is None:
        return KnownColumns(options.stream, wanted, ()), False
    taken = {name for column in named.values() for name in _names(column)}
    unnamed = [one for one in known if one not in taken]
    for one in (one for one in USUAL_NAMES if one not in named and one not in elsewhere):
        if column := usual_column(one, unnamed):
            wanted[one] = column
        elif one in {"id", "time"} and not second and Path(options.stream).is_file():
            wanted[one] = "row"  # which means nothing where there are many files
    mixed = _has_rows_of_labels(options, wanted, known)
    if mixed:
        wanted |= {one: USUAL_NAMES[one][0] for one in ("id", "time") if wanted[one] == "row"}
        wanted.pop("label_time", None)
    if "label_time" in named and wanted["time"] == "row":
        msg = (
            f"--label-time {named['label_time']}: {options.stream} has no other column of times; "
            "name that of the observations in --time, or say how late labels are in --delay"
        )
        raise ParameterError(msg)
    if "label_time" not in named and (wanted["time"] == "row" or options.delay is not None):
        wanted.pop("label_time", None)  # it means nothing with row numbers, and a delay beats it
    return KnownColumns(options.stream, wanted, known), mixed


def _second(options: ReplayOptions, file: str, first: KnownColumns) -> KnownColumns:
    """Return the columns of the file of labels, and set that of the ids in the first file."""
    columns, named = first.wanted, given(options.columns)
    known = _fields_of(options, file)
    id_ = columns["id"]
    if first.known:
        columns["id"], id_ = _ids(options, first.known, known or first.known)
    if not known:
        return KnownColumns(file, {"label": named.get("label", "label")}, ())
    left = [one for one in known if one != id_]
    time = usual_column("label_time", left) or usual_column("time", left) or columns["time"]
    found = {
        "id": id_,
        "label_time": named.get("label_time", time),
        "label": named.get("label") or usual_column("label", left) or "label",
    }
    model = columns.get("model")
    if model is not None and (usual := usual_column("model", left) or (model in left and model)):
        found["model"] = usual
    return KnownColumns(file, found, known)


def values_of(options: ReplayOptions, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Return the first values of some columns of a file, by column."""
    return _values_of(_first_rows(options, options.stream, columns), columns)


def _values_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> dict[str, list[Any]]:
    return {one: [row[one] for row in rows if one in row] for one in columns}


def _first_rows(
    options: ReplayOptions, file: str, columns: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the first rows of a file, with the columns that have a value."""
    return [*islice(_rows_of(file, columns, csv_of(options)), _SAMPLE)]


def _fields_of(options: ReplayOptions, file: str, enough: Enough = bool) -> Sequence[str] | None:
    """Return the columns of a file: none if its first record is bad, None if it is read once."""
    source = open_source(file, SourceOptions(**csv_of(options)))
    if not isinstance(source, HasFields) or not is_rereadable(file):
        return None
    if (known := source.first_fields(enough)) is None:
        msg = f"{file} has no {_needed(options, file)}"
        raise RecordError(msg)
    return known


def _needed(options: ReplayOptions, file: str) -> str:
    """Return what an empty file lacks."""
    if options.labels is None:
        return "observation; it needs a row for each, with a score and a label"
    if file == options.labels:
        return "label; it needs a row for each, with the id of its observation"
    return "observation; it needs a row for each, with an id and a score"


def _ids(options: ReplayOptions, first: Sequence[str], second: Sequence[str]) -> tuple[str, str]:
    """Return the columns of ids of both files; those that no file has if they share none."""
    if (named := options.columns.get("id")) is not None:
        return named, named
    shared = [one for one in first if one in second]
    if (name := usual_column("id", shared)) is not None:
        return name, name
    own, other = usual_column("id", first), usual_column("id", second)
    return (own, other) if own is not None and other is not None else (_NO_ID, _NO_ID)


def _require(options: ReplayOptions, files: Sequence[KnownColumns]) -> None:
    """Raise a ParameterError with all columns that files lack."""
    lacking = [one for one in files if one.missing]
    if not lacking:
        return
    for file, _, known in lacking:
        if len(known) == 1:
            msg = f"{file} has one column, {known[0]}; it needs one of scores and one of labels"
            raise ParameterError(msg)
    no_id = any(_NO_ID in one.missing.values() for one in lacking)
    what = [f"{options.stream} and {options.labels} have no id column that both have"] * no_id
    what += filter(None, (_what(options, one) for one in lacking))
    shown = files if no_id else lacking
    raise ParameterError("; ".join([", and ".join(what), *_remedy(options, files, shown)]))


def _what(options: ReplayOptions, of: KnownColumns) -> str:
    """Return which columns a file lacks: those that were named, or those of no usual name."""
    missing = {one: column for one, column in of.missing.items() if column != _NO_ID}
    named = {one: column for one, column in missing.items() if one in given(options.columns)}
    found = [f"no column {', '.join(_names(column))}" for column in named.values()]
    found += [f"no {one.replace('_', ' ')} column" for one in missing if one not in named]
    whole = of.file if named or options.labels is not None else "the file"
    return f"{whole} has {' and '.join(found)}" if found else ""


def _remedy(
    options: ReplayOptions, files: Sequence[KnownColumns], shown: Sequence[KnownColumns]
) -> Iterable[str]:
    """Return which columns there are, and the command that names the right ones."""
    for one in shown:
        yield f"{one.file} has the columns {', '.join(one.known)}"
    if any(math.isfinite(number(one)) for of in shown for one in of.known):
        yield "is the first line a record? Then write the names of the columns above it"
        return
    several = str(files[0].missing.get("score", "")).split(",")
    if len(several) > 1 and {*several} <= {*files[0].known}:
        pairs = shlex.quote(",".join(f"CLASS={one}" for one in several))
        yield f"are these the scores of several classes? Name the class of each: --score {pairs}"
        return
    no_id = any(_NO_ID in one.missing.values() for one in files)
    ids = {"id": _shared_id(*(one.known for one in files))} if no_id else {}
    guesses = {
        one: column for of in files for one, column in _guesses(options, of, ids.values()).items()
    } | ids
    timeless = options.labels is not None and not {"time", "label_time"}.isdisjoint(guesses)
    if timeless:
        joined = _command(options._replace(labels=None, columns={}), {})
        yield (
            f"without times, put the labels into a column of {options.stream}, and say how late "
            f"they are: {joined} --delay 50"
        )
    if not timeless or any(_left(one) for one in files if one.missing):
        yield f"name {'it' if len(guesses) == 1 else 'them'}: {_command(options, guesses)}"


def _left(of: KnownColumns) -> list[str]:
    """Return the columns of a file that belong to no field."""
    taken = {name for column in of.wanted.values() for name in _names(column)}
    return [one for one in of.known if one not in taken]


def _guesses(options: ReplayOptions, of: KnownColumns, taken: Iterable[str]) -> dict[str, str]:
    """Return a column for each missing one, or `_ANY`; some are taken already."""
    left = [one for one in _left(of) if one not in taken]
    values = _values_of(_first_rows(options, of.file, left), left)
    guesses = dict.fromkeys(of.missing, _ANY)
    for field in sorted(of.missing):  # labels are known by values, and scores may be the rest
        guesses[field] = _guess(field, of.missing[field], left, values)
        left = [one for one in left if one != guesses[field]]
    return guesses


def _shared_id(first: Sequence[str], second: Sequence[str]) -> str:
    """Return the column that both files have and that no other field has, or `_ANY`."""
    shared = [one for one in first if one in second]
    usual = {usual_column(one, shared) for one in USUAL_NAMES}
    unusual = [one for one in shared if one not in usual]
    return unusual[0] if len(unusual) == 1 else _ANY


def _guess(
    field: str,
    column: Any,  # noqa: ANN401 - of a field
    left: Sequence[str],
    values: dict[str, list[Any]],
) -> str:
    """Return the column that a field probably has: by its name, by its values, or the only one."""
    if isinstance(column, str) and (near := closest(column, left)):
        return near
    fits = {"score": _are_scores, "label": _are_labels}.get(field)
    fitting = [one for one in left if fits and fits(values.get(one, []))]
    if field == "score":  # a whole number is rather an id
        fitting.sort(key=lambda one: not are_probabilities(np.array(values[one], float)[:, None]))
    lone = left if len(left) == 1 and _may_be(field, left) else ()
    return next(iter(fitting or lone), _ANY)


def _may_be(field: str, left: Sequence[str]) -> bool:
    """Return whether the only column left may have a field: its name is that of no other."""
    others = (usual_column(one, left) for one in USUAL_NAMES if one != field)
    return bool(usual_column(field, left)) or (field != "id" and not any(others))


def _are_labels(values: Sequence[Any]) -> bool:
    return bool(values) and all(one in {0, 1} for one in values)


def _are_scores(values: Sequence[Any]) -> bool:
    numbers = bool(values) and all(isinstance(one, int | float) for one in values)
    return numbers and not _are_labels(values)


def are_probabilities(scores: NDArray[np.float64]) -> bool:
    """Return whether rows of scores lie in [0, 1], and those of several classes sum to 1.

    >>> are_probabilities(np.array([[0.2], [1.0]])), are_probabilities(np.array([[0.2, 0.9]]))
    (True, False)
    """
    within = bool(((scores >= 0.0) & (scores <= 1.0)).all())
    sums = scores.sum(axis=1)
    return within and (scores.shape[1] == 1 or bool((abs(sums - 1.0) <= _ROUNDING).all()))


def _names(column: Any) -> Iterable[str]:  # noqa: ANN401 - of a field
    return column.values() if isinstance(column, dict) else [column]


def _has_all(asked: Mapping[str, Any], known: Collection[str]) -> bool:
    """Return whether a file has columns of some fields: those that are named, or the usual ones."""
    return all(
        bool(usual_column(field, [*known])) if column is None else not _is_missing(column, [*known])
        for field, column in asked.items()
    )


def _is_missing(column: Any, known: Sequence[str]) -> bool:  # noqa: ANN401 - of a field
    roots = [root(one) for one in _names(column)]
    return any(names and {*names}.isdisjoint(known) for names in roots)


def _command(options: ReplayOptions, columns: dict[str, str]) -> str:
    """Return the command with the columns of some fields, to copy."""
    kept = {one: column for one, column in options.columns.items() if one not in columns}
    named = [word for one, column in columns.items() for word in (flag_of(one), column)]
    report = [] if options.report is None else ["--report", options.report]
    words = ["abers", "replay", *arguments(options._replace(columns=kept)), *named, *report]
    return shlex.join(words)


def _rows_of(
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


class _FirstLabels(NamedTuple):
    """What the rows of a file say up to its first labels."""

    scored: bool  # a row up to the first label has a score
    labels_alone: bool  # there are labels, and no row of the first ones has a score too


def _rows_from_the_first_label(
    rows: Iterable[Mapping[str, Any]], scores: Iterable[str], label: str
) -> _FirstLabels:
    """Return what rows say: as many as it takes to the first label, and the sample from there.

    Examples
    --------
    >>> _rows_from_the_first_label([{"p": 0.5}] * 500 + [{"y": 1}], ["p"], "y")
    _FirstLabels(scored=True, labels_alone=True)
    >>> _rows_from_the_first_label([{"p": 0.5, "y": 1}, {"y": 1}], ["p"], "y")
    _FirstLabels(scored=True, labels_alone=False)
    """
    left, scores = iter(rows), {*scores}
    scored = False
    for row in left:
        scored = scored or not scores.isdisjoint(row)
        if label in row:
            sample = chain([row], islice(left, _SAMPLE - 1))
            of_labels = (one for one in sample if label in one)
            return _FirstLabels(scored, all(scores.isdisjoint(one) for one in of_labels))
    return _FirstLabels(scored, labels_alone=False)

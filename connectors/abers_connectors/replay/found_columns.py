"""The columns of a file of scores, and of a file of labels, as they are named or found."""

from __future__ import annotations

import math
import shlex
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abers.column_names import REQUIRED, USUAL_NAMES, usual_column
from abers.exceptions import ParameterError, RecordError
from abers.stream.fields import Fields, root
from abers.stream.readers import number
from abers.suggestions import closest
from abers_connectors.replay.options import arguments, csv_of, flag_of, given
from abers_connectors.sources.base import HasFields, SourceOptions
from abers_connectors.sources.registry import is_rereadable, open_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers_connectors.replay.options import ReplayOptions

__all__ = ["columns_of", "label_columns_of", "values_of"]

_ANY = "COLUMN"  # in a command that names no column for want of a guess
_SAMPLE = 100  # rows


def columns_of(options: ReplayOptions) -> dict[str, Any]:
    """Return the column of each field of a file, as it was named or by its usual names.

    Model and segment are there if the file has them. A missing id or time is the number of the
    record, unless labels come from a second file. All columns are taken to exist where the first
    record cannot be read in advance, as in a pipe.
    """
    second = options.labels is not None
    elsewhere = {"label", "label_time"} if second else set()
    named = given({**options.columns, "score": options.score})
    named = {one: column for one, column in named.items() if one not in elsewhere}
    wanted = {one: USUAL_NAMES[one][0] for one in REQUIRED if one not in elsewhere} | named
    known = _fields_of(options, options.stream)
    if known is None:
        return wanted
    taken = {name for column in named.values() for name in _names(column)}
    unnamed = [one for one in known if one not in taken]
    for one in (one for one in USUAL_NAMES if one not in named and one not in elsewhere):
        if column := usual_column(one, unnamed):
            wanted[one] = column
        elif one in {"id", "time"} and not second and Path(options.stream).is_file():
            wanted[one] = "row"  # which means nothing where there are many files
    if "label_time" not in named and (wanted["time"] == "row" or options.delay is not None):
        wanted.pop("label_time", None)  # it means nothing with row numbers, and a delay beats it
    if second and known:
        wanted["id"], _ = _ids(options, known)
    _require(options, options.stream, wanted, known)
    return wanted


def label_columns_of(options: ReplayOptions, columns: dict[str, Any]) -> dict[str, str]:
    """Return the columns of the second file, by field: a label has the time of its row.

    Parameters
    ----------
    options
        Options that name a second file.
    columns
        The columns of the first one.
    """
    file = options.labels or ""
    named = given(options.columns)
    known = _fields_of(options, file)
    if not known:
        return {"label": "label"} | {one: named[one] for one in ("label",) if one in named}
    first = _fields_of(options, options.stream)
    id_ = _ids(options, first, known)[1] if first else columns["id"]
    left = [one for one in known if one != id_]
    time = usual_column("label_time", left) or usual_column("time", left) or columns["time"]
    found = {
        "id": id_,
        "time": named.get("label_time", time),
        "label": named.get("label") or usual_column("label", left) or "label",
    }
    if "model" in columns:
        found["model"] = usual_column("model", left) or columns["model"]
    flags = {"time": "label_time"}
    _require(options, file, {flags.get(one, one): column for one, column in found.items()}, known)
    return found


def values_of(options: ReplayOptions, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Return the first values of some columns of a file, by column."""
    fields = Fields(id="row", time="row", score="const:0", passthrough=tuple(columns))
    source = open_source(options.stream, SourceOptions(fields, **csv_of(options)))
    first = next(source.batches(), None)
    extra = () if first is None or first.events.extra is None else first.events.extra
    rows = [one or {} for one in islice(extra, _SAMPLE)]
    return {one: [row[one] for row in rows if one in row] for one in columns}


def _fields_of(options: ReplayOptions, file: str) -> Sequence[str] | None:
    """Return the columns of a file: none if its first record is bad, None if it is read once."""
    source = open_source(file, SourceOptions(**csv_of(options)))
    if not isinstance(source, HasFields) or not is_rereadable(file):
        return None
    if (known := source.first_fields()) is None:
        needs = "a row for each, with a score and a label"
        msg = f"{file} has no observation; it needs {needs}"
        raise RecordError(msg)
    return known


def _ids(
    options: ReplayOptions, first: Sequence[str], second: Sequence[str] | None = None
) -> tuple[str, str]:
    """Return the columns of ids of both files; a ParameterError if they share none."""
    file = options.labels or ""
    second = (_fields_of(options, file) or first) if second is None else second
    if (named := options.columns.get("id")) is not None:
        return named, named
    shared = [one for one in first if one in second]
    if (name := usual_column("id", shared)) is not None:
        return name, name
    own, other = usual_column("id", first), usual_column("id", second)
    if own is not None and other is not None:
        return own, other
    usual = {usual_column(one, shared) for one in USUAL_NAMES}
    unusual = [one for one in shared if one not in usual]
    guess = unusual[0] if len(unusual) == 1 else _ANY
    msg = (
        f"{options.stream} and {file} have no id column that both have; {options.stream} has the "
        f"columns {', '.join(first)}; {file} has the columns {', '.join(second)}; name it: "
        f"{_command(options, {'id': guess})}"
    )
    raise ParameterError(msg)


def _require(
    options: ReplayOptions, file: str, wanted: dict[str, Any], known: Sequence[str]
) -> None:
    """Raise a ParameterError if a file has not all columns; the run says what is bad in it."""
    missing = {one: column for one, column in wanted.items() if _is_missing(column, known)}
    if not known or not missing:
        return
    if len(known) == 1:
        msg = f"{file} has one column, {known[0]}; it needs one of scores and one of labels"
        raise ParameterError(msg)
    remedy = _remedy(options, file, wanted, missing, known)
    raise ParameterError("; ".join([_what(options, file, missing), *remedy]))


def _what(options: ReplayOptions, file: str, missing: dict[str, Any]) -> str:
    """Return which column a file lacks: one that was named, or one of no usual name."""
    field, column = next(iter(missing.items()))
    if field in given(options.columns):
        return f"{file} has no column {', '.join(_names(column))}"
    whole = "the file" if options.labels is None else file
    return f"{whole} has no {field.replace('_', ' ')} column"


def _remedy(
    options: ReplayOptions,
    file: str,
    wanted: dict[str, Any],
    missing: dict[str, Any],
    known: Sequence[str],
) -> Iterable[str]:
    """Return which columns there are, and the command that names the right ones."""
    yield f"{file} has the columns {', '.join(known)}"
    if any(math.isfinite(number(one)) for one in known):
        yield "is the first line a record? Then write the names of the columns above it"
        return
    several = str(missing.get("score", "")).split(",")
    if len(several) > 1 and {*several} <= {*known}:
        pairs = shlex.quote(",".join(f"CLASS={one}" for one in several))
        yield f"are these the scores of several classes? Name the class of each: --score {pairs}"
        return
    taken = {name for column in wanted.values() for name in _names(column)}
    left = [one for one in known if one not in taken]
    values = values_of(options, left) if file == options.stream else {}
    guesses, is_guessable = dict.fromkeys(missing, _ANY), bool(left)
    for field in sorted(missing):  # the label is known by its values, and the score may be the rest
        guesses[field] = _guess(field, missing[field], left, values)
        left = [one for one in left if one != guesses[field]]
    if "model" in missing and file != options.stream:
        yield (
            f"a label names the model of its prediction: add that column to {file}, or give each "
            f"its own calibrator without it: --segment-column {missing['model']}"
        )
        return
    timeless = options.labels is not None and not {"time", "label_time"}.isdisjoint(missing)
    if timeless:
        joined = _command(options._replace(labels=None, columns={}), {})
        yield (
            f"without times, put the labels into a column of {options.stream}, and say how late "
            f"they are: {joined} --delay 50"
        )
    if not timeless or is_guessable:
        yield f"name it: {_command(options, guesses)}"


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
        fitting.sort(key=lambda one: not _are_probabilities(values[one]))
    lone = left if len(left) == 1 and (field != "id" or usual_column("id", left)) else ()
    return next(iter(fitting or lone), _ANY)


def _are_labels(values: Sequence[Any]) -> bool:
    return bool(values) and all(one in {0, 1} for one in values)


def _are_scores(values: Sequence[Any]) -> bool:
    numbers = bool(values) and all(isinstance(one, int | float) for one in values)
    return numbers and not _are_labels(values)


def _are_probabilities(values: Sequence[Any]) -> bool:
    return all(0 <= one <= 1 for one in values)


def _names(column: Any) -> Iterable[str]:  # noqa: ANN401 - of a field
    return column.values() if isinstance(column, dict) else [column]


def _is_missing(column: Any, known: Sequence[str]) -> bool:  # noqa: ANN401 - of a field
    roots = [root(one) for one in _names(column)]
    return any(names and {*names}.isdisjoint(known) for names in roots)


def _command(options: ReplayOptions, columns: dict[str, str]) -> str:
    """Return the command with the columns of some fields, to copy."""
    kept = {one: column for one, column in options.columns.items() if one not in columns}
    named = [word for one, column in columns.items() for word in (flag_of(one), column)]
    words = ["abers", "replay", *arguments(options._replace(columns=kept)), *named]
    return shlex.join(words)

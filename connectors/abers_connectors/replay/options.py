"""Options of `abers replay`, and the columns that they name or that a file is found to have.

An option that a configuration has a key for has this key's value: it beats the environment, which
beats the file.
"""

from __future__ import annotations

import math
import os
import shlex
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from abers.exceptions import ParameterError, RecordError
from abers.frames import REQUIRED, USUAL_NAMES, usual_column
from abers.stream.cells import root
from abers.stream.readers import number
from abers.suggestions import closest
from abers_connectors.config.layers import Layers
from abers_connectors.config.values import Lateness, milliseconds
from abers_connectors.replay.first_rows import SAMPLE, rows_from_the_first_label, rows_of
from abers_connectors.sources.base import HasFields, SourceOptions
from abers_connectors.sources.registry import is_rereadable, open_source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from abers_connectors.sources.base import Enough

__all__ = [
    "Period",
    "ReplayOptions",
    "are_probabilities",
    "arguments",
    "columns_of",
    "flag_of",
    "given",
    "has_topics",
    "is_by_id",
    "is_mixed",
    "keys_of",
    "label_columns_of",
    "lateness",
    "report_format",
    "unused_label_of",
    "values_of",
]

Period: TypeAlias = tuple[int, int]
"""First event time in milliseconds, and the first one after it."""

_DELAY = Lateness(observations=50)
_COLUMN_FLAGS = {"model": "model-column", "segment": "segment-column"}
_CHARACTERS = {"delimiter": (",", ";", "|", "\t"), "decimal": (".", ",")}
_NAMES = {"\t": "tab"}
_DESCRIBED = (
    *("task", "scores", "timezone", "learner", "delimiter", "decimal", "calibrator"),
    *("probability", "support", "label_rates", "coverage", "since", "until"),
)
_TABS = {"\\t": "\t", "tab": "\t"}  # as a shell passes them


class ReplayOptions(NamedTuple):
    """Options of the command, by their names; None where one was not given."""

    stream: str
    delay: str | None = None
    output: str | None = None
    learner: str | None = None
    columns: Mapping[str, str | None] = {}  # of a file, by field
    labels: str | None = None  # a second file
    delimiter: str | None = None
    decimal: str | None = None
    scores: str | None = None
    task: str | None = None
    positive: Sequence[str] = ()  # labels that mean 1
    timezone: str | None = None
    calibrator: str | None = None
    probability: str | None = None
    distributions: bool = False
    support: tuple[str, str] | None = None
    label_rates: tuple[str, str] | None = None
    coverage: str | None = None
    forgetting: Mapping[str, str | None] = {}  # at most one of window, max_age, half_life
    from_: str | None = None
    since: str | None = None
    until: str | None = None
    models: Sequence[str] = ()  # to read; all if empty
    speed: str = "max"
    compare: str | None = None
    report: str | None = None
    reference: str | None = None
    live: bool = False
    save_state: str | None = None
    workers: int = 1  # processes

    @property
    def configured(self) -> bool:
        """Whether the stream is a configuration."""
        return Path(self.stream).suffix == ".toml"

    @property
    def percent(self) -> bool:
        """Whether scores are percentages."""
        return self.scores == "percent"

    @property
    def score(self) -> str | dict[str, str] | None:
        """Column of the scores, or columns by class, as in "low=p_low,high=p_high"."""
        text = self.columns.get("score")
        pairs = [one.partition("=") for one in (text or "").split(",")]
        if len(pairs) < 2 or not all(name and column for name, _, column in pairs):  # noqa: PLR2004
            return text
        return {name.strip(): column.strip() for name, _, column in pairs}

    @property
    def kind(self) -> str:
        """Task of a file."""
        return self.task or ("multiclass" if isinstance(self.score, dict) else "binary")

    @property
    def lateness(self) -> Lateness:
        """Delay of labels that have no times of their own, without a configuration."""
        return _DELAY if self.delay is None else lateness(self.delay)


def lateness(text: str, option: str = "--delay") -> Lateness:
    """Read the delay of labels that an option has: a number of observations, or a duration.

    >>> lateness("500"), lateness("6h")
    (Lateness(observations=500, span=None), Lateness(observations=None, span=21600000))
    """
    if text.isdecimal() and text.isascii():
        return Lateness(observations=int(text))
    if (span := milliseconds(text)) is None:
        msg = f'{option} {text}: write a number of observations, or a duration such as "6h" or "7d"'
        if option == "--delays":
            msg += ", and commas between several"
        raise ParameterError(msg)
    return Lateness(span=span)


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def has_topics(options: ReplayOptions) -> bool:
    """Return whether the options name a configuration that reads topics."""
    return options.configured and "kafka" in Layers.read(options.stream, os.environ, {}).values


def report_format(path: str, option: str = "--report") -> str:
    """Return the format of a report, "html" or "json", by its suffix.

    Another suffix is a ParameterError that names the option.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in {".html", ".json"}:
        msg = f"{option} {path}: name a file that ends in .html, for a page, or .json, for numbers"
        raise ParameterError(msg)
    return suffix[1:]


def flag_of(field: str) -> str:
    """Return the flag that names the column of a field.

    >>> flag_of("label_time"), flag_of("model")
    ('--label-time', '--model-column')
    """
    return f"--{_COLUMN_FLAGS.get(field, field).replace('_', '-')}"


def keys_of(options: ReplayOptions) -> dict[str, Any]:
    """Return the values that options have for the keys of a configuration, by dotted path.

    >>> keys_of(ReplayOptions("a.toml", timezone="UTC", forgetting={"window": "9"}))
    {'input.timezone': 'UTC', 'calibrator.window': 9}
    """
    classes = options.score if isinstance(options.score, dict) else {}
    delimiter = options.delimiter
    compared = "merged" if options.compare and options.label_rates else None  # as a table has them
    found = {
        "task.kind": options.task or ("multiclass" if classes else None),
        "task.classes": [*classes] or None,
        "task.scores": "probability" if options.percent else options.scores,
        "learner.name": options.learner,
        "input.percent": options.percent or None,
        "input.labels": options.labels,
        "input.delay": None if options.delay is None else options.lateness,
        "input.pos_label": options.positive or None,
        "input.timezone": options.timezone,
        "input.delimiter": delimiter and _TABS.get(delimiter, delimiter),
        "input.decimal": options.decimal,
        **{f"input.fields.{one}": column for one, column in options.columns.items()},
        "input.fields.score": options.score,
        "calibrator.kind": options.calibrator,
        "calibrator.probability": options.probability or compared,
        "calibrator.distributions": "full" if options.distributions else None,
        "calibrator.support": options.support and [*map(_number, options.support)],
        "calibrator.label_rates": options.label_rates and [*map(_number, options.label_rates)],
        "calibrator.coverage": options.coverage and _number(options.coverage),
        **{f"calibrator.{one}": _number(text) for one, text in given(options.forgetting).items()},
    }
    return given(found)


def csv_of(options: ReplayOptions) -> dict[str, Any]:
    """Return how CSV is read, as a source takes it; a ParameterError if no CSV is like that."""
    keys = keys_of(options)
    for one, allowed in _CHARACTERS.items():
        value = keys.get(f"input.{one}", allowed[0])
        if value not in allowed:
            names = ", ".join(f'"{_NAMES.get(name, name)}"' for name in allowed)
            msg = f"--{one} {value}: write one of {names}"
            raise ParameterError(msg)
    return {one: keys[f"input.{one}"] for one in ("delimiter", "decimal") if f"input.{one}" in keys}


def arguments(options: ReplayOptions) -> list[str]:
    """Return the arguments that describe the input and the calibrator of a replay.

    >>> arguments(ReplayOptions("a.csv", columns={"score": "p"}, positive=["yes"]))
    ['a.csv', '--score', 'p', '--positive', 'yes']
    >>> arguments(ReplayOptions("a.csv", label_rates=("0.5", "1"), forgetting={"max_age": "7d"}))
    ['a.csv', '--label-rates', '0.5', '1', '--max-age', '7d']
    """
    named = {
        "labels": options.labels,
        **{flag_of(one)[2:]: column for one, column in options.columns.items()},
        **{one: getattr(options, one) for one in _DESCRIBED},
        **options.forgetting,
    }
    repeated = {"positive": options.positive, "model": options.models}
    pairs = [
        *given(named).items(),
        *((name, one) for name, many in repeated.items() for one in many),
    ]
    flags = ["--distributions"] if options.distributions else []
    return [options.stream, *(word for name, one in pairs for word in _words(name, one)), *flags]


def _words(name: str, value: str | Sequence[str]) -> list[str]:
    """Return an option and its values, as a command line has them."""
    return [f"--{name.replace('_', '-')}", *([value] if isinstance(value, str) else value)]


def _number(text: str) -> float | str:
    """Return a number that a flag has; all else as it was written."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


_ANY = "COLUMN"  # in a command that names no column for want of a guess
_NO_ID = "\0"  # no column has this name
_OF_LABELS = {"label_time": "time"}  # what a flag names is the time in a file of labels
_ROUNDING = 0.01  # of probabilities that were written with few digits


def columns_of(options: ReplayOptions) -> dict[str, Any]:
    """Return the column of each field of a file, as it was named or by its usual names.

    Model and segment are there if the file has them. A missing id or time is the number of the
    record, unless labels come from a second file. All columns are taken to exist where the first
    record cannot be read in advance, as in a pipe. A ParameterError names all columns that the
    file lacks, and those that the second file lacks, too.
    """
    first = _first(options)
    second = [] if options.labels is None else [_second(options, first.wanted)]
    _require(options, [first, *second])
    return first.wanted


def label_columns_of(options: ReplayOptions, columns: dict[str, Any]) -> dict[str, str]:
    """Return the columns of the second file, by field: a label has the time of its row.

    Without a model the file has labels of ids, for all models that predicted them.

    Parameters
    ----------
    options
        Options that name a second file.
    columns
        The columns of the first one.
    """
    return {_OF_LABELS.get(one, one): at for one, at in _second(options, columns).wanted.items()}


def is_mixed(options: ReplayOptions) -> bool:
    """Return whether a file has labels in rows of their own, among those of scores."""
    _, wanted, known = _first(options)
    return _has_rows_of_labels(options, wanted, known)


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
    rows = rows_of(options.stream, [*scores, label], csv_of(options))
    found = rows_from_the_first_label(rows, scores, label)
    has_id = wanted["id"] != "row" and not _is_missing(wanted["id"], known)
    return found.labels_alone and (found.scored or has_id)


def is_by_id(options: ReplayOptions, columns: dict[str, Any]) -> bool:
    """Return whether the labels of a second file name no model, though the first file does."""
    if options.labels is None or "model" not in columns:
        return False
    second = _second(options, columns)
    return bool(second.known) and "model" not in second.wanted


def unused_label_of(options: ReplayOptions) -> str | None:
    """Return the column of labels in a file of scores that has its labels in a second file."""
    if options.labels is None:
        return None
    return usual_column("label", _left(_first(options)))


class _Columns(NamedTuple):
    """The columns of a file by field, and all that it has; empty where they are not known."""

    file: str
    wanted: dict[str, Any]
    known: Sequence[str]

    @property
    def missing(self) -> dict[str, Any]:
        """The columns that the file lacks; the run says what is bad in it."""
        wanted = self.wanted.items() if self.known else ()
        return {one: column for one, column in wanted if _is_missing(column, self.known)}


def _first(options: ReplayOptions) -> _Columns:
    second = options.labels is not None
    elsewhere = {"label", "label_time"} if second else set()
    named = given({**options.columns, "score": options.score})
    named = {one: column for one, column in named.items() if one not in elsewhere}
    wanted = {one: USUAL_NAMES[one][0] for one in REQUIRED if one not in elsewhere} | named
    asked = {one: named.get(one) for one in ("score", "label") if one not in elsewhere}
    known = _fields_of(options, options.stream, partial(_has_all, asked))
    if known is None:
        return _Columns(options.stream, wanted, ())
    taken = {name for column in named.values() for name in _names(column)}
    unnamed = [one for one in known if one not in taken]
    for one in (one for one in USUAL_NAMES if one not in named and one not in elsewhere):
        if column := usual_column(one, unnamed):
            wanted[one] = column
        elif one in {"id", "time"} and not second and Path(options.stream).is_file():
            wanted[one] = "row"  # which means nothing where there are many files
    if _has_rows_of_labels(options, wanted, known):
        wanted |= {one: USUAL_NAMES[one][0] for one in ("id", "time") if wanted[one] == "row"}
        wanted.pop("label_time", None)
    if "label_time" not in named and (wanted["time"] == "row" or options.delay is not None):
        wanted.pop("label_time", None)  # it means nothing with row numbers, and a delay beats it
    if second and known:
        wanted["id"], _ = _ids(options, known)
    return _Columns(options.stream, wanted, known)


def _second(options: ReplayOptions, columns: dict[str, Any]) -> _Columns:
    file = options.labels or ""
    named = given(options.columns)
    known = _fields_of(options, file)
    if not known:
        unknown = {"label": "label"} | {one: named[one] for one in ("label",) if one in named}
        return _Columns(file, unknown, ())
    first = _fields_of(options, options.stream)
    id_ = _ids(options, first, known)[1] if first else columns["id"]
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
    return _Columns(file, found, known)


def values_of(options: ReplayOptions, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Return the first values of some columns of a file, by column."""
    return _values_of(_first_rows(options, options.stream, columns), columns)


def _values_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> dict[str, list[Any]]:
    return {one: [row[one] for row in rows if one in row] for one in columns}


def _first_rows(
    options: ReplayOptions, file: str, columns: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the first rows of a file, with the columns that have a value."""
    return [*islice(rows_of(file, columns, csv_of(options)), SAMPLE)]


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


def _ids(
    options: ReplayOptions, first: Sequence[str], second: Sequence[str] | None = None
) -> tuple[str, str]:
    """Return the columns of ids of both files; those that no file has if they share none."""
    file = options.labels or ""
    second = (_fields_of(options, file) or first) if second is None else second
    if (named := options.columns.get("id")) is not None:
        return named, named
    shared = [one for one in first if one in second]
    if (name := usual_column("id", shared)) is not None:
        return name, name
    own, other = usual_column("id", first), usual_column("id", second)
    return (own, other) if own is not None and other is not None else (_NO_ID, _NO_ID)


def _require(options: ReplayOptions, files: Sequence[_Columns]) -> None:
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


def _what(options: ReplayOptions, of: _Columns) -> str:
    """Return which columns a file lacks: those that were named, or those of no usual name."""
    missing = {one: column for one, column in of.missing.items() if column != _NO_ID}
    named = {one: column for one, column in missing.items() if one in given(options.columns)}
    found = [f"no column {', '.join(_names(column))}" for column in named.values()]
    found += [f"no {one.replace('_', ' ')} column" for one in missing if one not in named]
    whole = of.file if named or options.labels is not None else "the file"
    return f"{whole} has {' and '.join(found)}" if found else ""


def _remedy(
    options: ReplayOptions, files: Sequence[_Columns], shown: Sequence[_Columns]
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


def _left(of: _Columns) -> list[str]:
    """Return the columns of a file that belong to no field."""
    taken = {name for column in of.wanted.values() for name in _names(column)}
    return [one for one in of.known if one not in taken]


def _guesses(options: ReplayOptions, of: _Columns, taken: Iterable[str]) -> dict[str, str]:
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
    words = ["abers", "replay", *arguments(options._replace(columns=kept)), *named]
    return shlex.join(words)

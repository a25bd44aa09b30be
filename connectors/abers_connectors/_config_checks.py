"""What the keys of a configuration say of one another.

Governing rule: a check looks only at values of the right type, as the others
are told elsewhere; so all mistakes are found, however many there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from abers.exceptions import MissingExtraError, ParameterError
from abers.learners.river import LEARNERS, REGRESSORS, make, make_multi, make_regressor
from abers.stream.settings import (
    CALIBRATORS,
    DISTRIBUTIONS,
    OF_PROBABILITIES,
    QUANTILES,
    Settings,
    ascend,
)
from abers_connectors._config_kafka_checks import service
from abers_connectors._config_layers import Problem
from abers_connectors._config_types import is_number, shown
from abers_connectors._config_values import Values, is_name
from abers_connectors._paths import constant
from abers_connectors._suggest import closest
from abers_connectors.files.aliases import Use, clashes
from abers_connectors.files.naming import STANDARD, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["conflicts", "dead_letters_beside", "format_of"]

_FORMATS = ("csv", "jsonl", "parquet")
_SUFFIXES = "end its name in .csv or .jsonl (.gz or .zst may follow), or in .parquet"
_OUTPUTS = ("output.predictions", "output.outcomes", "output.dead_letters")
_INPUTS = ("input.observations", "input.labels")
_NAMES = ("input.fields.model", "input.fields.segment", "input.label_fields.model")


def dead_letters_beside(predictions: str) -> str:
    """Name the file of bad records that goes with a file of predictions, and with no other.

    Examples
    --------
    >>> dead_letters_beside("out/scores.jsonl.gz"), dead_letters_beside("-")
    ('out/scores.jsonl.gz.dead.jsonl', 'abers.dead.jsonl')
    """
    return f"{'abers' if predictions == STANDARD else predictions}.dead.jsonl"


def conflicts(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Find what contradicts itself.

    Parameters
    ----------
    values
        In sections, as in TOML; anything may be missing or of a wrong type.

    Yields
    ------
    Problem
        One for each contradiction.
    """
    found = Values(values)
    of_files = (_inputs, _outputs, _files) if found.get("kafka") is None else ()
    for check in (_task, _lengths, _forgetting, _second_input, *of_files, service, _learner):
        for path, text in check(found):
            yield Problem(tuple(path.split(".")), text)


def _task(values: Values) -> Iterator[tuple[str, str]]:
    kind, classes = values.get("task.kind") or "binary", values.get("task.classes")
    if not isinstance(kind, str) or kind not in CALIBRATORS:
        return
    named = isinstance(classes, list | tuple) and all(isinstance(one, str) for one in classes)
    if kind == "multiclass":
        if not classes or (named and len({*classes}) < max(2, len(classes))):
            yield "task.classes", 'name two or more different classes: ["cat", "dog"]'
    elif classes:
        yield "task.classes", f"is for the task {shown('multiclass')}; leave it out"
    if kind != "binary" and values.get("input.positive"):
        yield "input.positive", 'is for the task "binary"; leave it out'
    yield from _distribution(values, kind)
    yield from _scores(values, kind, classes if named else None)
    yield from _calibrator(values, kind)


def _lengths(values: Values) -> Iterator[tuple[str, str]]:
    """Look for names that are longer than those of records may be."""
    given = values.get("limits.max_name_bytes")
    most = given if type(given) is int else Settings().max_name_bytes
    classes = values.get("task.classes")
    named = [("task.classes", one) for one in classes if isinstance(one, str)] if classes else []
    for path, field in values.texts(*_NAMES).items():
        named.append((path, constant(field) or ""))
    for path, name in named:
        size = len(name.encode("utf-8", "surrogatepass"))
        if size > most:
            advice = f"shorten it, or raise limits.max_name_bytes = {most}"
            yield path, f"{shown(name)} takes {size:,} bytes; {advice}"


def _calibrator(values: Values, kind: str) -> Iterator[tuple[str, str]]:
    given = values.get("calibrator.kind")
    if any(given in known for known in CALIBRATORS.values()) and given not in CALIBRATORS[kind]:
        known = " or ".join(map(shown, CALIBRATORS[kind]))
        yield "calibrator.kind", f"{shown(given)} is none for the task {shown(kind)}: {known}"
    if given in OF_PROBABILITIES and values.get("task.scores") != "probability":
        told = f"is for probabilities; write task.scores = {shown('probability')}"
        yield "calibrator.kind", f"{shown(given)} {told}"


def _distribution(values: Values, kind: str) -> Iterator[tuple[str, str]]:
    """Look at what belongs to a regression."""
    if kind == "regression" and values.get("task.scores") == "probability":
        yield "task.scores", f"is for classes; write {shown('any')} for the task {shown(kind)}"
    ends = {"task.quantiles": (0.0, 1.0), "calibrator.thresholds": (-math.inf, math.inf)}
    for path, (low, high) in ends.items():
        given = values.get(path)
        numbers = isinstance(given, list | tuple) and all(map(is_number, given))
        if not numbers or (path == "task.quantiles" and tuple(given) == QUANTILES):
            continue
        if given and kind != "regression":
            yield path, f"is for the task {shown('regression')}; leave it out"
        elif not ascend(given, low, high) or (path == "task.quantiles" and not given):
            between = " between 0 and 1" if high == 1.0 else ""
            yield path, f"{shown(given)} is not an ascending list of numbers{between}"
    yield from _whole(values, kind)


def _whole(values: Values, kind: str) -> Iterator[tuple[str, str]]:
    """Look at what belongs to whole distributions."""
    wanted, given = (values.get(f"calibrator.{name}") for name in ("distributions", "support"))
    whole = isinstance(wanted, str) and wanted in DISTRIBUTIONS[1:]
    if whole and kind != "regression":
        yield "calibrator.distributions", f"is for the task {shown('regression')}; leave it out"
    if not isinstance(given, list | tuple) or not given or not all(map(is_number, given)):
        return
    within = values.get("calibrator.thresholds")
    thresholds = within if isinstance(within, list | tuple) else ()
    if not whole:
        told = f"{shown('judged')} or {shown('told')}"
        yield "calibrator.support", f"is for calibrator.distributions = {told}; leave it out"
    elif len(given) != len(("low", "high")) or not ascend(given):
        yield "calibrator.support", f"{shown(given)} is not two numbers, the smaller one first"
    elif not all(given[0] <= one <= given[1] for one in thresholds if is_number(one)):
        yield "calibrator.support", f"{shown(given)} does not span calibrator.thresholds; widen it"


def _scores(values: Values, kind: str, classes: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    """Compare the fields of the scores with the classes."""
    paths = values.get("input.fields.score")
    if not isinstance(paths, Mapping) or not paths or not all(map(is_name, paths.values())):
        return
    if kind != "multiclass":
        yield "input.fields.score", f"is one field for the task {shown(kind)}; name it"
    elif classes is not None and {*paths} != {*classes}:
        yield (
            "input.fields.score",
            f"names a field for each of {shown(list(classes))}, and no other",
        )


def _forgetting(values: Values) -> Iterator[tuple[str, str]]:
    ways = ["calibrator.window", "calibrator.max_age", "calibrator.half_life"]
    given = [way for way in ways if values.get(way) is not None]
    for way in given[1:]:
        yield way, f"cannot go together with {given[0]}; leave one of them out"


def _second_input(values: Values) -> Iterator[tuple[str, str]]:
    mapping = values.get("input.label_fields")
    mapped = isinstance(mapping, Mapping) and any(one is not None for one in mapping.values())
    labels = "input.labels" if values.get("kafka") is None else "kafka.labels"
    if values.get(labels) is None:
        if mapped:
            yield "input.label_fields", f"there is no second input; name it in {labels}"
    elif labels == "input.labels" and values.get("input.delay") is not None:
        yield "input.delay", "cannot go together with input.labels; leave one of them out"


def _inputs(values: Values) -> Iterator[tuple[str, str]]:
    inputs, given = values.texts(*_INPUTS), values.get("input.format")
    if given is not None and given not in _FORMATS:
        return
    for path, file in inputs.items():
        if format_of(file) is None:
            yield from _unreadable(path, file, given)
    said = {format_of(file) for file in inputs.values()}
    if given is not None and said and not said & {None, given}:
        names = " and ".join(inputs.values())
        yield "input.format", f"{shown(given)} contradicts the name {names}; leave format out"


def format_of(file: str) -> str | None:
    """Tell the format that the name of a file says; None if it says none."""
    try:
        return kind_of(file).format
    except ParameterError:
        return None


def _unreadable(path: str, file: str, given: str | None) -> Iterator[tuple[str, str]]:
    try:
        kind_of(file, given)
    except ParameterError as error:
        yield path, str(error).removeprefix(f"{file}: ")


def _outputs(values: Values) -> Iterator[tuple[str, str]]:
    for path, file in values.texts(*_OUTPUTS).items():
        if file != STANDARD and format_of(file) is None:
            yield path, f"{shown(file)} is an unknown kind of file; {_SUFFIXES}"
    if values.get("state.path") == STANDARD:
        yield "state.path", f"{shown(STANDARD)} is no file; name one"


def _files(values: Values) -> Iterator[tuple[str, str]]:
    """Refuse a file that stands twice; standard input and output are two."""
    files = _every_file(values).items()
    # That "-" is no state is said elsewhere.
    yield from clashes(
        Use(path, file, path in _INPUTS)
        for path, file in files
        if (path, file) != ("state.path", STANDARD)
    )


def _every_file(values: Values) -> dict[str, str]:
    """Give all files that are read or written, those by default too."""
    given = {path: values.get(path) for path in (*_INPUTS, *_OUTPUTS, "state.path")}
    if given["output.predictions"] is None:
        given["output.predictions"] = STANDARD
    if given["output.dead_letters"] is None and is_name(given["output.predictions"]):
        given["output.dead_letters"] = dead_letters_beside(given["output.predictions"])
    return {path: file for path, file in given.items() if is_name(file)}


def _learner(values: Values) -> Iterator[tuple[str, str]]:
    """Make the learner, where river is installed; the short names are known without it."""
    name, kind = values.get("learner.name"), values.get("task.kind") or "binary"
    known = REGRESSORS if kind == "regression" else LEARNERS
    if not isinstance(name, str) or not name or (name in known and kind != "multiclass"):
        return
    try:
        if kind == "multiclass":
            make_multi(name, ())
        else:
            (make_regressor if kind == "regression" else make)(name)
    except ParameterError as error:
        near = closest(name, known)
        hint = f", did you mean {shown(near)}?" if near and near != name else ""
        yield "learner.name", f"{error}{hint}"
    except MissingExtraError:
        pass

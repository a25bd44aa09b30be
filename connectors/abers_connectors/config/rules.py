"""Rules between the keys of a configuration.

Each rule skips values of a wrong type, because `problems` reports those. So one
pass finds all mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from abers import registry
from abers.exceptions import MissingExtraError, ParameterError
from abers.learners.river_adapters import LEARNERS, REGRESSORS, make, make_multi, make_regressor
from abers.stream.fields import constant
from abers.stream.settings import (
    CALIBRATORS,
    DISTRIBUTIONS,
    QUANTILES,
    Settings,
    ascend,
)
from abers.suggestions import closest
from abers_connectors.config.format_rules import format_conflicts
from abers_connectors.config.former_names import FORMER_NAMES
from abers_connectors.config.kafka_rules import kafka_conflicts
from abers_connectors.config.label_rules import learn_after, unlabelled
from abers_connectors.config.raw_values import INPUTS, OUTPUTS, Found, RawValues, is_name
from abers_connectors.config.sections import dead_letters_beside
from abers_connectors.config.value_types import shown
from abers_connectors.files.aliases import FileUse, clashes
from abers_connectors.files.formats import STANDARD, default_format, file_format
from abers_connectors.sinks.registry import SINKS
from abers_connectors.sources.registry import SOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.capabilities import Capabilities

__all__ = ["conflicts", "format_of"]

_FORMATS = ("csv", "jsonl", "parquet")
_FORGETTING = ("window", "max_age", "half_life")
_NAMES = ("input.fields.model", "input.fields.segment", "input.label_fields.model")


def format_of(file: str) -> str | None:
    """Return the format that a file name implies, or None."""
    try:
        return file_format(file).format
    except ParameterError:
        return None


def conflicts(values: Mapping[str, Any]) -> Found:
    """Return the dotted path and the message of each contradiction in sections as TOML has them."""
    found = RawValues(values)
    yield from _task(found)
    yield from _lengths(found)
    ways = [f"calibrator.{name}" for name in _FORGETTING]
    given = [way for way in ways if found.get(way) is not None]
    for way in given[1:]:
        yield way, f"cannot be combined with {given[0]}; remove one of them"
    yield from _second_input(found)
    yield from unlabelled(found)
    yield from learn_after(found)
    if found.get("kafka") is None:
        for check in (_check_inputs, _check_outputs, _files):
            yield from check(found)
    yield from kafka_conflicts(found)
    yield from format_conflicts(found)
    yield from _learner(found)


def _task(values: RawValues) -> Found:
    """Yield problems of settings that do not fit the task."""
    kind, classes = values.get("task.kind") or "binary", values.get("task.classes")
    if not isinstance(kind, str) or kind not in CALIBRATORS:
        return
    names = values.strings("task.classes")
    quantiles = values.numbers("task.quantiles")
    owners = {
        "task.classes": ("multiclass", names),
        "input.pos_label": ("binary", values.get("input.pos_label")),
        "task.quantiles": ("regression", quantiles != QUANTILES and quantiles),
        "calibrator.grid": ("regression", values.numbers("calibrator.grid")),
        "calibrator.distributions": ("regression", _whole(values)),
        "calibrator.support": ("regression", values.numbers("calibrator.support")),
        "calibrator.coverage": ("regression", values.get("calibrator.coverage")),
    }
    for path, (owner, given) in owners.items():
        if given and kind != owner:
            yield path, f"applies only to the task {shown(owner)}; remove it"
    too_few = names is not None and len({*names}) < max(2, len(names))
    if kind == "multiclass" and (not classes or too_few):
        yield "task.classes", 'must be two or more different classes, such as ["cat", "dog"]'
    if kind == "regression":
        yield from _regression(values)
        yield from _support(values)
    yield from _scores(values, kind, names)
    yield from _calibrator(values, kind)
    yield from _probability(values, kind)


def _whole(values: RawValues) -> bool:
    """Return whether whole predictive distributions are wanted."""
    return values.get("calibrator.distributions") in DISTRIBUTIONS[1:]


def _regression(values: RawValues) -> Found:
    if values.get("task.scores") == "probability":
        yield "task.scores", 'must be "any" or "logit" for the task "regression"'
    quantiles, grid = values.numbers("task.quantiles"), values.numbers("calibrator.grid")
    if quantiles is not None and not (quantiles and ascend(quantiles, 0.0, 1.0)):
        yield "task.quantiles", f"{shown(quantiles)} is not an ascending list between 0 and 1"
    if grid is not None and not ascend(grid):
        yield "calibrator.grid", f"{shown(grid)} is not an ascending list of numbers"


def _support(values: RawValues) -> Found:
    support, grid = values.numbers("calibrator.support"), values.numbers("calibrator.grid")
    protected = values.get("calibrator.kind") == "protected"
    if protected:
        yield from _protected_numbers(values)
    elif values.get("calibrator.coverage") is not None:
        yield "calibrator.coverage", f"needs calibrator.kind = {shown('protected')}"
    if not support:
        return
    if not _whole(values) and not protected:
        yield "calibrator.support", 'needs calibrator.distributions = "scored" or "full"'
    elif len(support) != 2 or not ascend(support):  # noqa: PLR2004 - a pair
        yield "calibrator.support", f"{shown(support)} is not two numbers in ascending order"
    elif not all(support[0] <= one <= support[1] for one in grid or ()):
        yield "calibrator.support", f"{shown(support)} does not contain calibrator.grid; widen it"


def _protected_numbers(values: RawValues) -> Found:
    """Find what the protected calibrator of a regression needs, and what it does not take."""
    of = shown("protected")
    if values.get("calibrator.support") in (None, [], ()):
        yield "calibrator.support", f"{of} needs the ends of all labels; write [lowest, highest]"
    yield from _without(values, "protected", "grid")


def _without(values: RawValues, of: str, *names: str) -> Found:
    """Find keys that a calibrator does not have."""
    for name in names:
        if values.get(f"calibrator.{name}"):
            yield f"calibrator.{name}", f"is not for {shown(of)}; remove it"


def _scores(values: RawValues, kind: str, classes: Sequence[str] | None) -> Found:
    """Compare the score fields with the classes."""
    paths = values.get("input.fields.score")
    if not isinstance(paths, Mapping) or not paths or not all(map(is_name, paths.values())):
        return
    if kind != "multiclass":
        yield "input.fields.score", f"must be a single field for the task {shown(kind)}"
    elif classes is not None and {*paths} != {*classes}:
        yield "input.fields.score", f"must have one field for each of {shown(list(classes))}"


def _calibrator(values: RawValues, kind: str) -> Found:
    """Compare the calibrator with the task; one with an import path is imported."""
    path, given = "calibrator.kind", values.get("calibrator.kind")
    if not is_name(given):
        return
    known = [*map(shown, registry.names(kind))]
    other = f"{shown(given)} does not support the task {shown(kind)}; use {' or '.join(known)}"
    if given not in registry.names(kind) and not registry.is_path(given):
        near = FORMER_NAMES.get(given, closest(given, registry.names()))
        hint = f"; did you mean {shown(near)}?" if near else ""
        unknown = f'{shown(given)} is not one of {", ".join(known)}, or "package.module:Class"'
        yield path, other if given in registry.names() else f"{unknown}{hint}"
        return
    try:
        able = registry.capabilities(given, kind)
    except ParameterError as error:
        yield path, str(error).removeprefix("calibrator ")
        return
    if able.task != kind:
        yield path, other
    yield from _without(values, given, *(one for one in _FORGETTING if one not in able.forgetting))
    yield from _lack_of_probabilities(values, path, given, able)


def _probability(values: RawValues, kind: str) -> Found:
    """Compare the probability that is predicted with the calibrator."""
    path, given = "calibrator.probability", values.get("calibrator.probability")
    named = values.get("calibrator.kind")
    of = named if is_name(named) else CALIBRATORS[kind][0]
    forms = registry.protected_forms(kind)
    able = (*forms, *forms.values())
    if given == "merged" and of in forms.values():
        other = next(name for name, form in forms.items() if form == of)
        yield path, f'cannot be "merged" for {shown(of)}; set calibrator.kind = {shown(other)}'
    if given != "protected":
        return
    if not able:
        yield path, f'"protected" does not support the task {shown(kind)}; remove it'
    elif of not in able:
        known = " or ".join(map(shown, able))
        yield path, f'"protected" needs calibrator.kind = {known}, not {shown(of)}; remove it'
    elif of in forms:
        able_of = registry.capabilities(forms[of], kind)
        yield from _lack_of_probabilities(values, path, given, able_of)


def _lack_of_probabilities(values: RawValues, path: str, given: str, able: Capabilities) -> Found:
    """Find scores of a calibrator of probabilities that are not declared to be some."""
    if able.of_probabilities and values.get("task.scores") != "probability":
        yield path, f'{shown(given)} needs probabilities; set task.scores = "probability"'


def _lengths(values: RawValues) -> Found:
    """Find names that are longer than those in records may be."""
    given = values.get("limits.max_name_bytes")
    most = given if type(given) is int else Settings().max_name_bytes
    named = [("task.classes", one) for one in values.strings("task.classes") or ()]
    named += [(path, constant(field) or "") for path, field in values.names(*_NAMES).items()]
    for path, name in named:
        size = len(name.encode("utf-8", "surrogatepass"))
        if size > most:
            advice = f"shorten it, or raise limits.max_name_bytes = {most}"
            yield path, f"{shown(name)} has {size:,} bytes; {advice}"


def _second_input(values: RawValues) -> Found:
    mapping = values.get("input.label_fields")
    mapped = isinstance(mapping, Mapping) and any(one is not None for one in mapping.values())
    labels = "input.labels" if values.get("kafka") is None else "kafka.labels"
    if values.get(labels) is None:
        if mapped:
            yield "input.label_fields", f"needs a second input; set {labels}"
    elif labels == "input.labels" and values.get("input.delay") is not None:
        yield "input.delay", "cannot be combined with input.labels; remove one of them"
    if values.get("input.fields.label_time") is not None:
        for other in (labels, "input.delay", "kafka"):
            if values.get(other) is not None:
                yield (
                    "input.fields.label_time",
                    f"cannot be combined with {other}; remove one of them",
                )


def _check_inputs(values: RawValues) -> Found:
    """Yield problems of the formats of input files."""
    files, given = values.names(*INPUTS), values.get("input.format")
    if given is not None and given not in _FORMATS:
        return
    formats = {format_of(file) for file in files.values()}
    for path, file in files.items():
        try:
            SOURCES.key(file, None if format_of(file) else given)
        except ParameterError as error:
            yield path, str(error).removeprefix(f"{file}: ")
    if given is not None and formats and not formats & {None, given}:
        problem = f"{shown(given)} contradicts the file name {' and '.join(files.values())}"
        yield "input.format", f"{problem}; remove input.format"


def _check_outputs(values: RawValues) -> Found:
    for path, file in values.names(*OUTPUTS).items():
        try:
            SINKS.key(file, default_format(file))
        except ParameterError:
            suffixes = ".csv or .jsonl (.gz or .zst may follow), or .parquet"
            yield path, f"{shown(file)} has an unknown format; end the name in {suffixes}"
    if values.get("state.path") == STANDARD:
        yield "state.path", '"-" is not a file; write the name of a file'


def _files(values: RawValues) -> Found:
    """Find files that are used twice; standard input and standard output are two files."""
    files = {path: values.get(path) for path in (*INPUTS, *OUTPUTS, "state.path")}
    if files["output.predictions"] is None:
        files["output.predictions"] = STANDARD
    if files["output.dead_letters"] is None and is_name(files["output.predictions"]):
        files["output.dead_letters"] = dead_letters_beside(files["output.predictions"])
    if files["state.path"] == STANDARD:  # which `_check_outputs` reports
        del files["state.path"]
    yield from clashes(
        FileUse(path, file, reads=path in INPUTS) for path, file in files.items() if is_name(file)
    )


def _learner(values: RawValues) -> Found:
    """Create the learner, if river is installed; the short names are known without it."""
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
        hint = f"; did you mean {shown(near)}?" if near and near != name else ""
        yield "learner.name", f"{error}{hint}"
    except MissingExtraError:
        pass

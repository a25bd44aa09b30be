"""Rules between the keys of a configuration.

Each rule skips values of a wrong type, because `problems` reports those. So one
pass finds all mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from abers import registry
from abers.exceptions import MissingExtraError, ParameterError
from abers.learners.river_adapters import LEARNERS, REGRESSORS, make, make_multi, make_regressor
from abers.stream.fields import constant
from abers.stream.option import REMOVE, SET, Phrase, Quoted
from abers.stream.option_values import found_by
from abers.stream.setting_rules import RULES, unable
from abers.stream.settings import CALIBRATORS, Settings
from abers.suggestions import closest
from abers_connectors.config.format_rules import format_conflicts
from abers_connectors.config.kafka_rules import kafka_conflicts
from abers_connectors.config.label_rules import unlabelled
from abers_connectors.config.raw_values import INPUTS, OUTPUTS, Found, RawValues, is_name
from abers_connectors.config.sections import dead_letters_beside
from abers_connectors.config.value_types import shown
from abers_connectors.files.aliases import FileUse, clashes
from abers_connectors.files.formats import STANDARD, default_format, file_format
from abers_connectors.sinks.registry import SINKS
from abers_connectors.sources.registry import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers.stream.option import Problem
    from abers.stream.option_values import OptionValues
    from abers_connectors.config.raw_values import Text

__all__ = ["conflicts", "format_of"]

_FORMATS = ("csv", "jsonl", "parquet")
_NAMES = ("input.fields.model", "input.fields.segment", "input.label_fields.model")


def format_of(file: str) -> str | None:
    """Return the format that a file name implies, or None."""
    try:
        return file_format(file).format
    except ParameterError:
        return None


def conflicts(found: RawValues, values: OptionValues) -> Found:
    """Return the key and the message of each contradiction in sections as TOML has them.

    `values` are those of the settings that could be read.
    """
    for one in found_by((*RULES, _own_calibrator), values):
        yield one.option.key, one.text
    yield from _task(found)
    yield from _lengths(found)
    yield from _second_input(found)
    yield from unlabelled(found)
    if found.get("kafka") is None and found.get("serve") is None:
        for check in (_check_inputs, _check_outputs, _files):
            yield from check(found)
    yield from kafka_conflicts(found)
    yield from format_conflicts(found)
    yield from _learner(found)


def _own_calibrator(v: OptionValues) -> Iterator[Problem]:
    """Import a calibrator with an import path, and compare it with the task."""
    name = v.calibrator
    if name is None or not registry.is_path(name):
        return
    try:
        able = registry.capabilities(name, v.task)
    except ParameterError as error:
        yield v.problem("calibrator", str(error).removeprefix("calibrator "))
        return
    yield from unable(v, name, able)


def _task(values: RawValues) -> Found:
    """Yield problems of keys of records that do not fit the task."""
    kind = values.get("task.kind") or "binary"
    if not isinstance(kind, str) or kind not in CALIBRATORS:
        return
    if values.get("input.pos_label") and kind != "binary":
        owner = ("applies only to the task ", Quoted("binary"), "; ", REMOVE)
        yield "input.pos_label", owner
    yield from _scores(values, kind, values.strings("task.classes"))


def _scores(values: RawValues, kind: str, classes: Sequence[str] | None) -> Found:
    """Compare the score fields with the classes."""
    paths = values.get("input.fields.score")
    if not isinstance(paths, Mapping) or not paths or not all(map(is_name, paths.values())):
        return
    if kind != "multiclass":
        yield "input.fields.score", f"must be a single field for the task {shown(kind)}"
    elif classes is not None and {*paths} != {*classes}:
        yield "input.fields.score", f"must have one field for each of {shown(list(classes))}"


def _lengths(values: RawValues) -> Found:
    """Find names that are longer than those in records may be."""
    given = values.get("limits.max_name_bytes")
    most = given if type(given) is int else Settings().max_name_bytes
    for path, field in values.names(*_NAMES).items():
        name = constant(field) or ""
        size = len(name.encode("utf-8", "surrogatepass"))
        if size > most:
            words = f" has {size:,} bytes; shorten it, or raise "
            yield path, (Quoted(name), words, values.ref("limits.max_name_bytes", most))


def _second_input(values: RawValues) -> Found:
    mapping = values.get("input.label_fields")
    mapped = isinstance(mapping, Mapping) and any(one is not None for one in mapping.values())
    labels = "input.labels" if values.get("kafka") is None else "kafka.labels"
    if values.get(labels) is None:
        if mapped:
            yield "input.label_fields", ("needs a second input; ", SET, values.ref(labels))
    elif labels == "input.labels" and values.get("input.delay") is not None:
        yield "input.delay", _excludes(values, labels)
    if values.get("input.fields.label_time") is not None:
        for other in (labels, "input.delay", "kafka"):
            if values.get(other) is not None:
                yield "input.fields.label_time", _excludes(values, other)


def _excludes(values: RawValues, other: str) -> Text:
    return ("cannot be combined with ", values.ref(other), "; remove one of them")


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
        contradicts = f" contradicts the file name {' and '.join(files.values())}; "
        yield "input.format", (Quoted(given), contradicts, REMOVE)


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
    for name, before, other, after in clashes(
        FileUse(path, file, reads=path in INPUTS) for path, file in files.items() if is_name(file)
    ):
        stream = other == "input.observations"  # which a command has as its argument
        part = Phrase(other, other, "the input") if stream else values.ref(other)
        yield name, (before, part, after)


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

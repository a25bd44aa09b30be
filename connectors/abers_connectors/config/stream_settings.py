"""The settings of the processor in a configuration: three of them are written in another way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers.learners.river_adapters import USUAL
from abers.stream.cells import BadRecordError
from abers.stream.option_values import OptionValues
from abers.stream.settings import setting_options
from abers_connectors.config.label_rules import label_reader
from abers_connectors.config.options import OF_SETTINGS
from abers_connectors.config.units import milliseconds
from abers_connectors.config.value_types import DROP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.config.raw_values import RawValues

__all__ = ["read_settings", "setting_values"]

_KEY = "input.unlabelled"


def setting_values(settings: Mapping[str, Any], raw: RawValues) -> OptionValues:
    """Return the settings that could be read, and as they were given, for rules."""
    given = {name: raw.get(one.key) for name, one in setting_options().items()}
    written = {name: value for name, value in given.items() if value is not None}
    return OptionValues(setting_options(), settings, written)


def read_settings(found: Mapping[str, Any], raw: RawValues) -> dict[str, Any]:
    """Return the settings that could be read; those that are not given have their default."""
    usual = setting_options()
    values = {
        name: found.get(key, usual[name].default)
        for key, name in OF_SETTINGS.items()
        if key in found or raw.get(key) is None
    }
    return values | _run_length(values) | _learner(values, raw) | _unlabelled(found, raw)


def _run_length(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the average run length as the processor has it: a number, or a time."""
    length = values.get("average_run_length")
    if not isinstance(length, str):
        return {"average_run_time": None}
    usual = setting_options()["average_run_length"].default
    return {"average_run_length": usual, "average_run_time": milliseconds(length)}


def _learner(values: Mapping[str, Any], raw: RawValues) -> dict[str, Any]:
    """Return the learner: in a section without a name it is the usual one of the task."""
    named = values.get("learner")
    if raw.get("learner") is None or named is not None or "task" not in values:
        return {}
    return {"learner": USUAL[values["task"]]}


def _unlabelled(found: Mapping[str, Any], raw: RawValues) -> dict[str, Any]:
    """Return the label that is assumed, read as the task has labels; nothing if it cannot be."""
    given, kind = raw.get(_KEY), found.get("task.kind", "binary")
    if given is None or given == DROP:
        return {"unlabelled": None}
    if _KEY not in found:
        return {}
    if kind == "regression":
        return {"unlabelled": given}
    try:
        read = label_reader(raw, kind)
        return {} if read is None else {"unlabelled": read.one(given)}
    except BadRecordError:
        return {}

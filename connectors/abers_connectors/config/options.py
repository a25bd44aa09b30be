"""All options of a configuration by key: settings of the processor, and those of sections."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from abers.stream.settings import setting_options
from abers_connectors.config import sections
from abers_connectors.config.section import section_options
from abers_connectors.config.value_types import RUN_LENGTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers.stream.option import Option
    from abers_connectors.config.section import Section

__all__ = ["OF_SETTINGS", "SECTIONS", "option", "options"]

SECTIONS: Mapping[str, type[Section] | None] = {
    **dict.fromkeys(("task", "calibrator", "learner")),
    "input": sections.InputSection,
    "input.fields": sections.InputFieldsSection,
    "input.label_fields": sections.LabelFieldsSection,
    "output": sections.OutputSection,
    "kafka": sections.KafkaSection,
    "kafka.security": sections.SecuritySection,
    "schema_registry": sections.SchemaRegistrySection,
    "limits": None,
    "state": sections.StateSection,
    "http": sections.HttpSection,
    "serve": sections.ServeSection,
    "monitoring": None,
    "alerts": sections.AlertsSection,
    "telemetry": sections.TelemetrySection,
}
"""The sections in their order; those without a class have settings of the processor alone."""

# Two settings are one key, a number or a time; another is read like a label of a record.
_OWN = ("average_run_time", "unlabelled")
OF_SETTINGS = {one.key: name for name, one in setting_options().items() if name not in _OWN}
"""The setting of each key that is one."""


@cache
def options() -> Mapping[str, Option]:
    """Return the options by key, section by section."""
    return {one.key: one for path in SECTIONS for one in _of_section(path)}


def _of_section(path: str) -> list[Option]:
    if (kind := SECTIONS[path]) is not None:
        return [*section_options(kind, path).values()]
    named = setting_options()
    found = [named[name] for key, name in OF_SETTINGS.items() if key.rpartition(".")[0] == path]
    found = [_with_times(one) if one.name == "average_run_length" else one for one in found]
    return sorted(found, key=lambda one: not one.key.endswith(".kind"))


def _with_times(length: Option) -> Option:
    """Return the run length as a configuration has it: a number, or a time."""
    time = setting_options()["average_run_time"]
    return length.with_kind(
        RUN_LENGTH,
        more=f'A time, such as "{time.example}", is the mean event time between them instead.',
    )


def option(key: str) -> Option:
    """Return the option of a key.

    >>> option("calibrator.half_life").sentence
    'Time in which the weight of a label halves.'
    """
    return options()[key]

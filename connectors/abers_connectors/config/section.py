"""What every section of a configuration is: immutable, with declared options."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from abers.exceptions import ConfigError
from abers.stream.option import Option, declared, shown
from abers.stream.option_values import read_all
from abers_connectors.config.value_types import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Section", "key", "section_options"]


def key(sentence: str, more: str = "", **rest: Any) -> Option:  # noqa: ANN401 - see `Option`
    """Return the declaration of an option that is named after its field."""
    return Option("", sentence, more, **rest)


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A section of a configuration; values are read like those of a file."""

    intro: ClassVar[str] = ""  # what the example says first

    def __post_init__(self) -> None:
        """Read the values that are no defaults; raise a ConfigError for mistakes."""
        options = section_options(type(self), "")
        values = {name: getattr(self, name) for name in options}
        given = {name: one for name, one in values.items() if one != options[name].default}
        read, problems = read_all({name: options[name] for name in given}, given, read_toml)
        if problems:
            raise ConfigError([shown(one, "python") for one in problems])
        for name, value in read.items():
            msgspec.structs.force_setattr(self, name, value)


@cache
def section_options(kind: type[Section], path: str) -> Mapping[str, Option]:
    """Return the options of a section by the names of its fields."""
    return declared(kind, path)

"""The declared options, by their keys in a configuration."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from abers.stream.settings import setting_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers.stream.option import Option

__all__ = ["option", "options"]


@cache
def options() -> Mapping[str, Option]:
    """Return each option by its key, the first where two settings share a key."""
    found: dict[str, Option] = {}
    for one in setting_options().values():
        found.setdefault(one.key, one)
    return found


def option(key: str) -> Option:
    """Return the option of a key.

    >>> option("calibrator.half_life").sentence
    'Time in which the weight of a label halves.'
    """
    return options()[key]

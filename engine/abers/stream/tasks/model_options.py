"""Options of the models of the core, from the settings of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from abers.forgetting import Forgetting
from abers.stream.setting_rules import FORGETTING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers.stream.settings import Settings

__all__ = ["ModelOptions", "model_options"]

_LEAST_WAIT = 4_096  # predictions


class ModelOptions(NamedTuple):
    """How a model forgets, what its mixture is, and in which order labels teach it."""

    rule: Forgetting
    mixture: dict[str, Any]
    teaching: dict[str, Any]


def model_options(settings: Settings, given: Mapping[str, Any]) -> ModelOptions:
    """Return them from settings, and from the options of the calibrator."""
    mixture = {name: given[name] for name in ("scores", "raw_weight") if name in given}
    after = settings.labels_after
    teaching = {
        # What expires holds nothing back, so the wait bounds only how many labels are kept.
        "wait": max(settings.max_pending, _LEAST_WAIT),
        "age": -1 if after is None else after,
        "room": settings.max_bytes,
    }
    return ModelOptions(Forgetting(*map(given.get, FORGETTING)), mixture, teaching)

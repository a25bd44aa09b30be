"""Values in lists of settings, the order of these lists, and the rules of forgetting."""

from __future__ import annotations

import math
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any

from abers.exceptions import ParameterError
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.capabilities import Capabilities

__all__ = [
    "FORGETTING",
    "ascend",
    "checked_real",
    "require_choice",
    "require_forgetting",
    "require_learn_after",
    "require_unlabelled",
    "text",
]

FORGETTING = ("window", "max_age", "half_life")
"""Settings that are rules of forgetting."""

_ORDERED = ("ivap", "protected")  # calibrators of two classes that have an order of teaching


def text(value: object) -> str:
    """Return a string that can be encoded, or raise a TypeError or a ValueError."""
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # half of a surrogate pair cannot be encoded
    return value


def checked_real(value: object) -> float:
    """Return a number as a float, or raise a TypeError or an OverflowError."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError
    return float(value)


def require_choice(name: str, value: object, known: Sequence[str | None]) -> None:
    """Raise a ParameterError for an unknown value of a setting."""
    if value not in known:
        names = ", ".join(repr(one) for one in known if one is not None)
        msg = f"unknown {name} {shown(value)}; use one of {names}"
        raise ParameterError(msg)


def ascend(values: Sequence[float], low: float = -math.inf, high: float = math.inf) -> bool:
    """Return whether numbers ascend strictly between two ends.

    Examples
    --------
    >>> ascend([0.1, 0.9], 0.0, 1.0), ascend([0.1, 0.1]), ascend([0.0, 0.5], 0.0, 1.0)
    (True, False, False)
    """
    return all(a < b for a, b in pairwise([low, *values, high]))


def require_forgetting(settings: object, name: str, able: Capabilities) -> None:
    """Refuse a rule of forgetting that the calibrator of this name does not have."""
    for rule in FORGETTING:
        given = getattr(settings, rule)
        if given is not None and rule not in able.forgetting:
            msg = f"{rule}={given} is not for {shown(name)}; leave it out"
            raise ParameterError(msg)


def require_unlabelled(settings: Any) -> None:  # noqa: ANN401 - `Settings`, which import this
    """Check the label that is assumed: it must be one of the task, after some time."""
    given, known = settings.unlabelled, settings.classes or (0, 1)
    if given is None:
        return
    if settings.task == "regression":
        msg = f"unlabelled={shown(given)} is a class, and labels are numbers; leave it out"
        raise ParameterError(msg)
    if type(given) is bool or given not in known:
        msg = f"unlabelled={shown(given)} is not among {shown([*known])}; name one of them"
        raise ParameterError(msg)
    if settings.label_timeout == 0:
        msg = f"unlabelled={shown(given)} needs a label_timeout above 0; set it"
        raise ParameterError(msg)


def require_learn_after(settings: Any) -> None:  # noqa: ANN401 - likewise
    """Refuse an age at which labels are learned where they are learned as they come."""
    name = settings.calibrator_name
    if settings.learn_after is None or (settings.task == "binary" and name in _ORDERED):
        return
    msg = (
        f"learn_after={settings.learn_after} is for two classes and the calibrators ivap and "
        f"protected, not for {shown(name)} of a {settings.task} task; leave it out"
    )
    raise ParameterError(msg)

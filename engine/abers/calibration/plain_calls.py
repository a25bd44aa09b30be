"""Methods of `VennAbers` and `UnboundedIVAR` that the native core answers where a call is plain.

A plain call has no option, and nothing is wrong with it. All others go on to the method that is
decorated, which alone checks its arguments and words its errors. On the reference it takes all.
"""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, TypeVar, cast

from abers.backends import backend, core

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["learns", "predicts"]

_Method = TypeVar("_Method", bound="Callable[..., object]")


def predicts(answer: type) -> Callable[[_Method], _Method]:
    """Return a decorator of a `predict_one` that predicts objects of a class of numbers."""

    def decorated(general: _Method) -> _Method:
        if backend() != "native":
            return general
        return cast("_Method", update_wrapper(core.plain_predict(general, answer), general))

    return decorated


def learns(general: _Method) -> _Method:
    """Decorate a `learn_one`."""
    if backend() != "native":
        return general
    return cast("_Method", update_wrapper(core.plain_learn(general), general))

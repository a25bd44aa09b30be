"""Variables of the environment that nothing reads, though they were meant for abers."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING

from abers.stream.option import variable
from abers_connectors.config.layers import is_variable
from abers_connectors.config.options import options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["unread_variables", "unused_variables"]

_NEAR = 0.9  # a variable that is less alike is one of something else
_NAME = re.compile(r"\bABERS(?:_[A-Z]+)+\b")
_OTHERS = ("ABERS_BACKEND", "ABERS_PREDICT_TOKEN", "ABERS_LABEL_TOKEN")  # of no option's sentence
_LINK = "tcp://"  # Kubernetes makes ABERS_HTTP_PORT of a service abers-http


def unread_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a message on each variable that is nearly that of an option, or of a secret.

    >>> [*unread_variables({"ABERS_CALIBRATOR_WINDOW": "500", "ABERS_STATE_KEY": "..."})]
    ['environment: ABERS_CALIBRATOR_WINDOW: is not read; did you mean ABERS_CALIBRATOR__WINDOW?']
    """
    known = _known()
    for name, value in sorted(environ.items()):
        if is_variable(name) or name in known.values() or value.startswith(_LINK):
            continue
        if near := get_close_matches(_folded(name), known, n=1, cutoff=_NEAR):
            yield f"environment: {name}: is not read; did you mean {known[near[0]]}?"


def unused_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a message on each variable of an option, where there is no configuration to read it.

    >>> [*unused_variables({"ABERS_CALIBRATOR__WINDOW": "500"})]
    ['environment: ABERS_CALIBRATOR__WINDOW: only a configuration reads it; here add --window']
    """
    of = {variable(key): one for key, one in options().items()}
    for name in sorted(filter(is_variable, environ)):
        flag = f"; here add {of[name].flag}" if name in of and of[name].flag else ""
        yield f"environment: {name}: only a configuration reads it{flag}"


@cache
def _known() -> Mapping[str, str]:
    """Return the variables of options and of secrets, which their options' sentences name."""
    sentences = " ".join(f"{one.sentence} {one.more}" for one in options().values())
    names = {*map(variable, options()), *_NAME.findall(sentences), *_OTHERS}
    return {_folded(name): name for name in sorted(names)}


def _folded(name: str) -> str:
    return name.upper().replace("__", "_")

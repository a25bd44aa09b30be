"""The command, in which errors are raised now and then that no record causes.

python -m tests.connectors.kafka.chaos.faulty run CONFIG

Each is raised after the work was done, so that the state in memory is spoilt.
"""

from __future__ import annotations

import sys
from functools import wraps
from random import Random
from typing import TYPE_CHECKING, Any

from abers.stream import Processor
from abers_connectors.cli.main import main
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.serializer import Serializer

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ENDS", "PASSES"]

PASSES, ENDS = "chaos: an error that passes", "chaos: an error that ends the process"
"""What the log says before each error."""

_PASSES, _ENDS = 0.02, 0.001  # probabilities of a call
_random = Random()  # noqa: S311 - not for secrets


def _raise_now_and_then() -> None:
    drawn = _random.random()
    if drawn < _ENDS:
        print(ENDS, file=sys.stderr, flush=True)  # noqa: T201 - the campaign counts them
        raise _random.choice([OSError, MemoryError])("transient")
    if drawn < _PASSES:
        print(PASSES, file=sys.stderr, flush=True)  # noqa: T201
        raise _random.choice([RuntimeError, KeyError, TypeError])("transient")


def _spoil(whose: type, name: str) -> None:
    """Let a method raise now and then."""
    real: Callable[..., Any] = getattr(whose, name)

    @wraps(real)
    def spoilt(*given: Any) -> Any:  # noqa: ANN401 - those of the method
        found = real(*given)
        _raise_now_and_then()
        return found

    setattr(whose, name, spoilt)


if __name__ == "__main__":
    _spoil(Deserializer, "decode")
    _spoil(Processor, "process_logged")
    _spoil(Serializer, "serialize")
    main()

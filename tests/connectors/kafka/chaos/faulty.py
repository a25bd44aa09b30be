"""The command, in which errors are raised now and then that no record causes.

python -m tests.connectors.kafka.chaos.faulty run CONFIG

Each is raised after the work was done, so that the state in memory is spoilt.
"""

from __future__ import annotations

import sys
from functools import wraps
from itertools import count
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

_PASSES, _ENDS = 0.5, 0.04  # probabilities of a call
_REST = 30  # calls after an error in which there is no other: no record is hit twice
_random = Random()  # noqa: S311 - not for secrets
_calls = count()
_quiet_until = [0]


def _raise_now_and_then() -> None:
    call, drawn = next(_calls), _random.random()
    if call < _quiet_until[0] or drawn > _PASSES:
        return
    _quiet_until[0] = call + _REST
    ends = drawn < _ENDS
    print(ENDS if ends else PASSES, file=sys.stderr, flush=True)  # noqa: T201 - they are counted
    kinds = [OSError, MemoryError] if ends else [RuntimeError, KeyError, TypeError]
    raise _random.choice(kinds)("transient")


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

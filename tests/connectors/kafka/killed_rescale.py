"""`abers state rescale`, killed at a step: `python killed_rescale.py STEP CONFIG PARTITIONS`.

A step is the moment before, or after, a topic is made, a file is written or removed, or offsets are
committed.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import wraps
from itertools import count
from typing import TYPE_CHECKING, Any

from kafka.admin import KafkaAdminClient

from abers_connectors.cli.main import main
from abers_connectors.runtime.snapshots import Storage

if TYPE_CHECKING:
    from collections.abc import Callable

_numbers = count(1)


def killed_at(wanted: int, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that kills the process before or after a call, if it is that step."""

    def step() -> None:
        if next(_numbers) == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    @wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the method
        step()
        result = method(*args, **kwargs)
        step()
        return result

    return called


if __name__ == "__main__":
    step, config, partitions = sys.argv[1:]
    for owner, names in (
        (KafkaAdminClient, ("create_topics", "alter_group_offsets")),
        (Storage, ("write", "remove")),
    ):
        for name in names:
            setattr(owner, name, killed_at(int(step), getattr(owner, name)))
    sys.argv[1:] = ["state", "rescale", config, "--partitions", partitions]
    main()

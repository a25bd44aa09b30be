"""The command of abers with a learner that locks the interpreter: `locked.py WORDS…`.

The learner goes by the name "river.locked.Locked", and locks it when it learns a label.
"""

from __future__ import annotations

import ctypes
import sys
from types import ModuleType
from typing import Any

from river.linear_model import LogisticRegression

from abers_connectors.__main__ import main

FOREVER = 100_000  # seconds


class Locked(LogisticRegression):
    """A learner that sleeps with the interpreter's lock."""

    def learn_one(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - of any kind
        """Sleep."""
        ctypes.PyDLL(None).sleep(FOREVER)


if __name__ == "__main__":
    module = sys.modules["river.locked"] = ModuleType("river.locked")
    module.Locked = Locked  # type: ignore[attr-defined]
    main()

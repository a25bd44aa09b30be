"""The options of a GP-Beta calibrator, checked and saved.

Governing rule: a set of options that exists makes sense.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from abers.calibration._forgetting import Forgetting
from abers.calibration._refitted import share
from abers.exceptions import ParameterError
from abers.regression._asked import count

__all__ = ["Options"]

_MOST_STEPS = 1_000_000  # more take hours
_SAVED = struct.Struct("<QQQdQ")


class Options(NamedTuple):
    """As of `GPBeta`."""

    window: int | None
    inducing: int
    steps: int
    refit: float
    seed: int

    @classmethod
    def checked(
        cls, window: int | None, inducing: int, steps: int, refit: float, seed: int
    ) -> Options:
        """Check options, or raise a ParameterError."""
        found = cls(
            Forgetting(window).window,
            count(inducing, "inducing", 1),
            count(steps, "steps", 1, _MOST_STEPS),
            share(refit),
            count(seed, "seed", 0),
        )
        if found.window is not None and found.window < found.inducing:
            msg = f"window={window} holds less than inducing={inducing} labels, so none is fitted"
            raise ParameterError(msg)
        return found

    def __str__(self) -> str:
        """Write them as the arguments of the calibrator."""
        given = [f"{name}={value}" for name, value in self._asdict().items() if value is not None]
        return ", ".join(given)

    def to_bytes(self) -> bytes:
        """Save them."""
        return _SAVED.pack(self.window or 0, *self[1:])

    @classmethod
    def from_bytes(cls, piece: bytes) -> Options:
        """Restore what was saved, checked."""
        window, *others = _SAVED.unpack(piece)
        return cls.checked(window or None, *others)

"""The errors of abers: each message says what is wrong, where, and how to fix it.

An `InputError` leaves the state as it was. ::

    AbersError
    ├── InputError (also a ValueError)
    │   ├── ScoreError        a score that is not a finite number
    │   ├── LabelError        a label that is not 0 or 1, or of an unknown class
    │   ├── WeightError       a weight that is not positive, or too large
    │   ├── TimeError         an event time that is missing, unwanted or not finite
    │   ├── ParameterError    another argument that is invalid
    │   ├── NotHeldError      removing an observation that is not there
    │   └── ForgettingError   removing from a calibrator that forgets by itself
    ├── StateError (also a ValueError)         saved state that cannot be used
    │   └── SettingsError                      with these settings, though it is intact
    ├── RecordError (also a ValueError)        a record of an input that cannot be used
    ├── ConfigError (also a ValueError)        a configuration with mistakes, all of them
    ├── DeadLettersError                       too many records cannot be used
    ├── BrokerError                            a broker, registry or place in the group is lost
    ├── DurabilityError                        a disk fails, or another process has the folder
    ├── WorkerError                            worker processes end again and again
    ├── BackendError (also an ImportError)     the native core is needed, and not there
    └── MissingExtraError (also an ImportError)  an optional library is not installed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AbersError",
    "BackendError",
    "BrokerError",
    "ConfigError",
    "DeadLettersError",
    "DurabilityError",
    "FallbackWarning",
    "ForgettingError",
    "InputError",
    "LabelError",
    "MissingExtraError",
    "MissingIdWarning",
    "NotHeldError",
    "ParameterError",
    "RecordError",
    "ScoreError",
    "SettingsError",
    "StateError",
    "TimeError",
    "WeightError",
    "WorkerError",
]


class AbersError(Exception):
    """Base class of all errors of abers."""


class InputError(AbersError, ValueError):
    """An argument cannot be used; nothing was changed."""


class ScoreError(InputError):
    """A score is not a finite number."""


class LabelError(InputError):
    """A label is neither 0 nor 1, or of no class that the calibrator knows."""


class WeightError(InputError):
    """A weight is not positive, too small to count, or makes the total too large."""


class TimeError(InputError):
    """An event time is missing, not wanted, or not a finite number."""


class ParameterError(InputError):
    """An argument other than a score, label, weight or time is invalid."""


class NotHeldError(InputError):
    """The observation to be removed is not there."""


class ForgettingError(InputError):
    """A calibrator that forgets by itself cannot remove an observation."""


class StateError(AbersError, ValueError):
    """Saved state is damaged, of an unknown version, or of another kind."""


class SettingsError(StateError):
    """Saved state is intact, but does not fit the settings."""


class RecordError(AbersError, ValueError):
    """A record of an input stream cannot be used."""


class ConfigError(AbersError, ValueError):
    """A configuration has mistakes; `problems` lists all of them, one sentence each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(problems)  # as they are, so that a pickle can make it again
        self.problems = tuple(problems)

    def __str__(self) -> str:
        """Return all mistakes, one a line."""
        return "\n".join(self.problems)


class DeadLettersError(AbersError):
    """More records are dead letters than the configuration allows."""


class BrokerError(AbersError):
    """A broker or a schema registry does not answer, or another process took over; try again."""


class DurabilityError(AbersError):
    """A disk does not take what is written, or another process writes to a folder; try again."""


class WorkerError(AbersError):
    """The processes of a shard end again and again, such as for lack of memory."""


class BackendError(AbersError, ImportError):
    """The native core is missing and needed, or ``ABERS_BACKEND`` names no backend."""


class MissingExtraError(AbersError, ImportError):
    """An optional library is not installed."""


class FallbackWarning(RuntimeWarning):
    """The native core is missing: the slow reference runs, without streams and protection."""


class MissingIdWarning(UserWarning):
    """Labels come late and without ids, so a calibrator learns scores that were not predicted."""

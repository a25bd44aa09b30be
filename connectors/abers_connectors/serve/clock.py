"""The clock of the server, for rows without a time."""

from __future__ import annotations

from typing import Any

__all__ = ["ServeClock"]

_KEY = "clock"


class ServeClock:
    """Times that never go back, in milliseconds.

    The clock of a machine may be set back. Rows would then be behind those before them, and rows
    with times of their own too far ahead. So this clock stands still meanwhile, also behind a
    restart.

    Parameters
    ----------
    position
        The last `position`, which is stored with the events.

    Examples
    --------
    >>> clock = ServeClock(None)
    >>> clock.at(1_000), clock.at(400), ServeClock(clock.position).at(999), clock.at(1_001)
    (1000, 1000, 1000, 1001)
    """

    def __init__(self, position: Any) -> None:  # noqa: ANN401 - as it was stored
        found = position.get(_KEY) if isinstance(position, dict) else None
        self._last = found if type(found) is int else 0

    def at(self, time: int) -> int:
        """Return the time where the clock of the machine has one."""
        self._last = max(self._last, time)
        return self._last

    @property
    def position(self) -> dict[str, int]:
        """What the next clock goes on from."""
        return {_KEY: self._last}

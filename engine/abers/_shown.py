"""Values in messages.

Governing rule: a message can be made of any value whatever, and stays short.
"""

from __future__ import annotations

from reprlib import Repr

__all__ = ["shown"]

_LONGEST = 60
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _LONGEST


def shown(value: object) -> str:
    """Show a value as `repr` does, shortened; by its type where that fails.

    Examples
    --------
    >>> shown("high"), len(shown("x" * 1_000_000))
    ("'high'", 60)
    """
    try:
        return _SHORT.repr(value)
    except Exception:  # noqa: BLE001 - whatever a foreign __repr__ raises
        return f"<{type(value).__name__}>"

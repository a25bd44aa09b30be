"""Decimals as schemas have them: the bytes of a whole number, and a scale."""

from __future__ import annotations

__all__ = ["decimal_number"]

_MAX_BYTES = 64
_MAX_SCALE = 400  # so that no power of ten takes long


def decimal_number(data: bytes, scale: int) -> float:
    r"""Return a decimal as a number; a ValueError is raised if it is too large.

    >>> decimal_number(b"\xfb\x2e", 2)
    -12.34
    """
    if len(data) > _MAX_BYTES or abs(scale) > _MAX_SCALE:
        msg = f"a decimal has {len(data)} bytes and the scale {scale}"
        raise ValueError(msg)
    number = int.from_bytes(data, signed=True)
    return number / 10**scale if scale > 0 else float(number * 10**-scale)

"""Shorthands for the arrays that cross into the core."""

from __future__ import annotations

from abers._arrays import Bytes, Floats, Integers

__all__ = ["Bytes", "Floats", "Integers"]

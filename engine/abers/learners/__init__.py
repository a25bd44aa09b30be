"""What scores features where a model does not bring its scores."""

from __future__ import annotations

__all__: list[str] = []

"""Findings as documents: one structure, and its renderings as text, page, notebook and record."""

__all__: list[str] = []

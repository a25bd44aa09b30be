"""The meaning of the section of a server: what requests bring, and where its state is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers_connectors.config.phrases import Line, Meaning

if TYPE_CHECKING:
    from abers_connectors.config.model import Config
    from abers_connectors.config.sections import ServeSection

__all__ = ["NOT_SERVED", "request_lines"]

NOT_SERVED = ("input.", "output.", "state.", "telemetry.")
"""Beginnings of keys that no server reads, but those that a phrase names."""


def request_lines(config: Config, serve: ServeSection, label: Meaning) -> dict[str, list[Line]]:
    """Return the lines on the rows of requests, and on the state."""
    value = "x" if config.learns else "score"
    rows = Meaning(f"predictions: id, {value}, model, segment, time", ("input.timezone",))
    labels = Meaning(
        f"labels: id, {label.text.removeprefix('label ')}, model, time", ("input.pos_label",)
    )
    state = Meaning(f"state to {serve.data}", ("serve.data", "state.key_file"))
    return {
        "Reads": [Line((Meaning("rows of requests"),)), Line((rows,)), Line((labels,))],
        "Writes": [Line((state,))],
    }

"""The record of a dead letter, the same in files, topics and tables of Arrow."""

from __future__ import annotations

import msgspec

__all__ = ["TIMED_OUT", "DeadLetterRecord"]

TIMED_OUT = "unmatched label (timed out)"
"""Location of a label without its observation: its own record is no longer known."""


class DeadLetterRecord(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="v", tag=1
):
    """A dead letter: a rejected record, or an output that is too large."""

    reason: str  # a short name
    detail: str  # a sentence that says how to fix it
    where: str  # location: "scores.jsonl line 17", "scores[3]@17"
    topic: str | None = None  # of the record, if it is in a topic
    partition: int | None = None
    offset: int | None = None
    raw: str | None = None  # the record, if it is text
    base64: str | None = None  # the record otherwise
    size: int | None = None  # bytes of the record, if it is cut

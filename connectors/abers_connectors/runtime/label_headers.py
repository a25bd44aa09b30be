"""Headers by which the router passes on what it found out about a label that carries only its id.

It is the last header of a label but its origin: the model of its observation, or why the router
found no model. A label with a refusal is a dead letter of the task that reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.stream.cells import BadRecordError
from abers.stream.option import Option, Ref

if TYPE_CHECKING:
    from abers_connectors.runtime.transport import Headers

__all__ = ["AMBIGUOUS_ID", "MODEL", "REFUSED", "UNKNOWN_ID", "model_of", "refusal_of"]

MODEL = "abers.model"
"""The header with the model of a label, in UTF-8."""
REFUSED = "abers.refused"
"""The header with the reason why a label has no model."""

_TIMEOUT = Ref(Option("limits.label_timeout", name="label_timeout"))
_MODEL = Ref(Option("input.label_fields.model", name="label_fields.model"))

UNKNOWN_ID = BadRecordError(
    "unknown-id",
    "no observation with this id came within ",
    _TIMEOUT,
    "; write the label with the id and the key of its observation, or with its model",
)
AMBIGUOUS_ID = BadRecordError(
    "ambiguous-id",
    "observations with this id came in several models; write the model into the label and name "
    "its field as ",
    _MODEL,
    ", or give each observation an id of its own",
)
_REFUSALS = {one.reason.encode(): one for one in (UNKNOWN_ID, AMBIGUOUS_ID)}


def model_of(headers: Headers) -> str | None:
    """Return the model that the router found for a label.

    Parameters
    ----------
    headers
        Headers of the record, without its origin.

    Returns
    -------
    str or None
        The model; None if the last header is another.

    Examples
    --------
    >>> model_of([("trace", b"7"), ("abers.model", b"fraud")])
    'fraud'
    """
    value = _last(headers, MODEL)
    return None if value is None else value.decode("utf-8", "surrogatepass")


def refusal_of(headers: Headers) -> BadRecordError | None:
    """Return why the router found no model for a label.

    Parameters
    ----------
    headers
        Headers of the record, without its origin.

    Returns
    -------
    BadRecordError or None
        The reason with a sentence; None if the last header is another.

    Examples
    --------
    >>> refusal_of([("abers.refused", b"ambiguous-id")]).reason
    'ambiguous-id'
    """
    return _REFUSALS.get(_last(headers, REFUSED) or b"")


def _last(headers: Headers, wanted: str) -> bytes | None:
    """Return the value of the last header if it has this name."""
    name, value = headers[-1] if headers else ("", None)
    return value if name == wanted else None

"""Clients of the service by name, and decorators of tests that run on each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from abers_connectors.runtime.transport import TRANSPORTS

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "CLIENTS",
    "CONSUMER",
    "DEFAULT",
    "on_each_classic_client",
    "on_each_classic_client_at_length",
    "on_each_client",
    "on_each_client_at_length",
]

DEFAULT, CONSUMER = "kafka-python", "librdkafka, consumer"
CLIENTS = {
    **{name: {"client": name} for name in TRANSPORTS},
    CONSUMER: {"client": "librdkafka", "group_protocol": "consumer"},
}
"""Keys of the section [kafka] by the name of a client, and of a group protocol but the classic."""


def _each(*quick: str, of: Iterable[str] = CLIENTS) -> pytest.MarkDecorator:
    """Return a decorator that runs a test on each client, on all but some with the mark `long`."""
    long = (pytest.param(one, marks=pytest.mark.long) for one in of if one not in quick)
    return pytest.mark.parametrize("client", [*quick, *long])


on_each_client, on_each_client_at_length = _each(*TRANSPORTS), _each(DEFAULT)
on_each_classic_client = _each(*TRANSPORTS, of=TRANSPORTS)
on_each_classic_client_at_length = _each(DEFAULT, of=TRANSPORTS)

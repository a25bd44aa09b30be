"""Decorators of tests that run on each client of the service."""

from __future__ import annotations

import pytest

from abers_connectors.runtime.transport import TRANSPORTS

__all__ = ["DEFAULT", "on_each_client", "on_each_client_at_length"]

DEFAULT = "kafka-python"

on_each_client = pytest.mark.parametrize("client", TRANSPORTS)
on_each_client_at_length = pytest.mark.parametrize(
    "client",
    [one if one == DEFAULT else pytest.param(one, marks=pytest.mark.long) for one in TRANSPORTS],
)

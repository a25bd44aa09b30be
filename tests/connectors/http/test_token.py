"""The token of the live page, `abers_connectors.http.credentials`."""

from __future__ import annotations

import string

import pytest

from abers.exceptions import ConfigError
from abers_connectors.http.credentials import TOKEN, token_of

ALLOWED = string.ascii_letters + string.digits + "-._~+/"


@pytest.mark.parametrize("token", ["a", ALLOWED, "YWJlcnM=", "YQ==", "a" * 1_024])
def test_what_can_be_sent(token: str) -> None:
    """What a header and an address can both hold is a token."""
    assert token_of({TOKEN: token}) == token


def test_none() -> None:
    """Without the variable there is no token."""
    assert token_of({}) is None


OTHERS = sorted({*string.printable, "ä", "\x80", "\udcff", "€"} - {*ALLOWED, "="})


@pytest.mark.parametrize("one", OTHERS)
def test_what_cannot_be_sent(one: str) -> None:
    """Any other character is refused, wherever it is, with a sentence that does not show it."""
    for token in (one, f"{one}secret", f"sec{one}ret", f"secret{one}"):
        with pytest.raises(ConfigError, match=r"^ABERS_HTTP_TOKEN: cannot be sent") as error:
            token_of({TOKEN: token})
        assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("token", "why"),
    [("", "is empty"), ("a=b", "cannot"), ("=", "cannot"), ("a" * 1_025, "cannot")],
)
def test_shapes_that_are_refused(token: str, why: str) -> None:
    """An empty one does not open the page silently; nor is one taken that is too long."""
    with pytest.raises(ConfigError, match=f"^ABERS_HTTP_TOKEN: {why}"):
        token_of({TOKEN: token})

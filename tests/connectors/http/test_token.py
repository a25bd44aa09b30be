"""The token of the live page, `abers_connectors.http.token`."""

from __future__ import annotations

import string

import pytest

from abers.exceptions import ConfigError
from abers_connectors.http.token import TOKEN, token_of, token_problem

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
        problem = token_problem({TOKEN: token})
        assert problem is not None
        assert problem.startswith("ABERS_HTTP_TOKEN: cannot be sent")
        assert "secret" not in problem
        with pytest.raises(ConfigError):
            token_of({TOKEN: token})


@pytest.mark.parametrize(
    ("token", "why"),
    [("", "is empty"), ("a=b", "cannot"), ("=", "cannot"), ("a" * 1_025, "cannot")],
)
def test_shapes_that_are_refused(token: str, why: str) -> None:
    """An empty one does not open the page silently; nor is one taken that is too long."""
    problem = token_problem({TOKEN: token})
    assert problem is not None
    assert problem.startswith(f"ABERS_HTTP_TOKEN: {why}")

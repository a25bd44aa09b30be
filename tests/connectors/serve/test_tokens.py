"""Tokens of a server, `abers_connectors.http.credentials`."""

from __future__ import annotations

import pytest

from abers import ConfigError
from abers_connectors.config.sections import HttpSection
from abers_connectors.http.credentials import ServeTokens

NAMES = ("ABERS_PREDICT_TOKEN", "ABERS_LABEL_TOKEN", "ABERS_HTTP_TOKEN")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("token", "says"),
    [("", "is empty; give it a value, or unset it"), ("schlüssel", "cannot be sent in a header")],
)
def test_a_token_that_no_request_can_bring(name: str, token: str, says: str) -> None:
    """A token that is empty, or cannot be sent, is refused before anything is served."""
    with pytest.raises(ConfigError) as error:
        ServeTokens(HttpSection(), {name: token})
    (line,) = error.value.problems
    assert line.startswith(f"{name}: {says}")
    assert "schl" not in line


def test_a_request_without_its_token() -> None:
    """Only requests of a kind that has a token need one: that one."""
    tokens = ServeTokens(HttpSection(), {"ABERS_LABEL_TOKEN": "abc"})
    assert tokens.variable("predict") is None
    assert tokens.variable("label") == "ABERS_LABEL_TOKEN"
    for given, right in ((b"Bearer abc", True), (b"bearer abc", True), (b"Bearer ab", False)):
        assert tokens.allows("label", [(b"authorization", given)]) is right
        assert tokens.allows("predict", [(b"authorization", given)])
    assert not tokens.allows("label", [])

"""Tokens that others renew, `abers_connectors.tokens`."""

from __future__ import annotations

import time

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.secret import Secret
from abers_connectors.tokens import stored_token

KEY = OctKey.generate_key(256)


def web_token(**claims: object) -> Secret:
    """Return a JSON web token."""
    return Secret(jwt.encode({"alg": "HS256"}, dict(claims), KEY), "the file x")


def test_a_web_token_says_when_it_expires() -> None:
    """The claim "exp" counts, with fractions too."""
    expires = time.time() + 100.5
    token = stored_token(web_token(sub="ä" * 3, exp=expires))
    assert token.expires == expires


@pytest.mark.parametrize("text", ["opaque", "a.b.c", "a.bm8.c", "a.W10.c", "a..c"])
def test_other_tokens_are_read_again_after_some_minutes(text: str) -> None:
    """A token that does not say when it expires is used for five minutes."""
    assert stored_token(Secret(text, "x")).expires == pytest.approx(time.time() + 300, abs=5)
    assert stored_token(web_token(sub="a")).expires == pytest.approx(time.time() + 300, abs=5)


def test_an_expired_token_is_not_sent() -> None:
    """The message says where the token is; its renewal may be late, so it is temporary."""
    token = web_token(exp=time.time() - 4000)
    with pytest.raises(BrokerError, match=r"the token in the file x expired 4,00\d s ago") as error:
        stored_token(token)
    assert token.reveal() not in str(error.value)


@pytest.mark.parametrize("text", ["", "two words", "a\x01auth=b", "Bearer abc", "ä"])
def test_what_cannot_be_sent(text: str) -> None:
    """A token with other characters would change the message to the brokers."""
    with pytest.raises(ConfigError, match="the file x has no token: use A-Z") as error:
        stored_token(Secret(text, "the file x"))
    assert not text or text not in str(error.value)

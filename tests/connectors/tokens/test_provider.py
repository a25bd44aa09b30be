"""The renewal of tokens, `abers_connectors.tokens`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.secret import Secret
from abers_connectors.tokens import Token, TokenProvider

if TYPE_CHECKING:
    from abers.exceptions import AbersError

LIFETIME = 100.0


class Source:
    """Numbered tokens of 100 s, a clock, and an error that is raised instead of a token."""

    def __init__(self) -> None:
        self.now, self.fetched = 1000.0, 0
        self.error: Exception | None = None

    def clock(self) -> float:
        """Return the time."""
        return self.now

    def __call__(self) -> Token:
        """Fetch a token."""
        self.fetched += 1
        if self.error is not None:
            raise self.error
        return Token(Secret(str(self.fetched), "the test"), self.now + LIFETIME)


def at(provider: TokenProvider, source: Source, seconds: float) -> str:
    """Return the token some seconds after the start."""
    source.now = 1000.0 + seconds
    return provider.token().value.reveal()


def test_a_token_is_renewed_after_80_percent_of_its_lifetime() -> None:
    """Before that it is the same."""
    source = Source()
    provider = TokenProvider(source, source.clock)
    found = [at(provider, source, seconds) for seconds in (0, 1, 79.9, 80, 159.9, 160)]
    assert found == ["1", "1", "1", "2", "2", "3"]


@pytest.mark.parametrize("error", [BrokerError("away"), ConfigError(["refused"])])
def test_the_old_token_serves_while_it_is_valid(
    error: AbersError, caplog: pytest.LogCaptureFixture
) -> None:
    """The next attempts come after 80 % of the time that is left, and then every second."""
    source = Source()
    provider = TokenProvider(source, source.clock)
    assert at(provider, source, 0) == "1"
    source.error = error
    for seconds, fetched in ((80, 2), (95.9, 2), (96, 3), (99.1, 3), (99.3, 4), (99.999, 4)):
        assert at(provider, source, seconds) == "1"
        assert source.fetched == fetched
    assert "the token before is valid for 20 s more" in caplog.text
    for seconds, fetched in ((100, 4), (100.5, 5), (101, 5)):
        with pytest.raises(type(error)):
            at(provider, source, seconds)
        assert source.fetched == fetched
    source.error = None
    assert at(provider, source, 101.6) == "6"
    caplog.clear()
    assert at(provider, source, 102) == "6"
    assert not caplog.records


def test_a_library_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    """An error of any kind leaves the old token in use, and is named without its message."""
    source = Source()
    provider = TokenProvider(source, source.clock)
    assert at(provider, source, 0) == "1"
    source.error = RuntimeError("with a secret")
    assert at(provider, source, 80) == "1"
    with pytest.raises(BrokerError, match="no token can be had: RuntimeError"):
        at(provider, source, 100)
    assert "RuntimeError; the token before is valid for 20 s more" in caplog.text
    assert "secret" not in caplog.text


def test_the_first_error_is_raised() -> None:
    """Without a token there is nothing to go on with."""
    source = Source()
    source.error = BrokerError("away")
    with pytest.raises(BrokerError, match="away"):
        TokenProvider(source, source.clock).token()


def test_threads_share_a_token() -> None:
    """Many threads at once fetch one token."""
    source = Source()
    provider = TokenProvider(source, source.clock)
    with ThreadPoolExecutor(8) as pool:
        found = {one.value.reveal() for one in pool.map(lambda _: provider.token(), range(100))}
    assert found == {"1"}


def test_a_token_is_never_shown() -> None:
    """The representation of a token hides its value."""
    assert "abc" not in repr(Token(Secret("abc", "the test"), 1.0))


def test_a_token_that_has_expired_replaces_none(caplog: pytest.LogCaptureFixture) -> None:
    """A new token that has expired when it arrives leaves the old one in use."""
    tokens = iter([Token(Secret("valid"), 1100.0), Token(Secret("late"), 1080.0)])
    source = Source()
    provider = TokenProvider(lambda: next(tokens), source.clock)
    assert at(provider, source, 0) == at(provider, source, 80) == "valid"
    assert "check the clocks" in caplog.text


def test_a_token_that_comes_too_late() -> None:
    """A token that has expired when it arrives is an error, as by a wrong clock."""
    provider = TokenProvider(lambda: Token(Secret("abc"), 1000.0), lambda: 1000.0)
    with pytest.raises(BrokerError, match="check the clocks"):
        provider.token()

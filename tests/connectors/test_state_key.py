"""The key of states: which texts are keys, and that no message shows one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connectors.keys import KEY

from abers.exceptions import ConfigError
from abers_connectors.state_key import new_key, read_key, state_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.conftest import Ran


@pytest.mark.parametrize("form", [str, str.upper, lambda text: f" {text}\n"])
def test_a_key_is_hexadecimal(form: Callable[[str], str]) -> None:
    """Digits of either case, with the white space that a file has around them."""
    assert read_key(form(KEY)) == bytes.fromhex(KEY)


def test_the_key_is_that_of_the_environment() -> None:
    """No variable, or an empty one, is no key; white space is one, and refused."""
    assert state_key({"ABERS_STATE_KEY": KEY}) == bytes.fromhex(KEY)
    assert state_key({}) is None
    assert state_key({"ABERS_STATE_KEY": ""}) is None
    with pytest.raises(ConfigError, match="ABERS_STATE_KEY: the key is not 32 to 128"):
        state_key({"ABERS_STATE_KEY": " "})


@pytest.mark.parametrize(
    "given",
    [
        "hunter2 is what we always use as a key",
        KEY[:-1],
        KEY[:-2],
        KEY * 5,
        KEY + "0x",
        "t8DpYdzZ0v1pZ1oBqk0iHn0Hk6w2sWbC3f8m8m6n0uE=",
        "\ud800" * 32,
    ],
)
def test_what_is_no_key(given: str) -> None:
    """Passwords, base64, and keys that are too short or too long are refused and not shown."""
    with pytest.raises(ConfigError, match="is not 32 to 128 hexadecimal digits") as refusal:
        read_key(given)
    assert given not in str(refusal.value)
    assert "`abers state new-key`" in str(refusal.value)


@pytest.mark.parametrize(
    "key",
    [
        bytes(32),
        bytes(range(32)),
        bytes(range(0, 96, 3)),
        bytes.fromhex("deadbeef" * 8),
        bytes.fromhex("0123456789abcdef" * 4),
        b"correct horse battery staple",
    ],
)
def test_what_can_be_guessed_is_no_key(key: bytes) -> None:
    """Repeated bytes, ascending ones, and texts are refused, and not shown."""
    with pytest.raises(ConfigError, match="too regular to be random") as refusal:
        read_key(key.hex())
    assert key.hex() not in str(refusal.value)


def test_new_keys_are_keys() -> None:
    """Each is one, and no two are equal."""
    made = [new_key() for _ in range(1_000)]
    assert len({read_key(one) for one in made}) == 1_000


def test_a_key_is_made_by_a_command(invoke: Callable[..., Ran]) -> None:
    """It is all that stands on standard output, and each is another."""
    first, second = invoke("state", "new-key"), invoke("state", "new-key")
    assert (first.code, first.err) == (0, "")
    assert len(read_key(first.out)) == 32
    assert first.out != second.out

"""The key of saved states: which texts are keys, and that no message shows one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connectors.keys import KEY

from abers.exceptions import ConfigError
from abers_connectors.secret import new_key, read_key, state_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.connectors.conftest import Ran


@pytest.mark.parametrize("form", [str, str.upper, lambda text: f" {text}\n"])
def test_a_key_is_hexadecimal(form: Callable[[str], str]) -> None:
    """A key has digits of either case; white space around it is ignored."""
    assert read_key(form(KEY)) == bytes.fromhex(KEY)


def test_the_key_comes_from_the_environment() -> None:
    """Without a variable, or with an empty one, there is no key; white space is refused."""
    assert state_key({"ABERS_STATE_KEY": KEY}) == bytes.fromhex(KEY)
    assert state_key({}) is None
    assert state_key({"ABERS_STATE_KEY": ""}) is None
    with pytest.raises(ConfigError, match="ABERS_STATE_KEY: the key must have 32 to 128"):
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
def test_unusable_keys(given: str) -> None:
    """A password, base64, or a key of a wrong length is refused and not shown."""
    with pytest.raises(ConfigError, match="must have 32 to 128 hexadecimal digits") as refusal:
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
def test_guessable_keys(key: bytes) -> None:
    """Repeated bytes, ascending bytes and text are refused and not shown."""
    with pytest.raises(ConfigError, match="too regular to be random") as refusal:
        read_key(key.hex())
    assert key.hex() not in str(refusal.value)


def test_new_keys_are_keys() -> None:
    """New keys are valid and differ from each other."""
    made = [new_key() for _ in range(1_000)]
    assert len({read_key(one) for one in made}) == 1_000


def test_a_command_creates_a_key(invoke: Callable[..., Ran]) -> None:
    """`abers state new-key` prints a new key and nothing else."""
    first, second = invoke("state", "new-key"), invoke("state", "new-key")
    assert (first.code, first.err) == (0, "")
    assert len(read_key(first.out)) == 32
    assert first.out != second.out

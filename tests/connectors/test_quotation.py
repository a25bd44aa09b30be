"""Texts of peers that repeat a secret, `abers_connectors.errors`."""

from __future__ import annotations

import base64
import html
import json
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers_connectors.errors import quoted
from abers_connectors.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "open sesame/3+€"  # noqa: S105 - of the test
HIDDEN = "its answer repeats a secret, and is not shown"


def in_base64(text: str) -> str:
    """Encode in Base64."""
    return base64.b64encode(text.encode()).decode()


def all_percent(text: str) -> str:
    """Encode each byte for a URL, in lower case."""
    return "".join(f"%{byte:02x}" for byte in text.encode())


ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "percent": lambda text: quote(text, safe=""),
    "percent but slashes": quote,
    "each byte": all_percent,
    "form": quote_plus,
    "json": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "each character of json": lambda text: "".join(f"\\u{ord(one):04X}" for one in text),
    "html": lambda text: html.escape(text).replace("/", "&#x2F;"),
    "base64": in_base64,
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("outer", ENCODINGS)
@pytest.mark.parametrize("inner", ENCODINGS)
def test_a_secret_is_not_shown(inner: str, outer: str) -> None:
    """It is found in two encodings, one inside the other, wherever it stands."""
    for before in ("", "a", "abers:", "client "):
        said = f"wrong: {ENCODINGS[outer](f'{before}{ENCODINGS[inner](SECRET)} x')}."
        assert quoted(said, 200, Secret(SECRET)) == HIDDEN


@given(st.text("abcXYZ019 /+-_.~%&=€é", min_size=6), st.binary(max_size=4), st.integers(0, 3))
def test_base64_of_any_alignment(secret: str, before: bytes, skipped: int) -> None:
    """A secret inside of what is encoded is found, also if the text begins in its middle."""
    found = base64.b64encode(before + b"xyz" + secret.encode()).decode()[skipped:]
    assert quoted(found, 200, secret) == HIDDEN


def test_what_is_shown_ends_before_the_secret() -> None:
    """No part of a secret is shown where the text is cut."""
    said = f"{'x' * 190}{SECRET}"
    assert quoted(said, 200, SECRET) == HIDDEN
    assert quoted(f"{'x' * 2000}{all_percent(SECRET)}", 200, SECRET) == "x" * 200


def test_other_texts_are_shown() -> None:
    """A text without the secret is shown as it is, whatever it seems to encode."""
    said = "AADSTS7000215: Invalid client secret 100% \\d c2VzYW1l &amp; -- (trace 0a1b2c3d)"
    assert quoted(said, 200, SECRET, "") == said
    assert quoted(said, 10) == said[:10]


def test_a_text_that_takes_too_long() -> None:
    """A text whose encodings are too many to search is not shown."""
    said = "".join(f"%25{number:x}&amp;" for number in range(1 << 17))
    assert quoted(said, 200, "a" * 50_000) == HIDDEN

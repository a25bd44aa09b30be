"""Tokens of Amazon MSK by their form, `abers_connectors.tokens`: nothing is sent."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from abers.exceptions import BrokerError
from abers_connectors.tokens import msk_token

if TYPE_CHECKING:
    from pathlib import Path

ID, SECRET, SESSION = "AKIDEXAMPLE", "wJalrXUtnFEMI", "session-token"


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Set credentials in the environment, and no other source of some."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_a_token_is_a_signed_address(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the action, the region and when it expires, and does not have the secret."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    token = msk_token("eu-west-1")
    encoded = token.value.reveal()
    assert "=" not in encoded
    url = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    address = urlsplit(url)
    assert (address.scheme, address.hostname) == ("https", "kafka.eu-west-1.amazonaws.com")
    query = {name: value for name, (value,) in parse_qs(address.query).items()}
    assert query["Action"] == "kafka-cluster:Connect"
    assert query["X-Amz-Algorithm"] == "AWS4-HMAC-SHA256"
    day = query["X-Amz-Date"][:8]
    assert query["X-Amz-Credential"] == f"{ID}/{day}/eu-west-1/kafka-cluster/aws4_request"
    assert query["X-Amz-Security-Token"] == SESSION
    assert query["X-Amz-Expires"] == "900"
    assert len(query["X-Amz-Signature"]) == 64
    assert token.expires == pytest.approx(time.time() + 900, abs=5)
    assert SECRET not in url


def test_without_credentials_there_is_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The role of a machine may come a moment later, so this is temporary."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    said = "no AWS credentials to sign a token with: the chain has none"
    with pytest.raises(BrokerError, match=said):
        msk_token("eu-west-1")


def test_incomplete_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is named, and no part of the credentials."""
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(BrokerError, match="PartialCredentialsError") as error:
        msk_token("eu-west-1")
    assert ID not in str(error.value)

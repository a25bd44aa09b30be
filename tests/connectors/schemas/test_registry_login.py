"""Logins to a registry by password and by token, over TLS, without a secret in any message."""

from __future__ import annotations

import ssl
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from tests.connectors.issuer import issuing
from tests.connectors.schemas.registries import configured, misbehaving

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.preflight import run_problems
from abers_connectors.schemas.registry import (
    REGISTRY_PASSWORD,
    REGISTRY_TOKEN,
    RegisteredSchema,
    SchemaRegistry,
)

if TYPE_CHECKING:
    from pathlib import Path

FOUND = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"schema": "x"}'
REFUSED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
WORD = "secret-word"


def registry(url: str, environ: dict[str, str] | None = None, **keys: Any) -> SchemaRegistry:  # noqa: ANN401 - any key of the section
    """Return the registry of a configuration with some keys of [schema_registry]."""
    section = configured(
        url, **{f"schema_registry__{key}": value for key, value in keys.items()}
    ).schema_registry
    assert section is not None
    return SchemaRegistry(section, environ or {})


def test_a_user_and_a_password(tmp_path: Path) -> None:
    """Both are sent, the password from the environment or a file, and no error shows it."""
    login = b"Authorization: Basic " + b64encode(f"u:{WORD}".encode()) + b"\r\n"
    with misbehaving(REFUSED) as (url, asked):
        with pytest.raises(ConfigError, match=r"answers 401; name a user .*PASSWORD") as found:
            registry(url, {REGISTRY_PASSWORD: WORD}, username="u").schema(7)
        assert login in asked[0]
    assert "secret" not in str(found.value)
    (tmp_path / "password").write_text(f"{WORD}\n")
    with misbehaving(FOUND) as (url, asked):
        registry(url, username="u", password_file=str(tmp_path / "password")).schema(7)
        assert login in asked[0]
    with misbehaving(FOUND) as (url, asked):
        assert registry(url).schema(7) == RegisteredSchema("x")
        assert b"Authorization" not in asked[0]


def test_a_token(tmp_path: Path) -> None:
    """It comes from the environment or a file, which is read anew for each request."""
    with misbehaving(REFUSED) as (url, asked):
        with pytest.raises(ConfigError, match=rf"or check the token in {REGISTRY_TOKEN}") as found:
            registry(url, {REGISTRY_TOKEN: WORD}).schema(7)
        assert f"Authorization: Bearer {WORD}\r\n".encode() in asked[0]
    assert "secret" not in str(found.value)
    file = tmp_path / "token"
    file.write_text("one\n")
    with misbehaving(FOUND) as (url, asked):
        client = registry(url, token_file=str(file))
        client.schema(7)
        file.write_text("two\n")
        client.schema(8)
        sent = [line for each in asked for line in each.split(b"\r\n") if b"Bearer" in line]
    assert sent == [b"Authorization: Bearer one", b"Authorization: Bearer two"]


def test_tokens_that_cannot_be_used(tmp_path: Path) -> None:
    """One that has expired is temporary, and one that is none or comes next to a user is not."""
    with issuing() as issuer:
        expired = issuer.token(-60)
    with pytest.raises(BrokerError, match=r"expired 6\d s ago; write a new token") as late:
        registry("http://r", {REGISTRY_TOKEN: expired})
    with pytest.raises(ConfigError, match="has no token") as other:
        registry("http://r", {REGISTRY_TOKEN: f"{WORD} 2"})
    both = {REGISTRY_TOKEN: WORD, REGISTRY_PASSWORD: WORD}
    with pytest.raises(ConfigError, match=f"variable {REGISTRY_TOKEN} has a token, too") as two:
        registry("http://r", both, username="u")
    shown = "".join(str(one.value) for one in (late, other, two))
    assert not [one for one in (WORD, expired) if one in shown]
    # Whoever renews the token may do so until the run.
    assert not [*run_problems(configured("http://r"), {REGISTRY_TOKEN: expired})]
    config = configured("http://r", schema_registry__token_file=str(tmp_path / "none"))
    (problem,) = run_problems(config, {})
    assert problem == (
        f"schema_registry.token_file: {tmp_path}/none cannot be read (No such file or directory)"
    )


def test_authorities_of_a_file(tmp_path: Path) -> None:
    """A certificate is accepted from an authority in the file, and from no other."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with misbehaving(FOUND, tls=tls) as (url, _):
        found = registry(url, cafile=str(tmp_path / "ca.pem")).schema(7)
        assert found == RegisteredSchema("x")
        for cafile in (None, str(tmp_path / "other.pem")):
            with pytest.raises(BrokerError, match="CERTIFICATE_VERIFY_FAILED"):
                registry(url, timeout="300ms", cafile=cafile).schema(7)


@pytest.mark.parametrize(
    ("content", "why"), [(None, "cannot be read"), ("no certificate", "cannot be used")]
)
def test_a_file_without_authorities(content: str | None, why: str, tmp_path: Path) -> None:
    """It is named before the registry is asked."""
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=f"^schema_registry.cafile: {file} {why}"):
        registry("https://r", cafile=str(file))

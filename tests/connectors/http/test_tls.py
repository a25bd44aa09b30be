"""TLS of the HTTP server: a certificate that clients verify, and what is wrong with its files."""

from __future__ import annotations

import http.client
import json
import ssl
import sys
from typing import TYPE_CHECKING

import pytest
import trustme
from cryptography.hazmat.primitives import serialization as keys
from tests.conftest import ROOT
from tests.connectors.conftest import in_a_line
from tests.connectors.serve.running import JSON, Running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran

sys.path.append(str(ROOT / "examples" / "serving"))
from serve_client import ServeClient


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    """Return an authority, with a certificate of this machine and its key in files."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued = made.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(tmp_path / "tls.key"))
    for one in issued.cert_chain_pems:
        one.write_to_path(str(tmp_path / "tls.crt"), append=True)
    (tmp_path / "tls.key").chmod(0o600)
    return made


def configured(folder: Path, **files: str) -> Path:
    """Write a configuration with files of TLS."""
    lines = [f"{key} = '{folder / file}'" for key, file in files.items()]
    config = folder / "abers.toml"
    config.write_text("\n".join(["[serve]", "[http]", *lines]))
    return config


def test_a_client_that_verifies(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests and pages come over TLS, to who knows the authority, and nothing comes without."""
    config = configured(tmp_path, certfile="tls.crt", keyfile="tls.key")
    token = {"ABERS_HTTP_TOKEN": "t" * 32}
    with Running(tmp_path / "state", str(config), environ=token) as running:
        assert running.address.scheme == "https"
        with pytest.raises((OSError, http.client.HTTPException)):
            running.ask("/livez")
        knows, other = ssl.create_default_context(), ssl.create_default_context()
        authority.configure_trust(knows)
        trustme.CA().configure_trust(other)
        refused = http.client.HTTPSConnection(running.address.netloc, context=other)
        with pytest.raises(ssl.SSLCertVerificationError):
            refused.request("GET", "/livez")
        connection = http.client.HTTPSConnection(running.address.netloc, context=knows)
        body = json.dumps({"id": "a", "score": 0.5})
        for path, given in (("/livez", None), ("/metrics", None), ("/v1/predict", body)):
            connection.request("GET" if given is None else "POST", path, given, JSON)
            found = connection.getresponse()
            found.read()
            assert found.status == 200
        connection.request("GET", f"/?token={'t' * 32}")
        assert "; Secure" in (connection.getresponse().getheader("set-cookie") or "")
        connection.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        client = ServeClient(running.address.geturl())
        assert client.label([{"id": "a", "label": 1}]) == [{"id": "a", "status": "learned"}]


@pytest.mark.usefixtures("authority")
def test_a_key_of_its_own_file_or_not(tmp_path: Path) -> None:
    """The certificate and the key may be in one file."""
    both = (tmp_path / "tls.key").read_bytes() + (tmp_path / "tls.crt").read_bytes()
    (tmp_path / "both.pem").write_bytes(both)
    with Running(tmp_path / "state", str(configured(tmp_path, certfile="both.pem"))) as running:
        assert running.address.scheme == "https"


@pytest.mark.usefixtures("authority")
@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"certfile": "none.crt", "keyfile": "tls.key"},
            "http.certfile: FOLDER/none.crt cannot be read (No such file or directory)",
        ),
        (
            {"certfile": "tls.crt", "keyfile": "other.key"},
            "http.keyfile: FOLDER/other.key cannot be used (KEY_VALUES_MISMATCH)",
        ),
        ({"certfile": "tls.crt"}, "http.certfile: FOLDER/tls.crt cannot be used"),
        (
            {"certfile": "tls.crt", "keyfile": "locked.key"},
            "http.keyfile: FOLDER/locked.key is encrypted; write it without a password",
        ),
        ({"keyfile": "tls.key"}, "http.keyfile: needs a certificate; set http.certfile"),
    ],
)
def test_files_that_cannot_be_used(
    tmp_path: Path, invoke: Callable[..., Ran], files: dict[str, str], said: str
) -> None:
    """`abers check` and the server refuse the files, and name key and file."""
    other = trustme.CA().issue_cert("127.0.0.1").private_key_pem.bytes()
    (tmp_path / "other.key").write_bytes(other)
    key = keys.load_pem_private_key((tmp_path / "tls.key").read_bytes(), None)
    lock = keys.BestAvailableEncryption(b"sesame")
    locked = key.private_bytes(keys.Encoding.PEM, keys.PrivateFormat.PKCS8, lock)
    (tmp_path / "locked.key").write_bytes(locked)
    config = configured(tmp_path, **files)
    wanted = said.replace("FOLDER", str(tmp_path))
    ran = invoke("check", str(config))
    assert (ran.code, wanted in in_a_line(ran.err)) == (78, True), ran.err
    with Running(tmp_path / "state", str(config)) as running:
        assert running.ended() == 78
        assert wanted in in_a_line("".join(running.said))


@pytest.mark.usefixtures("authority")
def test_a_key_that_everybody_can_read(tmp_path: Path, invoke: Callable[..., Ran]) -> None:
    """`abers check` warns of it."""
    (tmp_path / "tls.key").chmod(0o644)
    ran = invoke("check", str(configured(tmp_path, certfile="tls.crt", keyfile="tls.key")))
    assert ran.code == 0
    assert f"http.keyfile: every user of this machine can read {tmp_path}/tls.key" in ran.err

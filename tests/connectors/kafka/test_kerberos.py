"""Logins by Kerberos: a real broker, and a KDC of MIT Kerberos on this machine."""

from __future__ import annotations

import shutil
import socket
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.connectors.kafka.brokers import Broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.long]

REALM, SERVICE, CLIENT = "ABERS.TEST", "kafka/127.0.0.1", "abers"
LISTENER = "listener.name.client"
CLIENT_CONFIGURATION = """
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
"""
CONFIGURATION = """
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
 }}
"""
TOML = """
[kafka]
bootstrap_servers = "{broker}"
observations = "a"
predictions = "b"
[kafka.security]
protocol = "SASL_PLAINTEXT"
mechanism = "GSSAPI"
[http]
enabled = false
"""


class Realm(NamedTuple):
    """A broker that wants tickets, and the environment of its clients."""

    broker: Broker
    environ: Mapping[str, str]


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    """Start a KDC with two principals, and a broker that is one of them."""
    pytest.importorskip("gssapi")
    kdc = shutil.which("krb5kdc")
    if kdc is None or shutil.which("kadmin.local") is None:
        pytest.skip("on Debian, run: apt-get install krb5-kdc krb5-admin-server")
    folder = tmp_path_factory.mktemp("realm")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    places = {"KRB5_CONFIG": folder / "krb5.conf", "KRB5_KDC_PROFILE": folder / "kdc.conf"}
    for path, text in zip(places.values(), (CLIENT_CONFIGURATION, CONFIGURATION), strict=True):
        path.write_text(text.format(realm=REALM, port=port, folder=folder))
    with pytest.MonkeyPatch.context() as patch:
        for name, path in places.items():
            patch.setenv(name, str(path))
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={folder}/krb5.conf")
        run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of the database")
        for name, file in ((SERVICE, "broker"), (CLIENT, "client")):
            run("kadmin.local", "-q", f"addprinc -randkey {name}")
            run("kadmin.local", "-q", f"ktadd -k {folder}/{file}.keytab {name}")
        login = (
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
            f'keyTab="{folder}/broker.keytab" principal="{SERVICE}@{REALM}";'
        )
        words = [
            f"{LISTENER}.sasl.enabled.mechanisms=GSSAPI",
            f"{LISTENER}.gssapi.sasl.jaas.config={login}",
            "sasl.kerberos.service.name=kafka",
        ]
        with subprocess.Popen([kdc, "-n"]) as running:
            broker = Broker.started("--protocol", "SASL_PLAINTEXT", "--properties", *words)
            keytab = {"KRB5_CLIENT_KTNAME": f"{folder}/client.keytab"}
            cache = {"KRB5CCNAME": f"{folder}/cache"}
            yield Realm(broker, keytab | cache | {"KRB5_CONFIG": str(folder / "krb5.conf")})
            broker.stop()
            running.terminate()


def run(*words: str) -> None:
    """Run a command of Kerberos."""
    subprocess.run(words, check=True, capture_output=True)


LOGINS: list[tuple[dict[str, str], int, str]] = [
    ({}, 78, "kafka.observations: there is no topic a"),  # so it has logged in
    ({"KRB5_CLIENT_KTNAME": "none", "KRB5CCNAME": "none"}, 75, "No Kerberos credentials"),
    (
        {"ABERS_KAFKA__SECURITY__KERBEROS_SERVICE_NAME": "other"},
        75,
        f"Server other/127.0.0.1@{REALM} not found",
    ),
]


def test_a_ticket_is_a_login(
    realm: Realm, start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """The ticket of a keytab is accepted; without one, the reason of the library is shown."""
    (tmp_path / "abers.toml").write_text(TOML.format(broker=realm.broker.bootstrap))
    words = ("check", "abers.toml", "--connect")
    running = [start(*words, **{**realm.environ, **changes}) for changes, _, _ in LOGINS]
    for process, (_, code, said) in zip(running, LOGINS, strict=True):
        error = process.communicate()[1].decode()
        assert said in error
        assert process.returncode == code

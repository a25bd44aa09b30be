"""Logins by token: a real broker, and a real issuer on this machine."""

from __future__ import annotations

import logging
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.request import Request, urlopen

import pytest
from tests.connectors.issuer import AUDIENCE, CLIENT, CLIENT_SECRET, EXPIRED, Issuer, issuing
from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.brokers import PATIENCE, Broker, unique
from tests.connectors.kafka.clients import CLIENTS, on_each_classic_client, on_each_client
from tests.connectors.kafka.joining import settled
from tests.connectors.kafka.streams import observations
from tests.connectors.kafka.test_settings import certified
from tests.connectors.keys import KEY

from abers_connectors.config.sections import KafkaSection, SecuritySection
from abers_connectors.kafka.connection import CLIENT_SECRET as SECRET_NAME
from abers_connectors.kafka.connection import TOKEN, client_settings
from abers_connectors.process import Watchdog
from abers_connectors.runtime.transport import TRANSPORTS, open_transport

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

ENVIRON = {SECRET_NAME: CLIENT_SECRET}
LIFETIME = 20.0  # seconds of a token; librdkafka renews by whole seconds
# ms after which the broker wants a token again on each connection. kafka-python shows one with a
# tenth of them left: a second, so that a busy machine is in time. A session ends with its token,
# and half of a lifetime leaves none that is nearly over.
SESSION = 10_000
PLAIN = "SASL_PLAINTEXT"
LISTENER, SASL = "listener.name.client", "org.apache.kafka.sasl.oauthbearer"
OAUTH = "org.apache.kafka.common.security.oauthbearer"


class Guarded(NamedTuple):
    """A broker that requires a token, the issuer that it trusts, and keys of [kafka.security]."""

    broker: Broker
    issuer: Issuer
    transport: dict[str, Any]  # how the connection is made, beside the login

    def security(self) -> SecuritySection:
        """Return the section [kafka.security] of the client that the issuer knows."""
        return SecuritySection(
            **self.transport,
            mechanism="OAUTHBEARER",
            token_endpoint_url=self.issuer.token_endpoint_url,
            client_id=CLIENT,
            extensions={"tenant": "a1"},
        )

    def kafka(self, client: Any = "kafka-python") -> KafkaSection:  # noqa: ANN401 - one of the words
        """Return the section [kafka] of a new application."""
        app = unique("app")
        return KafkaSection(
            bootstrap_servers=(self.broker.bootstrap,),
            client=client,
            application_id=app,
            observations=f"{app}.in",
            predictions=f"{app}.out",
            security=self.security(),
        )

    def toml(self) -> str:
        """Return the keys of the connection as TOML has them."""
        return "\n".join(f'{key} = "{value}"' for key, value in self.transport.items())


@pytest.fixture(scope="module", params=["SASL_SSL", pytest.param(PLAIN, marks=pytest.mark.long)])
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    """Start a broker that requires a token, and a new one every few seconds."""
    folder, transport = tmp_path_factory.mktemp("certificates"), {"protocol": request.param}
    tls: dict[str, object] = {}
    if request.param != PLAIN:
        certified(folder)
        transport["cafile"] = str(folder / "ca.pem")
        tls = {
            f"{LISTENER}.ssl.keystore.type": "PEM",
            f"{LISTENER}.ssl.keystore.location": folder / "127.0.0.1.both",
        }
    with issuing() as issuer, pytest.MonkeyPatch.context() as patch:
        # Kafka fetches keys from no other address.
        patch.setenv("JAVA_TOOL_OPTIONS", f"-D{SASL}.allowed.urls={issuer.keys_url}")
        mechanism = f"{LISTENER}.oauthbearer"
        properties = {
            f"{LISTENER}.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{mechanism}.sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required;",
            f"{mechanism}.sasl.server.callback.handler.class": (
                f"{OAUTH}.OAuthBearerValidatorCallbackHandler"
            ),
            f"{mechanism}.connections.max.reauth.ms": SESSION,
            "sasl.oauthbearer.jwks.endpoint.url": issuer.keys_url,
            "sasl.oauthbearer.expected.issuer": issuer.url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.clock.skew.seconds": 0,
            **tls,
        }
        words = [f"{key}={value}" for key, value in properties.items()]
        started = Broker.started("--protocol", request.param, "--properties", *words)
        made = Guarded(started, issuer, transport)
        started.client = client_settings(made.kafka(), ENVIRON)
        started.settle()
        yield made
        started.stop()


@pytest.mark.kafka
def test_tokens_are_renewed_during_a_long_batch(
    guarded: Guarded,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """An open transaction, the membership and the reader outlive the token, on each client.

    The process calls none of them meanwhile. Neither secret nor token is logged.
    """
    monkeypatch.setattr(guarded.issuer, "lifetime", LIFETIME)
    monkeypatch.setenv(SECRET_NAME, CLIENT_SECRET)
    topics = {client: guarded.broker.create() for client in TRANSPORTS}
    caplog.set_level(logging.DEBUG)
    with ThreadPoolExecutor() as pool:
        for one in [pool.submit(long_batch, guarded, *item) for item in topics.items()]:
            one.result()
    said = caplog.text + "".join(capfd.readouterr())
    for secret in (CLIENT_SECRET, *guarded.issuer.issued):
        assert secret not in said


def long_batch(guarded: Guarded, client: str, topic: str) -> None:
    """Write, wait for longer than a token lives, and commit what was read and written."""
    with ExitStack() as stack:
        watchdog = stack.enter_context(closing(Watchdog(PATIENCE)))
        transport = open_transport(guarded.kafka(client), watchdog)
        reader = stack.enter_context(closing(transport.reader(topic)))
        group = transport.consumer([topic], topic, "a", session_timeout=60)
        stack.enter_context(closing(group))
        (owner,) = settled(group, owned=1)
        (here,) = owner.assigned
        producer = transport.producer(
            topic, topics=[topic], group=topic, timeout=60, compression="lz4"
        )
        stack.enter_context(closing(producer))
        issued = len(guarded.issuer.issued)
        producer.begin()
        producer.send(here, None, b"a")
        time.sleep(LIFETIME + 1)  # a batch that takes long; nothing to wait for happens
        assert len(guarded.issuer.issued) > issued
        group.poll(0.0, 10)
        assert group.membership().epoch == owner.epoch
        producer.commit({here: 7}, owner.group_metadata)
        assert reader.committed(here) == 7
        assert [one.value for some in reader.read(here, 0, 1) for one in some] == [b"a"]


TOML = """
[kafka]
client = "{client}"
bootstrap_servers = "{broker}"
observations = "a"
predictions = "b"
[kafka.security]
{transport}
mechanism = "OAUTHBEARER"
{login}
[http]
enabled = false
"""
ISSUER = 'token_endpoint_url = "{url}"\nclient_id = "abers"\n'
WRONG = "open-barley"
REFUSED: list[tuple[str, str, dict[str, str], int, str]] = [
    (
        "run",
        ISSUER,
        {SECRET_NAME: WRONG},
        78,
        (
            "kafka.security.client_id: the issuer 127.0.0.1 refuses a token to client 'abers' "
            "(401, invalid_client: unknown client or secret); its secret is in the environment "
            f"variable {SECRET_NAME}"
        ),
    ),
    (
        "run",
        'token_endpoint_url = "http://127.0.0.1:1/token"\nclient_id = "abers"\n',
        ENVIRON,
        75,
        "kafka.security.token_endpoint_url: no token from the issuer 127.0.0.1: ConnectionRefused",
    ),
    (
        "check",
        f'{ISSUER}scope = "{EXPIRED}"\n',
        ENVIRON,
        78,
        "kafka.security.mechanism: the brokers reject the token from the issuer 127.0.0.1 (",
    ),
    (
        "check",
        'token_file = "forged"\n',
        {},
        78,
        (
            "kafka.security.mechanism: the brokers reject the token from the file forged "
            "(kafka.security.token_file) ("
        ),
    ),
    # These log in; the topics do not exist.
    ("run", f'{ISSUER}client_secret_file = "secret"\n', {}, 78, "there is no topic a"),
    ("check", "", {TOKEN: "{good}"}, 78, "kafka.observations: there is no topic a"),
]


# Without TLS kafka-python may drop the brokers' answer, after which they disconnect.
@pytest.mark.parametrize("guarded", ["SASL_SSL"], indirect=True)
@on_each_classic_client
@pytest.mark.kafka
def test_the_command_says_why_a_token_is_not_accepted(
    client: str, guarded: Guarded, start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """A refused secret or token ends with 78, an issuer that is away with 75; none is shown."""
    issuer = guarded.issuer
    good, forged = issuer.token(), issuer.token(forged=True)
    (tmp_path / "forged").write_text(forged)
    (tmp_path / "secret").write_text(f"{CLIENT_SECRET}\n")
    words = {"run": ["run"], "check": ["check", "--connect"]}
    running = []
    for number, (command, login, environ, code, said) in enumerate(REFUSED):
        text = login.format(url=issuer.token_endpoint_url)
        path = tmp_path / f"{number}.toml"
        broker, transport = guarded.broker.bootstrap, guarded.toml()
        path.write_text(TOML.format(client=client, broker=broker, transport=transport, login=text))
        given = {name: value.format(good=good) for name, value in environ.items()}
        running.append((start(*words[command], path.name, **given), code, said))
    for process, code, said in running:
        shown = b"".join(process.communicate()).decode()
        assert said in shown
        assert process.returncode == code, shown
        secrets = (CLIENT_SECRET, WRONG, good, forged, *issuer.issued)
        assert not [one for one in secrets if one in shown]


PAGE_TOKEN, REGISTRY_TOKEN = "page-token-1", "registry-token-1"
PAGES = ("/", "/metrics", "/readyz", "/livez")


@on_each_client
@pytest.mark.kafka
def test_a_service_shows_no_secret(
    client: str,
    guarded: Guarded,
    schema_registry: str,
    start: Callable[..., subprocess.Popen[bytes]],
    tmp_path: Path,
) -> None:
    """No page, log, record or snapshot of a service has a secret, all of which come from files."""
    secrets = {
        "client": CLIENT_SECRET,
        "registry": REGISTRY_TOKEN,
        "page": PAGE_TOKEN,
        "state": KEY,
    }
    (tmp_path / "secrets").mkdir()
    for name, value in secrets.items():
        (tmp_path / "secrets" / name).write_text(f"{value}\n")
    served = Served(guarded.broker, tmp_path, start)
    given = CLIENTS[client] | {f"security.{key}": one for key, one in guarded.transport.items()}
    keys = "\n".join(f'kafka.{key} = "{value}"' for key, value in given.items())
    served.configure(
        f"""
        {keys}
        kafka.security.mechanism = "OAUTHBEARER"
        kafka.security.token_endpoint_url = "{guarded.issuer.token_endpoint_url}"
        kafka.security.client_id = "{CLIENT}"
        kafka.security.client_secret_file = "secrets/client"
        output.format = "json-schema"
        schema_registry.url = "{schema_registry}"
        schema_registry.token_file = "secrets/registry"
        http.token_file = "secrets/page"
        """,
        snapshot_every=1,
        key_file=f'"{tmp_path}/secrets/state"',
    )
    served.produce(observations(5, PARTITIONS), [])
    process = start("run", "abers.toml", ABERS_HTTP__ENABLED="true", ABERS_HTTP__PORT="0")
    assert process.stderr is not None
    first = process.stderr.readline().decode()
    found = re.search(r"http://[\d.:]+", first)
    assert found, first + process.stderr.read().decode()
    with served.log() as log:
        while not log.drained():
            assert process.poll() is None, process.stderr.read().decode()
            time.sleep(0.05)
    headers = {"Authorization": f"Bearer {PAGE_TOKEN}"}
    shown = [page(found[0] + path, headers) for path in PAGES]
    process.terminate()
    shown += [first.encode(), *process.communicate()]
    assert process.returncode == 0
    shown += [
        one.value for topic in served.topics.values() for one in guarded.broker.consume(topic)
    ]
    saved = [one.read_bytes() for one in (tmp_path / "state").rglob("*") if one.is_file()]
    assert saved
    for secret in (*secrets.values(), *guarded.issuer.issued):
        assert not [one for one in (*shown, *saved) if secret.encode() in one]


def page(url: str, headers: dict[str, str]) -> bytes:
    """Return a page."""
    with urlopen(Request(url, headers=headers)) as answer:  # noqa: S310 - of this machine
        return bytes(answer.read())

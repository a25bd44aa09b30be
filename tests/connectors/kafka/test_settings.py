"""Clients reach brokers that require TLS and a user, and no secret is shown."""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
import trustme
from cryptography.hazmat.primitives import serialization as keys
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import admin as kafka_admin
from kafka.errors import SaslAuthenticationFailedError, UnsupportedSaslMechanismError
from tests.connectors.kafka.brokers import PATIENCE, Broker, Message, patiently, unique
from tests.connectors.kafka.clients import CLIENTS, CONSUMER, DEFAULT, on_each_client
from tests.connectors.kafka.joining import Reading, settled

from abers.exceptions import ConfigError
from abers.stream import Settings
from abers_connectors.config.model import Config
from abers_connectors.config.sections import (
    PASSWORD_MECHANISMS,
    KafkaSection,
    SecuritySection,
    StateSection,
)
from abers_connectors.kafka.client import PartitionReader
from abers_connectors.kafka.connection import (
    KEY_PASSWORD,
    PASSWORD,
    client_settings,
    connection_errors,
    session_timeout,
)
from abers_connectors.kafka.topic_checks import check, create_topics
from abers_connectors.process import Watchdog
from abers_connectors.runtime.transport import TopicPartition, open_transport

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from abers_connectors.kafka.topics import Finding

SECRET, KEY_SECRET, WRONG = "open-sesame-1", "open-sesame-2", "open-barley"
ENVIRON = {PASSWORD: SECRET, KEY_PASSWORD: KEY_SECRET}
UNCHECKED = "topic {}.out cannot be checked: permission DESCRIBE_CONFIGS is missing"
LISTENER = "listener.name.client"
LOGIN = "org.apache.kafka.common.security"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = [
    pytest.param(one, marks=[] if one == "SCRAM-SHA-512" else pytest.mark.long)
    for one in PASSWORD_MECHANISMS
]


class Secured(NamedTuple):
    """A broker that requires a certificate and a user, and the folder of the certificates."""

    broker: Broker
    folder: Path

    def security(self, **more: Any) -> SecuritySection:  # noqa: ANN401 - any key of [kafka.security]
        """Return the section [kafka.security] of user abers."""
        given = {
            "protocol": "SASL_SSL",
            "cafile": str(self.folder / "ca.pem"),
            "certfile": str(self.folder / "client.pem"),
            "keyfile": str(self.folder / "client.key"),
            "mechanism": "SCRAM-SHA-512",
            "username": "abers",
        }
        return SecuritySection(**(given | more))

    def kafka(self, security: SecuritySection | None = None, **more: Any) -> KafkaSection:  # noqa: ANN401
        """Return the section [kafka] of a new application."""
        app = unique("app")
        topics = {"observations": f"{app}.in", "predictions": f"{app}.out"}
        given = {"bootstrap_servers": (self.broker.bootstrap,), "application_id": app, **topics}
        return KafkaSection(**(given | more), security=security or self.security())

    def allow(self, user: str, *rights: tuple[str, str, str]) -> None:
        """Grant rights: an operation on a kind of resource of a name; return once they hold."""
        granted = [
            kafka_admin.ACL(
                f"User:{user}",
                "*",
                kafka_admin.ACLOperation[operation],
                kafka_admin.ACLPermissionType.ALLOW,
                kafka_admin.ResourcePattern(kafka_admin.ResourceType[kind], name),
            )
            for operation, kind, name in rights
        ]
        with self.broker.admin() as admin:
            admin.create_acls(granted)
            while not all(admin.describe_acls(one)[0] for one in granted):
                time.sleep(0.01)


def certified(folder: Path) -> None:
    """Write certificates of an authority: one for the broker, one for a client, its key locked."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    trustme.CA().cert_pem.write_to_path(str(folder / "other.pem"))
    for name, lock in (
        ("127.0.0.1", keys.NoEncryption()),
        ("client", keys.BestAvailableEncryption(KEY_SECRET.encode())),
    ):
        issued = authority.issue_cert(name)
        key = keys.load_pem_private_key(issued.private_key_pem.bytes(), None)
        text = key.private_bytes(keys.Encoding.PEM, keys.PrivateFormat.PKCS8, lock)
        chain = b"".join(one.bytes() for one in issued.cert_chain_pems)
        (folder / f"{name}.key").write_bytes(text)
        (folder / f"{name}.pem").write_bytes(chain)
        (folder / f"{name}.both").write_bytes(text + chain)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Start a broker that requires a certificate and a user; admin may do all, abers nothing."""
    folder = tmp_path_factory.mktemp("certificates")
    certified(folder)
    properties = {
        f"{LISTENER}.ssl.keystore.type": "PEM",
        f"{LISTENER}.ssl.keystore.location": folder / "127.0.0.1.both",
        f"{LISTENER}.ssl.truststore.type": "PEM",
        f"{LISTENER}.ssl.truststore.location": folder / "ca.pem",
        f"{LISTENER}.ssl.client.auth": "required",
        f"{LISTENER}.sasl.enabled.mechanisms": ",".join(PASSWORD_MECHANISMS),
        f"{LISTENER}.plain.sasl.jaas.config": (
            f'{LOGIN}.plain.PlainLoginModule required user_admin="{SECRET}";'
        ),
        **{
            f"{LISTENER}.{one}.sasl.jaas.config": f"{LOGIN}.scram.ScramLoginModule required;"
            for one in map(str.lower, SCRAM)
        },
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
    }
    words = [f"{key}={value}" for key, value in properties.items()]
    started = Broker.started("--protocol", "SASL_SSL", "--properties", *words)
    made = Secured(started, folder)
    admin = made.security(mechanism="PLAIN", username="admin")
    started.client = client_settings(made.kafka(admin), ENVIRON)
    logins = [(user, mechanism) for user in ("abers", "admin") for mechanism in SCRAM]
    with started.admin() as client:
        for login in logins:  # one at a time, for a request changes a user once
            credential = kafka_admin.UserScramCredentialUpsertion(*login, SECRET)
            client.alter_user_scram_credentials([credential])
    for user, mechanism in logins:
        security = made.security(mechanism=mechanism, username=user)
        while not _accepted(client_settings(made.kafka(security), ENVIRON)):
            time.sleep(0.1)
    yield made
    started.stop()


def _accepted(settings: dict[str, Any]) -> bool:
    """Return whether the broker knows the user, which it hears of late."""
    try:
        patiently(lambda: KafkaAdminClient(**settings)).close()
    except SaslAuthenticationFailedError:
        return False
    return True


@pytest.mark.kafka
def test_topics_are_written_and_read_by_a_user_with_a_certificate(secured: Secured) -> None:
    """Producer, consumer and admin client connect by SCRAM over TLS with an encrypted key."""
    kafka = secured.kafka()
    topic = secured.broker.create()
    secured.allow("abers", ("READ", "TOPIC", topic), ("WRITE", "TOPIC", topic))
    user = Broker(secured.broker.bootstrap)
    user.client = client_settings(kafka, ENVIRON)
    user.produce(topic, [Message(b"a")])
    assert [one.value for one in user.consume(topic)] == [b"a"]


def root(secured: Secured, mechanism: str = "PLAIN") -> SecuritySection:
    """Return the section [kafka.security] of the user with all permissions."""
    return secured.security(mechanism=mechanism, username="admin")


@pytest.mark.kafka
def test_topics_that_may_not_be_created_are_reported(secured: Secured) -> None:
    """A missing permission to create is reported for each topic that does not exist."""
    config = Config(kafka=secured.kafka())
    assert config.kafka is not None
    app = config.kafka.application_id
    names = [f"{app}.{one}" for one in ("in", "out", "dead-letters", "changelog")]
    secured.allow("abers", *(("DESCRIBE", "TOPIC", name) for name in names))
    with pytest.raises(ConfigError) as error:
        create_topics(config, ENVIRON)
    assert str(error.value).count("permission CREATE on it is missing") == 4


@pytest.mark.kafka
def test_missing_permissions_are_reported(secured: Secured) -> None:
    """Each missing permission is reported, by topic, group and transactional id."""
    config = Config(kafka=secured.kafka(group_instance_id="7"), stream=Settings(label_timeout=1))
    assert config.kafka is not None
    app = config.kafka.application_id
    with pytest.raises(ConfigError, match=f"permission DESCRIBE on topic {app}.in is missing"):
        create_topics(config, ENVIRON)
    everything = Config(kafka=msgspec.structs.replace(config.kafka, security=root(secured)))
    assert len(create_topics(everything, ENVIRON)) == 4
    secured.allow("abers", ("DESCRIBE", "TOPIC", f"{app}.in"), ("WRITE", "TOPIC", f"{app}.out"))
    assert {str(one) for one in check(config, ENVIRON)} == {
        f"kafka.observations: permission READ on topic {app}.in is missing",
        f"kafka.predictions: {UNCHECKED.format(app)}",
        f"kafka.dead_letters: permission DESCRIBE on topic {app}.dead-letters is missing",
        f"kafka.changelog: permission DESCRIBE on topic {app}.changelog is missing",
        f"kafka.application_id: permission READ on group {app} is missing",
        f"kafka.group_instance_id: permission WRITE on transactional id {app}-7 is missing",
    }


@pytest.mark.kafka
def test_the_right_to_shorten_the_changelog_is_checked_where_it_is_used(secured: Secured) -> None:
    """DELETE is needed only for shared snapshots, and is not fatal if it is missing."""
    kafka, roots = secured.kafka(), {"security": root(secured)}
    name = f"{kafka.application_id}.changelog"
    create_topics(Config(kafka=msgspec.structs.replace(kafka, **roots)), ENVIRON)
    rights = ("READ", "WRITE", "DESCRIBE_CONFIGS")
    secured.allow("abers", *((right, "TOPIC", name) for right in rights))

    def findings_of(state: StateSection) -> list[Finding]:
        found = check(Config(kafka=kafka, state=state), ENVIRON, keys=False)
        return [one for one in found if one.where == "kafka.changelog"]

    assert findings_of(StateSection(path="state")) == []
    (finding,) = findings_of(StateSection(path="state", shared=True))
    assert f"permission DELETE on topic {name} is missing" in finding.text
    assert not finding.fatal
    secured.allow("abers", ("DELETE", "TOPIC", name))
    assert findings_of(StateSection(path="state", shared=True)) == []


@pytest.mark.kafka
def test_a_service_without_a_right_ends_for_good(secured: Secured) -> None:
    """A missing permission is a fault of the configuration, which is not retried."""
    watchdog = Watchdog(60.0)
    topic = secured.broker.create()
    log = PartitionReader(
        unique("app"), settings=client_settings(secured.kafka(), ENVIRON), watchdog=watchdog
    )
    with pytest.raises(ConfigError, match=r"a permission is missing \(GroupAuthorizationFailed"):
        log.committed(TopicPartition(topic, 0))
    log.close()
    watchdog.close()


@pytest.mark.kafka
def test_a_session_time_out_that_may_not_be_seen(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts as the default of brokers."""
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    assert session_timeout(secured.kafka(None, **CLIENTS[CONSUMER]), "app") == 45


@pytest.mark.kafka
def test_a_user_with_all_rights_has_nothing_to_mend(secured: Secured) -> None:
    """There are no findings if topics, group and transactions may be used."""
    config = Config(kafka=secured.kafka(root(secured)))
    create_topics(config, ENVIRON)
    assert [one for one in check(config, ENVIRON) if one.fatal] == []


@pytest.mark.kafka
def test_no_secret_is_logged(secured: Secured, caplog: pytest.LogCaptureFixture) -> None:
    """Neither password is in the log of the clients at level DEBUG."""
    settings = client_settings(secured.kafka(root(secured)), ENVIRON)
    caplog.set_level(logging.DEBUG)
    with KafkaAdminClient(**settings) as admin:
        admin.list_topics()
    with KafkaConsumer(**settings) as consumer:
        consumer.topics()
    with KafkaProducer(**settings) as producer:
        producer.send(secured.broker.create(), b"x").get()
    assert "configuration" in caplog.text
    for secret in (SECRET, KEY_SECRET):
        assert secret not in caplog.text


@pytest.mark.parametrize("mechanism", MECHANISMS)
@on_each_client
@pytest.mark.kafka
def test_a_service_reads_and_writes_with_a_password_that_no_log_shows(  # noqa: PLR0913, PLR0917 - fixtures
    client: str,
    mechanism: str,
    secured: Secured,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Group, transaction and reader use TLS and SASL, and show neither password at level DEBUG."""
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    caplog.set_level(logging.DEBUG)
    kafka = secured.kafka(root(secured, mechanism), **CLIENTS[client])
    topic = secured.broker.create()
    watchdog = Watchdog(PATIENCE)
    transport = open_transport(kafka, watchdog)
    group = transport.consumer([topic], topic, "a", session_timeout=60)
    (owner,) = settled(group, owned=1)
    (here,) = owner.assigned
    producer = transport.producer(topic, topics=[topic], group=topic, timeout=60, compression="lz4")
    producer.begin()
    producer.send(here, None, b"a")
    producer.commit({here: 7}, owner.group_metadata)
    reader, reading, found = transport.reader(topic), Reading(group, {here: 0}), list[Any]()
    assert reader.committed(here) == 7
    while not found:
        found += [one.value for one in reading.poll(0.1, 10).get(here, ())]
    assert found == [b"a"]
    for one in (reader, producer, group, watchdog):
        one.close()
    said = caplog.text + "".join(capfd.readouterr())
    for secret in (SECRET, KEY_SECRET):
        assert secret not in said


def test_settings_show_no_secret(secured_offline: Secured) -> None:
    """A password is used as it is, and never shown, however it is printed."""
    settings = client_settings(secured_offline.kafka(), ENVIRON)
    password = settings["sasl_plain_password"]
    assert password == SECRET
    assert password.encode() == SECRET.encode()
    for shown in (str(settings), repr(password), str(password), f"{password}", "%s" % password):  # noqa: UP031 - as loggers do
        assert SECRET not in shown


def test_passwords_from_files(secured_offline: Secured, tmp_path: Path) -> None:
    """Files may have both passwords; a wrong one is named by its file."""
    files = {"password_file": SECRET, "key_password_file": KEY_SECRET}
    for name, value in files.items():
        (tmp_path / name).write_text(f"{value}\n")
    given = {name: str(tmp_path / name) for name in files}
    kafka = secured_offline.kafka(secured_offline.security(**given))
    settings = client_settings(kafka, {})
    assert settings["sasl_plain_password"] == SECRET
    assert SECRET not in str(settings)
    (tmp_path / "key_password_file").write_text("wrong")
    where = f"the password in the file {given['key_password_file']} "
    with pytest.raises(ConfigError, match=f"client.key is encrypted; {where}"):
        client_settings(kafka, {})
    (tmp_path / "key_password_file").write_text(KEY_SECRET)
    with pytest.raises(ConfigError, match=f"password_file: the environment variable {PASSWORD}"):
        client_settings(kafka, {PASSWORD: SECRET})


@pytest.fixture
def secured_offline(tmp_path: Path) -> Secured:
    """Return certificates without a broker."""
    certified(tmp_path)
    return Secured(Broker("127.0.0.1:1"), tmp_path)


@pytest.mark.parametrize(
    ("more", "environ", "problem"),
    [
        (
            {},
            {},
            f"kafka.security.keyfile: .*client.key is encrypted; set .* in {KEY_PASSWORD}, or",
        ),
        ({}, {KEY_PASSWORD: "x" * 8}, "client.key is encrypted; .* does not decrypt it"),
        ({}, {KEY_PASSWORD: KEY_SECRET}, f"kafka.security.username: set .* {PASSWORD}"),
        ({"cafile": "none.pem"}, ENVIRON, "kafka.security.cafile: .*none.pem cannot be read"),
        ({"cafile": "client.key"}, ENVIRON, "kafka.security.cafile: .*client.key cannot be used"),
        ({"certfile": "none.pem"}, ENVIRON, "kafka.security.certfile: .*none.pem cannot be read"),
        ({"keyfile": "none.pem"}, ENVIRON, "kafka.security.keyfile: .*none.pem cannot be read"),
        ({"keyfile": "127.0.0.1.key"}, ENVIRON, "kafka.security.keyfile: .*KEY_VALUES_MISMATCH"),
    ],
)
def test_bad_settings_are_reported_before_a_broker_is_asked(
    more: dict[str, str], environ: dict[str, str], problem: str, secured_offline: Secured
) -> None:
    """Missing or wrong files and passwords are reported by their keys and variables."""
    files = {key: str(secured_offline.folder / name) for key, name in more.items()}
    kafka = secured_offline.kafka(secured_offline.security(**files))
    with pytest.raises(ConfigError, match=problem):
        client_settings(kafka, environ)


def test_a_mechanism_that_brokers_lack_is_reported(secured_offline: Secured) -> None:
    """The client's error becomes a sentence that names the key."""
    settings = client_settings(secured_offline.kafka(), ENVIRON)
    with (
        pytest.raises(ConfigError, match=r"kafka\.security\.mechanism: .* offer SCRAM-SHA-512"),
        connection_errors(settings),
    ):
        raise UnsupportedSaslMechanismError


TOML = """
[kafka]
client = "{client}"
bootstrap_servers = "{bootstrap}"
observations = "a"
predictions = "b"
[kafka.security]
protocol = "SASL_SSL"
cafile = "{folder}/{cafile}"
certfile = "{folder}/client.pem"
keyfile = "{folder}/client.key"
mechanism = "{mechanism}"
username = "abers"
[http]
enabled = false
"""


LAST = re.compile(r'^error: |^\{.*"level": "critical"')  # of a command, and of a service
UNREACHED: list[tuple[dict[str, str], int, str]] = [
    ({"command": "run", PASSWORD: WRONG}, 78, "the brokers reject user 'abers'"),
    ({"command": "run", "client": "librdkafka", PASSWORD: WRONG}, 78, "the brokers reject user"),
    ({"command": "run", "client": "librdkafka", "cafile": "other.pem"}, 75, "certificate"),
    ({"cafile": "other.pem"}, 75, "certificate verify failed"),
    ({"host": "localhost"}, 75, "certificate is not valid for 'localhost'"),
    (
        {PASSWORD: WRONG},
        78,
        f"(SCRAM-SHA-512), or the password in the environment variable {PASSWORD}",
    ),
]


@pytest.mark.kafka
def test_the_command_says_why_brokers_are_not_reached(
    secured: Secured, start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """A rejected certificate, name, mechanism or user is reported, and no secret."""
    port = secured.broker.bootstrap.rpartition(":")[2]
    running = []
    # In processes of their own, as the client leaves the sockets open that nobody answered; all at
    # once, as most of them try for ten seconds.
    for number, (change, code, said) in enumerate(UNREACHED):
        given = {"cafile": "ca.pem", "mechanism": "SCRAM-SHA-512", "host": "127.0.0.1"} | change
        text = TOML.format(
            client=given.get("client", DEFAULT),
            bootstrap=f"{given['host']}:{port}",
            folder=secured.folder,
            cafile=given["cafile"],
            mechanism=given["mechanism"],
        )
        (tmp_path / f"{number}.toml").write_text(text)
        environ = ENVIRON | {PASSWORD: given.get(PASSWORD, SECRET)}
        words = {"run": ["run"], "check": ["check", "--connect"]}[given.get("command", "check")]
        running.append((start(*words, f"{number}.toml", **environ), code, said))
    for process, code, said in running:
        error = process.communicate()[1].decode()
        (line,) = [one for one in error.splitlines() if LAST.search(one)]
        assert process.returncode == code, error
        assert said in line
        assert not [one for one in (SECRET, KEY_SECRET, WRONG) if one in error]

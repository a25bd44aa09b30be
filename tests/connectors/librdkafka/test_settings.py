from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.connectors.kafka.test_settings import ENVIRON, KEY_SECRET, SECRET, Secured, certified

from abers.exceptions import ConfigError
from abers_connectors.config.sections import KafkaSection, SecuritySection
from abers_connectors.kafka.connection import client_settings as kafka_python_settings
from abers_connectors.librdkafka.connection import client_settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def settings_of(kafka: KafkaSection, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of librdkafka's clients."""
    return client_settings(kafka, kafka_python_settings(kafka, environ), environ)


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    """Return certificates without a broker."""
    from tests.connectors.kafka.brokers import Broker  # noqa: PLC0415 - one test

    certified(tmp_path)
    return Secured(Broker("127.0.0.1:1"), tmp_path)


def test_without_security_only_the_brokers_are_named() -> None:
    """No key of TLS or SASL is set."""
    kafka = KafkaSection(
        bootstrap_servers=("a:1", "b:2"), observations="i", predictions="o", client="librdkafka"
    )
    settings = settings_of(kafka, {})
    assert settings["bootstrap.servers"] == "a:1,b:2"
    assert settings["security.protocol"] == "PLAINTEXT"
    assert not [name for name in settings if name.startswith(("ssl.", "sasl."))]


def test_files_and_passwords_are_passed_on(secured: Secured) -> None:
    """Each key of [kafka.security] has its name in librdkafka."""
    settings = settings_of(secured.kafka(), ENVIRON)
    assert settings["ssl.ca.location"] == str(secured.folder / "ca.pem")
    assert settings["ssl.certificate.location"] == str(secured.folder / "client.pem")
    assert settings["ssl.key.location"] == str(secured.folder / "client.key")
    assert settings["ssl.key.password"] == KEY_SECRET
    assert settings["ssl.endpoint.identification.algorithm"] == "https"
    assert settings["sasl.mechanism"] == "SCRAM-SHA-512"
    assert settings["sasl.username"] == "abers"
    assert settings["sasl.password"] == SECRET


def test_a_key_may_be_in_the_file_of_the_certificate(secured: Secured) -> None:
    """That file is both, and the name of a broker need not be checked."""
    both = str(secured.folder / "127.0.0.1.both")
    security = SecuritySection(protocol="SSL", certfile=both, check_hostname=False)
    settings = settings_of(secured.kafka(security), {})
    assert settings["ssl.certificate.location"] == settings["ssl.key.location"] == both
    assert settings["ssl.endpoint.identification.algorithm"] == "none"
    assert "ssl.ca.location" not in settings


def test_mistakes_are_those_of_every_client(secured: Secured) -> None:
    """A password that is missing is reported before a broker is asked."""
    with pytest.raises(ConfigError, match=r"kafka\.security\.keyfile: .*client.key is encrypted"):
        settings_of(secured.kafka(), {})


def test_tokens_are_passed_on_with_their_expiry(tmp_path: Path) -> None:
    """The client calls a function for a token, and gets the extensions with it."""
    file = tmp_path / "token"
    file.write_text("a.b.c\n")
    security = SecuritySection(
        protocol="SASL_SSL",
        mechanism="OAUTHBEARER",
        token_file=str(file),
        extensions={"logicalCluster": "lkc-1"},
    )
    kafka = KafkaSection(
        bootstrap_servers=("a:1",), observations="i", predictions="o", security=security
    )
    settings = settings_of(kafka, {})
    assert settings["sasl.mechanism"] == "OAUTHBEARER"
    token, expires, principal, extensions = settings["oauth_cb"]("")
    assert (type(token), token, principal) == (str, "a.b.c", "")
    assert expires == pytest.approx(time.time() + 300, abs=5)
    assert extensions == {"logicalCluster": "lkc-1"}
    assert "a.b.c" not in str(settings)


def test_amazon_wants_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the brokers of Amazon the mechanism is OAUTHBEARER, on each client."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    security = SecuritySection(protocol="SASL_SSL", mechanism="AWS_MSK_IAM", aws_region="eu-west-1")
    kafka = KafkaSection(
        bootstrap_servers=("a:1",), observations="i", predictions="o", security=security
    )
    checked = kafka_python_settings(kafka, {})
    settings = client_settings(kafka, checked, {})
    assert checked["sasl_mechanism"] == settings["sasl.mechanism"] == "OAUTHBEARER"
    assert settings["oauth_cb"]("")[0] == checked["sasl_oauth_token_provider"].token()
    assert "wJalrXUtnFEMI" not in f"{settings} {checked}"

"""Libraries that a service needs, which are checked before it starts."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest

from abers_connectors.config.model import Config
from abers_connectors.config.sections import (
    HttpSection,
    KafkaSection,
    SecuritySection,
    TelemetrySection,
)
from abers_connectors.preflight import missing_requirements

KAFKA = KafkaSection(
    client="kafka-python", bootstrap_servers=("a:1",), observations="i", predictions="o"
)
FAST = msgspec.structs.replace(KAFKA, client="librdkafka")


def test_nothing_is_lacking() -> None:
    """With everything installed there is no problem."""
    assert list(missing_requirements(Config(kafka=KAFKA))) == []


@pytest.mark.parametrize(
    ("module", "feature", "group"),
    [
        ("kafka", "a section [kafka]", "kafka"),
        ("snappy", "a section [kafka]", "kafka"),
        ("uvicorn", "the HTTP server", "http"),
    ],
)
def test_what_is_lacking(
    module: str, feature: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each missing library is named with what needs it and the command that installs it."""
    line = f"{group}: {feature} needs {module}, which is not installed; "
    line += f"run: pip install 'abers[{group}]'"
    monkeypatch.setitem(sys.modules, module, None)
    assert list(missing_requirements(Config(kafka=KAFKA))) == [line]
    without = Config(kafka=KAFKA, http=HttpSection(enabled=False))
    assert list(missing_requirements(without)) == ([] if module == "uvicorn" else [line])


def test_the_client_is_needed_where_it_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library is required only by the configuration that names it."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    assert list(missing_requirements(Config(kafka=KAFKA))) == []
    line = (
        'kafka.client: kafka.client = "librdkafka" needs confluent_kafka, which is not installed; '
    )
    line += "run: pip install 'abers[librdkafka]'"
    assert list(missing_requirements(Config(kafka=FAST))) == [line]


def test_telemetry_is_needed_where_it_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK is named with its extra, and only where a collector is."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    assert list(missing_requirements(Config(kafka=KAFKA))) == []
    telemetry = TelemetrySection(endpoint="http://localhost:4318")
    (line,) = missing_requirements(Config(kafka=KAFKA, telemetry=telemetry))
    assert line == (
        "telemetry.endpoint: telemetry.endpoint needs opentelemetry, which is not installed; "
        "run: pip install 'abers[otel]'"
    )


@pytest.mark.parametrize(
    ("mechanism", "module", "group", "more"),
    [
        ("AWS_MSK_IAM", "aws_msk_iam_sasl_signer", "msk", {"aws_region": "eu-west-1"}),
        ("GSSAPI", "gssapi", "kerberos", {}),
    ],
)
def test_the_library_of_a_login_is_needed_where_it_is_chosen(
    mechanism: str, module: str, group: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Amazon's signer and Kerberos are named with their extras."""
    monkeypatch.setitem(sys.modules, module, None)
    given = {"protocol": "SASL_SSL", "mechanism": mechanism} | more
    kafka = msgspec.structs.replace(KAFKA, security=SecuritySection(**given))
    (line,) = missing_requirements(Config(kafka=kafka))
    assert line == (
        f'kafka.security.mechanism: kafka.security.mechanism = "{mechanism}" needs {module}, which '
        f"is not installed; run: pip install 'abers[{group}]'"
    )

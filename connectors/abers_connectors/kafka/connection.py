"""Connections to the brokers: settings, logins, session, and the errors of connecting.

Secrets come from the environment or from files, and no text that shows the settings of a client
shows them. Mistakes in the settings are reported before a broker is asked.

kafka-python is an extra, so it is imported when a client is opened.
"""

from __future__ import annotations

import logging
import os
import ssl
import time
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.certificate import load_certificate, pem_file
from abers_connectors.extras import extra
from abers_connectors.regular_files import open_regular
from abers_connectors.secret import Secret, read_secret
from abers_connectors.tokens import ClientCredentials, TokenProvider, msk_token, stored_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from abers_connectors.config.sections import KafkaSection, SecuritySection
    from abers_connectors.runtime.transport import Headers, TopicPartition
    from abers_connectors.tokens import Token

__all__ = [
    "CLIENT_SECRET",
    "KEY_PASSWORD",
    "NULL",
    "PASSWORD",
    "TIMEOUT",
    "TOKEN",
    "client_settings",
    "connection_errors",
    "headers_to_client",
    "key_password",
    "login_problem",
    "new_admin",
    "new_consumer",
    "new_producer",
    "open_admin",
    "rejected",
    "session_timeout",
    "to_client",
]

PASSWORD, CLIENT_SECRET, TOKEN = (
    f"ABERS_KAFKA_{what}" for what in ("PASSWORD", "CLIENT_SECRET", "TOKEN")
)
_SECTION = "kafka.security"
# At level DEBUG these log all bytes that are sent, passwords and tokens too.
_WIRE_LOGGERS = ("kafka.net.connection", "kafka.protocol.parser")


def _above_debug(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


def login_settings(security: SecuritySection, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of the login.

    The first token is fetched at once. Raises a ConfigError if a secret is missing or the issuer
    refuses it, and a BrokerError if the issuer does not answer.
    """
    for name in _WIRE_LOGGERS:
        logging.getLogger(name).addFilter(_above_debug)
    if security.by_password:
        return {
            "sasl_mechanism": security.mechanism,
            "sasl_plain_username": security.username,
            "sasl_plain_password": _password(security, environ),
        }
    if security.by_token:
        # An extra, which is imported when a client is opened.
        adapter = extra("abers_connectors.kafka.client_errors", "a section [kafka]", "kafka")
        provider = TokenProvider(_token_source(security, environ))
        provider.token()
        return {
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": adapter.TokenAdapter(provider, security.extensions or {}),
        }
    return {
        "sasl_mechanism": security.mechanism,
        "sasl_kerberos_service_name": security.kerberos_service_name,
    }


def login_problem(security: SecuritySection, environ: Mapping[str, str]) -> str | None:
    """Return what is wrong with the secret of a login, or None; no token is requested."""
    try:
        if security.by_password:
            _password(security, environ)
        elif security.token_endpoint_url is not None:
            _client_secret(security, environ)
        elif security.mechanism == "OAUTHBEARER":
            _stored(security, environ)
    except ConfigError as error:
        return error.problems[0]
    return None


def _password(security: SecuritySection, environ: Mapping[str, str]) -> Secret:
    file = security.password_file
    found = read_secret(PASSWORD, f"{_SECTION}.password_file", file, environ)
    return _required(found, "username", "its password", PASSWORD, "password_file")


def _client_secret(security: SecuritySection, environ: Mapping[str, str]) -> Secret:
    file = security.client_secret_file
    found = read_secret(CLIENT_SECRET, f"{_SECTION}.client_secret_file", file, environ)
    return _required(found, "client_id", "its secret", CLIENT_SECRET, "client_secret_file")


def _stored(security: SecuritySection, environ: Mapping[str, str]) -> Secret:
    found = read_secret(TOKEN, f"{_SECTION}.token_file", security.token_file, environ)
    if found is None:
        msg = (
            f"{_SECTION}.mechanism: needs a token; name the issuer in {_SECTION}.token_endpoint_url"
            f", or a file in {_SECTION}.token_file, or set {TOKEN} in the environment"
        )
        raise ConfigError([msg])
    return found


def _required(found: Secret | None, key: str, what: str, variable: str, file_key: str) -> Secret:
    if not found:
        msg = (
            f"{_SECTION}.{key}: set {what} in the environment variable {variable}, or name a file "
            f"that has it in {_SECTION}.{file_key}"
        )
        raise ConfigError([msg])
    return found


def _token_source(security: SecuritySection, environ: Mapping[str, str]) -> Callable[[], Token]:
    """Return a function that fetches a token; secrets in files are read anew each time."""
    if security.mechanism == "AWS_MSK_IAM":
        return partial(msk_token, str(security.aws_region))
    if security.token_endpoint_url is None:
        return lambda: stored_token(_stored(security, environ))
    return ClientCredentials(
        security.token_endpoint_url,
        str(security.client_id),
        partial(_client_secret, security, environ),
        _SECTION,
        security.scope,
        security.cafile,
    )


def rejected(settings: Mapping[str, Any], why: str) -> str:
    """Return the sentence about brokers that reject a login; `why` is their reason."""
    mechanism = settings["sasl_mechanism"]
    if "sasl_plain_password" in settings:
        user, source = settings["sasl_plain_username"], settings["sasl_plain_password"].source
        return (
            f"{_SECTION}.username: the brokers reject user {user!r} ({mechanism}), or the password "
            f"in {source}"
        )
    if "sasl_oauth_token_provider" in settings:
        source = settings["sasl_oauth_token_provider"].provider.token().value.source
        return f"{_SECTION}.mechanism: the brokers reject the token from {source} ({why})"
    return f"{_SECTION}.mechanism: the brokers reject the Kerberos ticket ({why})"


KEY_PASSWORD, _KEY_PASSWORD_FILE = "ABERS_KAFKA_KEY_PASSWORD", "kafka.security.key_password_file"


class _PatientSocket(ssl.SSLSocket):
    """A socket that returns the end of a connection separately from the data before it.

    kafka-python reads until nothing is left, and at the end of a connection it drops what it has
    just read: the brokers' response that they reject a password, after which they disconnect.
    """

    _returned = False

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Return data; raise once before the end of the connection if data came before it."""
        data = super().recv(buflen, flags)
        returned, self._returned = self._returned, bool(data)
        if returned and not data:
            raise ssl.SSLWantReadError
        return data


def client_settings(kafka: KafkaSection, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the keyword arguments that all of kafka-python's clients get.

    Raises a ConfigError if a secret is missing or refused, or a certificate or key cannot be used,
    and a BrokerError if the issuer of tokens does not answer.
    """
    security = kafka.security
    settings: dict[str, Any] = {
        "bootstrap_servers": [*kafka.bootstrap_servers],
        "client_id": f"{kafka.application_id}-{kafka.group_instance_id}",
        "security_protocol": security.protocol,
        # As Kafka's own clients. By default (30 s) no record would be written for so long to a
        # broker that is back after a while, and leads again.
        "reconnect_backoff_max_ms": 1000,
    }
    if security.encrypted:
        settings["ssl_context"] = _tls_context(security, environ)
    if security.mechanism is not None:
        settings |= login_settings(security, environ)
    return settings


def key_password(security: SecuritySection, environ: Mapping[str, str]) -> Secret | None:
    """Return the password of the private key, or None."""
    return read_secret(KEY_PASSWORD, _KEY_PASSWORD_FILE, security.key_password_file, environ)


def _tls_context(security: SecuritySection, environ: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies the brokers
    context.sslsocket_class = _PatientSocket
    context.check_hostname = security.check_hostname
    if security.cafile is None:
        context.load_default_certs()
    else:
        with pem_file("kafka.security.cafile", security.cafile), open_regular(security.cafile):
            context.load_verify_locations(security.cafile)
    if security.certfile is not None:
        files = security.certfile, security.keyfile
        remedy = f"set its password in {KEY_PASSWORD}, or name a file in {_KEY_PASSWORD_FILE}"
        secret = key_password(security, environ)
        load_certificate(context, "kafka.security", files, remedy, secret)
    return context


class _Null(bytes):
    """The type of `NULL`."""


NULL = _Null()
"""The value that stands for null in a header; a producer takes only bytes."""

TIMEOUT = 10.0  # seconds of a request of the admin client
_CONNECT_TIMEOUT = 30_000  # ms until a consumer or a producer finds a broker that answers
_ATTEMPT = 4_000  # ms of that for one attempt
_REFUSED = "ECONNREFUSED"  # no process listens there
# A consumer commits nothing and starts nowhere by itself.
_CONSUMER = {
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    "auto_offset_reset": "none",
    "allow_auto_create_topics": False,
    "fetch_max_wait_ms": 100,  # the longest wait for a resumed partition
    "request_timeout_ms": 10_000,  # after which a broker that does not answer counts as gone
    "metrics_enabled": False,
}


@cache
def _client(module: str = "kafka") -> Any:  # noqa: ANN401 - the client has no types
    return extra(module, "a section [kafka]", "kafka")


def _workarounds() -> Any:  # noqa: ANN401 - it imports the client
    return import_module("abers_connectors.kafka.workarounds")


def to_client(partition: TopicPartition) -> Any:  # noqa: ANN401 - the client has no types
    """Return the client's own object for a partition."""
    return _client().TopicPartition(*partition)


def headers_to_client(headers: Headers) -> list[tuple[str, bytes]]:
    """Return headers for a producer."""
    return [(name, NULL if value is None else value) for name, value in headers]


def _opened(name: str, settings: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the client has no types
    """Open a client, by several short attempts.

    A client spends all of its time on one broker, drawn at random, and that broker may hang.
    """
    limit = settings.get("bootstrap_timeout_ms", _CONNECT_TIMEOUT)
    until = time.monotonic() + limit / 1000
    attempt = {**settings, "bootstrap_timeout_ms": min(_ATTEMPT, limit)}
    while True:
        try:
            return getattr(_client(), name)(**attempt)
        except _client("kafka.errors").KafkaTimeoutError:
            if time.monotonic() >= until:
                raise


def new_consumer(settings: Mapping[str, Any], **options: Any) -> Any:  # noqa: ANN401 - no types
    """Open a consumer of committed records, which commits and seeks only by explicit calls."""
    consumer = _opened("KafkaConsumer", {**_CONSUMER, **settings, **options})
    workarounds = _workarounds()
    workarounds.release_resumed(consumer)
    workarounds.accept_all_headers(consumer)
    return consumer


def new_producer(settings: Mapping[str, Any], compression: str, **options: Any) -> Any:  # noqa: ANN401 - no types
    """Open a producer; its compression may be "none"."""
    own = {
        "compression_type": None if compression == "none" else compression,
        "allow_auto_create_topics": False,
        "metrics_enabled": False,
    }
    producer = _opened("KafkaProducer", {**own, **settings, **options})
    _workarounds().allow_null_headers(producer)
    return producer


def new_admin(settings: Mapping[str, Any], **options: Any) -> Any:  # noqa: ANN401 - no types
    """Open an admin client."""
    own = {"request_timeout_ms": int(1000 * TIMEOUT)}
    return _opened("KafkaAdminClient", {**own, **settings, **options})


@contextmanager
def open_admin(settings: Mapping[str, Any]) -> Iterator[Any]:
    """Open an admin client in a `with` block, and translate its errors."""
    limit = int(1000 * TIMEOUT)
    with connection_errors(settings), new_admin(settings, bootstrap_timeout_ms=limit) as admin:
        yield admin


class _CauseHandler(logging.Handler):
    """Keeps the error that the client logs before it raises only a timeout."""

    def __init__(self, raised: type[Exception], vague: type[Exception]) -> None:
        super().__init__(logging.WARNING)
        self._raised, self._vague = raised, vague
        self.error: Exception | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an error among the arguments; a lost connection says less than its cause."""
        for one in record.args if isinstance(record.args, tuple) else ():
            known = self.error is not None and not isinstance(self.error, self._vague)
            if isinstance(one, Exception) and not isinstance(one, self._raised) and not known:
                self.error = one


@contextmanager
def connection_errors(settings: Mapping[str, Any]) -> Iterator[None]:
    """Raise a BrokerError if no broker answers, and a ConfigError if the brokers reject the user.

    Raises a MissingExtraError if kafka-python is not installed.
    """
    errors = _client("kafka.errors")
    log = logging.getLogger("kafka")
    cause = _CauseHandler(errors.KafkaTimeoutError, errors.KafkaConnectionError)
    log.addHandler(cause)
    try:
        yield
    except errors.KafkaError as error:
        known = cause.error if isinstance(error, errors.KafkaTimeoutError) else None
        raise _translated(known or error, settings) from None
    finally:
        log.removeHandler(cause)


def _translated(error: Exception, settings: Mapping[str, Any]) -> ConfigError | BrokerError:
    """Translate an error of the client into one that names the setting to check."""
    errors = _client("kafka.errors")
    if isinstance(error, errors.SaslAuthenticationFailedError):
        return ConfigError([rejected(settings, " ".join(map(str, error.args)))])
    if isinstance(error, errors.UnsupportedSaslMechanismError):
        mechanism = settings["sasl_mechanism"]
        return ConfigError([f"kafka.security.mechanism: the brokers do not offer {mechanism}"])
    servers = ", ".join(settings["bootstrap_servers"])
    why = " ".join(map(str, error.args)) or type(error).__name__  # without the error's number
    # A broker that expects another protocol only disconnects.
    password = settings.get("sasl_plain_password")
    accepted = f", and that they accept the password in {password.source}" if password else ""
    hint = f"; check that kafka.security is what the brokers expect{accepted}"
    hint = "" if _REFUSED in why else hint
    return BrokerError(f"no answer from a broker at {servers}: {why}{hint}")


_KEY = "consumer.session.timeout.ms"
_DEFAULT = "45000"  # of brokers


def session_timeout(kafka: KafkaSection, group: str) -> float:
    """Return the seconds without a heartbeat after which the brokers remove a member of a group.

    In the consumer protocol this is a setting of the group on the brokers. If we may not see it,
    their default counts.
    """
    if kafka.group_protocol == "classic":
        return kafka.session_timeout / 1000
    with open_admin(client_settings(kafka)) as admin:
        found = _group_config(admin, group)
    return int(found.get(_KEY, {}).get("value", _DEFAULT)) / 1000


def _group_config(admin: Any, group: str) -> Mapping[str, Any]:  # noqa: ANN401 - untyped
    from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415 - an extra

    resource = ConfigResource(ConfigResourceType.GROUP, group, None)
    found: Mapping[str, Any] = admin.describe_configs([resource], config_filter="all")
    config: Mapping[str, Any] = found.get("group", {}).get(group, {})
    return config

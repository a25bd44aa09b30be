"""Logins of kafka-python's clients: passwords, tokens and Kerberos."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from abers.exceptions import ConfigError
from abers_connectors.extras import extra
from abers_connectors.secret import Secret, read_secret
from abers_connectors.tokens.client_credentials import ClientCredentials
from abers_connectors.tokens.msk_token import msk_token
from abers_connectors.tokens.provider import TokenProvider
from abers_connectors.tokens.stored_token import stored_token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abers_connectors.config.sections import SecuritySection
    from abers_connectors.tokens.provider import Token

__all__ = ["CLIENT_SECRET", "PASSWORD", "TOKEN", "login_problem", "login_settings", "rejected"]

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

    The first token is fetched at once. A ConfigError is raised if a secret is missing or the issuer
    refuses it, and a BrokerError if the issuer is away.
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
        adapter = extra("abers_connectors.kafka.token_adapter", "a section [kafka]", "kafka")
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
    """Return what is wrong with the secret of a login, or None; nobody is asked for a token."""
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
    """Return the sentence about brokers that reject a login; `why` is what they say."""
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

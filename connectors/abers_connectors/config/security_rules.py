"""Rules between the keys of [kafka.security]: TLS, and what each login needs.

A key that would have no effect is refused, not ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers_connectors.config.sections import PASSWORD_MECHANISMS, default_client
from abers_connectors.config.value_types import shown

if TYPE_CHECKING:
    from abers_connectors.config.raw_values import Found, RawValues

__all__ = ["security_conflicts"]

_TLS_PROTOCOLS, _SASL_PROTOCOLS = ("SSL", "SASL_SSL"), ("SASL_PLAINTEXT", "SASL_SSL")
_PROTOCOLS = ("PLAINTEXT", *_TLS_PROTOCOLS, *_SASL_PROTOCOLS)
_TLS_KEYS = ("cafile", "certfile", "keyfile", "key_password_file", "check_hostname")
_OAUTH, _MSK, _KERBEROS = ("OAUTHBEARER",), ("AWS_MSK_IAM",), ("GSSAPI",)
_KNOWN = (*PASSWORD_MECHANISMS, *_OAUTH, *_MSK, *_KERBEROS)
# The keys of an issuer, which no token of others needs.
_ISSUER_KEYS = ("token_endpoint_url", "client_id", "client_secret_file", "scope")
_MECHANISMS = {
    "username": PASSWORD_MECHANISMS,
    "password_file": PASSWORD_MECHANISMS,
    **dict.fromkeys((*_ISSUER_KEYS, "token_file", "extensions"), _OAUTH),
    "aws_region": _MSK,
    "kerberos_service_name": _KERBEROS,
}
"""Keys of a login, and the mechanisms that use them."""
_REQUIRED = {
    **dict.fromkeys(PASSWORD_MECHANISMS, ("username", "abers")),
    "AWS_MSK_IAM": ("aws_region", "eu-west-1"),
}
"""The key that a mechanism needs, with an example."""
_EXAMPLES = {"token_endpoint_url": "https://login.example.com/oauth2/token", "client_id": "abers"}


def security_conflicts(values: RawValues) -> Found:
    """Return the contradictions in [kafka.security], and the keys that it lacks."""
    protocol = _get(values, "protocol")
    protocol = "PLAINTEXT" if protocol is None else protocol
    if protocol in _PROTOCOLS:
        yield from _tls(values, encrypted=protocol in _TLS_PROTOCOLS)
        yield from _login(values, protocol)


def _tls(values: RawValues, *, encrypted: bool) -> Found:
    """Yield TLS settings of a protocol without TLS, and keys without the one they need."""
    if not encrypted:
        for name in _TLS_KEYS:
            if _get(values, name) not in (None, True):
                remedy = 'set protocol = "SSL" or "SASL_SSL", or remove it'
                yield _path(name), f"applies only to TLS; {remedy}"
    elif _get(values, "certfile") is None:
        for name in ("keyfile", "key_password_file"):
            if _get(values, name) is not None:
                yield _path(name), "needs a certificate; set kafka.security.certfile"


def _login(values: RawValues, protocol: str) -> Found:
    mechanism = _get(values, "mechanism")
    if protocol not in _SASL_PROTOCOLS:
        for name in ("mechanism", *_MECHANISMS):
            if _get(values, name) is not None:
                remedy = 'set protocol = "SASL_SSL", or remove it'
                yield _path(name), f"applies only to SASL; {remedy}"
        return
    if mechanism is None:
        need = f"protocol {shown(protocol)} needs one, such as {shown('SCRAM-SHA-512')}"
        yield _path("mechanism"), f"is missing; {need}"
        return
    if mechanism not in _KNOWN:
        return
    for name, owners in _MECHANISMS.items():
        if _get(values, name) is not None and mechanism not in owners:
            yield _path(name), f"applies only to {' and '.join(map(shown, owners))}; remove it"
    name, example = _REQUIRED.get(mechanism, ("mechanism", ""))
    if _get(values, name) is None:
        need = f"mechanism {shown(mechanism)} needs one, such as {shown(example)}"
        yield _path(name), f"is missing; {need}"
    yield from _bearer(values, mechanism, protocol)
    client = values.get("kafka.client") or default_client()
    if mechanism == "GSSAPI" and client == "librdkafka":
        remedy = f"set kafka.client = {shown('kafka-python')}"
        yield _path("mechanism"), f"the package of librdkafka has no {shown(mechanism)}; {remedy}"


def _bearer(values: RawValues, mechanism: str, protocol: str) -> Found:
    """Check that a token comes from one place, and is encrypted where strangers could read it."""
    if mechanism == "AWS_MSK_IAM" and protocol != "SASL_SSL":
        yield _path("protocol"), f"must be {shown('SASL_SSL')} for {shown(mechanism)}"
    given = [name for name in _ISSUER_KEYS if _get(values, name) is not None]
    if mechanism != "OAUTHBEARER" or not given:
        return
    if _get(values, "token_file") is not None:
        both = f"cannot be combined with {_path(given[0])}; remove one of them"
        yield _path("token_file"), both
        return
    for name, example in _EXAMPLES.items():
        if name not in given:
            need = f"{_path(given[0])} needs one, such as {shown(example)}"
            yield _path(name), f"is missing; {need}"


def _get(values: RawValues, name: str) -> Any:  # noqa: ANN401 - any TOML value
    return values.get(_path(name))


def _path(name: str) -> str:
    return f"kafka.security.{name}"

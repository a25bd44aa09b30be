"""Rules between the keys of [kafka.security]: which keys a protocol and a login need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers.stream.option import REMOVE, SET, Quoted, written
from abers_connectors.config.sections import PASSWORD_MECHANISMS, default_client

if TYPE_CHECKING:
    from abers.stream.option import Part
    from abers_connectors.config.layers import Found, RawValues

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
                secure = (_ref(values, "protocol", "SSL"), " or ", Quoted("SASL_SSL"))
                yield _security_key(name), ("applies only to TLS; ", SET, *secure, ", or ", REMOVE)
    elif _get(values, "certfile") is None:
        for name in ("keyfile", "key_password_file"):
            if _get(values, name) is not None:
                needs = ("needs a certificate; ", SET, _ref(values, "certfile"))
                yield _security_key(name), needs


def _login(values: RawValues, protocol: str) -> Found:
    mechanism = _get(values, "mechanism")
    if protocol not in _SASL_PROTOCOLS:
        for name in ("mechanism", *_MECHANISMS):
            if _get(values, name) is not None:
                secure = _ref(values, "protocol", "SASL_SSL")
                yield _security_key(name), ("applies only to SASL; ", SET, secure, ", or ", REMOVE)
        return
    if mechanism is None:
        need = (_ref(values, "protocol", protocol), " needs one, such as ")
        yield _security_key("mechanism"), ("is missing; ", *need, Quoted("SCRAM-SHA-512"))
        return
    if mechanism not in _KNOWN:
        return
    for name, owners in _MECHANISMS.items():
        if _get(values, name) is not None and mechanism not in owners:
            known = " and ".join(map(written, owners))
            yield _security_key(name), (f"applies only to {known}; ", REMOVE)
    name, example = _REQUIRED.get(mechanism, ("mechanism", ""))
    if _get(values, name) is None:
        need = (_ref(values, "mechanism", mechanism), " needs one, such as ")
        yield _security_key(name), ("is missing; ", *need, Quoted(example))
    yield from _bearer(values, mechanism, protocol)
    client = values.get("kafka.client") or default_client()
    if mechanism == "GSSAPI" and client == "librdkafka":
        lacks = ("the package of librdkafka has no ", Quoted(mechanism), "; ")
        yield _security_key("mechanism"), (*lacks, SET, values.ref("kafka.client", "kafka-python"))


def _bearer(values: RawValues, mechanism: str, protocol: str) -> Found:
    """Check that a token comes from one place, and is encrypted where strangers could read it."""
    if mechanism == "AWS_MSK_IAM" and protocol != "SASL_SSL":
        must = ("must be ", Quoted("SASL_SSL"), " for ", Quoted(mechanism))
        yield _security_key("protocol"), must
    given = [name for name in _ISSUER_KEYS if _get(values, name) is not None]
    if mechanism != "OAUTHBEARER" or not given:
        return
    if _get(values, "token_file") is not None:
        both = ("cannot be combined with ", _ref(values, given[0]), "; remove one of them")
        yield _security_key("token_file"), both
        return
    for name, example in _EXAMPLES.items():
        if name not in given:
            need = (_ref(values, given[0]), " needs one, such as ", Quoted(example))
            yield _security_key(name), ("is missing; ", *need)


def _get(values: RawValues, name: str) -> Any:  # noqa: ANN401 - any TOML value
    return values.get(_security_key(name))


def _ref(values: RawValues, name: str, *value: str) -> Part:
    return values.ref(_security_key(name), *value)


def _security_key(name: str) -> str:
    return f"kafka.security.{name}"

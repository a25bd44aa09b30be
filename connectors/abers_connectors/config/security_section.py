"""The section of the security of Kafka: TLS and logins, without secrets."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from abers_connectors.config.section import Section, key
from abers_connectors.config.value_types import (
    Extensions,
    File,
    Name,
    Url,
)

__all__ = ["PASSWORD_MECHANISMS", "TOKEN_MECHANISMS", "SecuritySection"]

PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOKEN_MECHANISMS = ("OAUTHBEARER", "AWS_MSK_IAM")


class SecuritySection(Section, frozen=True, kw_only=True):
    """Section [kafka.security]: TLS and SASL settings, without secrets."""

    intro: ClassVar[str] = (
        "Secrets are not allowed here. Each comes from a variable, or from a file that a key "
        "here names."
    )

    protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
        key(
            'The protocol: "PLAINTEXT", "SSL" (which is TLS), "SASL_PLAINTEXT" or '
            '"SASL_SSL", as on the '
            "brokers."
        ),
    ] = "PLAINTEXT"
    cafile: Annotated[
        File | None,
        key(
            "PEM file with the authorities of the brokers.",
            "Default: those of the system.",
            example="ca.pem",
        ),
    ] = None
    certfile: Annotated[
        File | None,
        key(
            "PEM file with the certificate of the client.",
            "Default: no certificate.",
            example="client.pem",
        ),
    ] = None
    keyfile: Annotated[
        File | None,
        key(
            "PEM file with the key of this certificate, if that is in a file of its own.",
            example="client.key",
        ),
    ] = None
    key_password_file: Annotated[
        File | None,
        key(
            "File with the password of the key.",
            "Default: ABERS_KAFKA_KEY_PASSWORD in the environment.",
            example="/run/secrets/key_password",
        ),
    ] = None
    check_hostname: Annotated[
        bool, key("Whether the certificate of a broker must match its name.")
    ] = True
    mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI"]
        | None,
        key(
            "SASL mechanism.",
            '"PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512" with user and password; '
            '"OAUTHBEARER" with '
            'a token; "AWS_MSK_IAM" with the credentials of AWS; "GSSAPI" with Kerberos. Default: '
            "no login.",
            example="SCRAM-SHA-512",
        ),
    ] = None
    username: Annotated[
        Name | None, key("The user of a login with a password.", example="abers")
    ] = None
    password_file: Annotated[
        File | None,
        key(
            "File with the password.",
            "Default: ABERS_KAFKA_PASSWORD in the environment.",
            example="/run/secrets/password",
        ),
    ] = None
    token_endpoint_url: Annotated[
        Url | None,
        key(
            "OAUTHBEARER with tokens from an issuer: its token endpoint.",
            example="https://login.example.com/oauth2/token",
        ),
    ] = None
    client_id: Annotated[
        Name | None, key("OAUTHBEARER with tokens from an issuer: the client.", example="abers")
    ] = None
    client_secret_file: Annotated[
        File | None,
        key(
            "OAUTHBEARER with tokens from an issuer: a file with the secret of the client.",
            "Default: ABERS_KAFKA_CLIENT_SECRET in the environment.",
            example="/run/secrets/client_secret",
        ),
    ] = None
    scope: Annotated[
        Name | None,
        key(
            "OAUTHBEARER with tokens from an issuer: the scope, if the issuer wants one.",
            example="kafka",
        ),
    ] = None
    token_file: Annotated[
        File | None,
        key(
            "OAUTHBEARER with a token that others renew: its file.",
            "Default: ABERS_KAFKA_TOKEN in the environment.",
            example="/var/run/secrets/tokens/kafka",
        ),
    ] = None
    extensions: Annotated[
        Extensions | None,
        key(
            "OAUTHBEARER: SASL extensions that the brokers want.",
            example={"logicalCluster": "lkc-1", "identityPoolId": "pool-1"},
        ),
    ] = None
    aws_region: Annotated[
        Name | None, key("AWS_MSK_IAM: region of the cluster.", example="eu-west-1")
    ] = None
    kerberos_service_name: Annotated[
        Name, key("GSSAPI: name of the brokers' service, the first part of their principals.")
    ] = "kafka"

    @property
    def encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self.protocol.endswith("SSL")

    @property
    def by_password(self) -> bool:
        """Whether a user logs in with a password."""
        return self.mechanism in PASSWORD_MECHANISMS

    @property
    def by_token(self) -> bool:
        """Whether the process logs in with a token."""
        return self.mechanism in TOKEN_MECHANISMS

"""Tokens in the form that kafka-python asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.errors import KafkaConnectionError
from kafka.net.sasl.oauth import AbstractTokenProvider

from abers.exceptions import BrokerError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.tokens.provider import TokenProvider

__all__ = ["TokenAdapter"]


class TokenAdapter(AbstractTokenProvider):  # type: ignore[misc] # has no types
    """The tokens of a provider; without one the client treats the connection as lost."""

    def __init__(self, provider: TokenProvider, extensions: Mapping[str, str]) -> None:
        super().__init__()
        self.provider, self._extensions = provider, dict(extensions)

    def token(self) -> str:
        """Return a valid token."""
        try:
            return self.provider.token().value.reveal()
        except (BrokerError, ConfigError) as error:
            raise KafkaConnectionError(str(error)) from error

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions."""
        return self._extensions

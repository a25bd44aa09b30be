"""Tokens of Amazon MSK, signed with the AWS credentials of the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import BrokerError
from abers_connectors.extras import extra
from abers_connectors.secret import Secret
from abers_connectors.tokens.provider import Token

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["msk_token"]

_NEEDED_FOR = 'kafka.security.mechanism = "AWS_MSK_IAM"'


def msk_token(region: str) -> Token:
    """Sign a token for the clusters of a region; raise a BrokerError without credentials.

    The credentials are those that every program of AWS finds: variables, a profile, or the role of
    the machine or the pod.
    """
    signer = extra("aws_msk_iam_sasl_signer.MSKAuthTokenProvider", _NEEDED_FOR, "msk")
    botocore = extra("botocore.exceptions", _NEEDED_FOR, "msk")
    sign: Callable[[str], tuple[str, int]] = signer.generate_auth_token
    try:
        value, expires = sign(region)
    # Without any credentials the signer meets an AttributeError of None.
    except (botocore.BotoCoreError, botocore.ClientError, AttributeError, ValueError) as error:
        why = "the chain has none" if isinstance(error, AttributeError) else type(error).__name__
        msg = f"kafka.security.mechanism: no AWS credentials to sign a token with: {why}"
        raise BrokerError(msg) from None
    return Token(Secret(value, f"the credentials of AWS for {region}"), expires / 1000)

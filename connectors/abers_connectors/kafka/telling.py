"""What a client tells of the brokers' refusals, whichever client it is.

Governing rule: the sentence says what was being done, and what may be done about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.kafka.home import named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abers_connectors.kafka.transport import Partition

__all__ = ["fenced", "forbidden", "lost", "stuck"]


def fenced(doing: str, why: str) -> BrokerError:
    """Tell that another owner, or another one of us, has what was ours."""
    msg = (
        f"{doing}: another process took the place of this one ({why}); "
        "see that no two have the same kafka.instance"
    )
    return BrokerError(msg)


def forbidden(doing: str, why: str) -> ConfigError:
    """Tell that a permission is missing."""
    return ConfigError(
        [f"{doing}: a permission is missing ({why}); `abers check --connect` says which"]
    )


def lost(offsets: Mapping[Partition, int]) -> BrokerError:
    """Tell what is gone; whoever starts again sees how to go on (`losing`)."""
    places = ", ".join(named(one, offset) for one, offset in offsets.items())
    msg = f"{places}: the topic has no such offset; records were deleted before they were read"
    return BrokerError(msg)


def stuck(partition: Partition, position: int, end: int) -> BrokerError:
    """Tell that nothing comes although something is there."""
    msg = (
        f"{named(partition, position)}: nothing more comes, although there are "
        f"records before @{end}; a transaction of another process is open there"
    )
    return BrokerError(msg)

"""kafka-python behind the protocols of `transport`.

Governing rule: every call that waits for a broker is watched, and every error
of the client leaves as one of ours: a TransactionError where memory is to be
thrown away and read again, a BrokerError where the process had better end.
"""

from abers_connectors.kafka.client.group import Group
from abers_connectors.kafka.client.log import Log
from abers_connectors.kafka.client.transactions import Transactions

__all__ = ["Group", "Log", "Transactions"]

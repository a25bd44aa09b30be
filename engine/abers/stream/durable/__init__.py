"""A processor with its state in a folder: what it answered survives a crash.

`DurableProcessor` writes each batch of events to a journal before it returns their outputs, and
`Follower` reads along. Both need only files.
"""

from abers.stream.durable.follower import Follower
from abers.stream.durable.processor import DurableProcessor

__all__ = ["DurableProcessor", "Follower"]

"""A processor with its state in a folder: what it answered survives a crash.

`DurableProcessor` writes each batch of events to a journal before it returns their outputs, and
`Follower` reads along. Both need only files.
"""

from abers.stream.durable.processor import DurableProcessor
from abers.stream.durable.restore import Follower

__all__ = ["DurableProcessor", "Follower"]

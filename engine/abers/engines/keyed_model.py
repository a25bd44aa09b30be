"""Models in the keyed state of an engine, such as Spark or Flink.

The state of a model is a head, a snapshot in chunks, and the journal entries behind it. A step adds
an entry, and now and then a snapshot takes the place of all entries. So a step writes what it adds.

A worker keeps the processors of its last models. An engine may undo a step, or move a model to
another worker and back. So a processor is used again only if it is at the token of the head, a hash
chain over all entries of the model: equal tokens mean equal events.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

import msgspec

from abers.engines.model_stream import of_one_model
from abers.exceptions import StateError
from abers.serialization import REMEDY
from abers.stream.durable.restore import RestoreOptions
from abers.stream.journal import JournalEntry
from abers.stream.settings import Settings
from abers.validation import count, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers.stream.columns import Events
    from abers.stream.events import Event
    from abers.stream.outputs import Outputs
    from abers.stream.processor import Processor

__all__ = ["KeyedModel", "KeyedState"]

_FORMAT = 1
_TOKEN = 16  # bytes
_CHUNK = 1 << 18  # bytes: engines are slow with larger values
_HEAD = "head"


class KeyedState(Protocol):
    """The state of one model in an engine: bytes by name, which the engine saves and moves."""

    def get(self, name: str, /) -> bytes | None:
        """Return what was put under a name; None if there is nothing."""

    def put(self, name: str, value: bytes, /) -> None:
        """Put bytes in the place of what a name has."""

    def remove(self, name: str, /) -> None:
        """Remove what a name has."""


class _Head(msgspec.Struct, array_like=True):
    format: int = _FORMAT
    token: bytes = b""
    before: bytes = b""  # token of the snapshot
    chunks: int = 0  # of the snapshot
    first: int = 0  # number of the first entry behind the snapshot
    entries: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode_entry = msgspec.msgpack.Decoder(JournalEntry).decode
_decode_head = msgspec.msgpack.Decoder(_Head).decode


class KeyedModel:
    """Calibrate the models of an engine, and keep their states in its keyed state.

    Parameters
    ----------
    settings
        The task, the calibrators and the limits, which are for each model by itself.
    every
        Number of steps of a model from one snapshot to the next. Reading a model again takes a
        snapshot and at most so many entries.
    cached
        Number of processors of models that this worker keeps.
    trusted_types
        If given, skops saves learners, as of `abers.stream.Processor`; otherwise name no learner.

    Notes
    -----
    A pickle has the parameters alone. In a process all its copies are one, which keeps the
    processors from one task of the engine to the next.

    **Guarantee.** If the engine restores its state to where it was after some step, and repeats the
    events from there, the outputs of a model are those of a `Processor` that took its events once,
    bit for bit.

    Examples
    --------
    >>> from abers.stream import Label, Observation
    >>> class Memory(dict):
    ...     put, remove = dict.__setitem__, dict.__delitem__
    >>> models, state = KeyedModel(), Memory()
    >>> for event in [Observation("a", 1, score=0.5), Label("a", 2, value=1)]:
    ...     outputs = models.step("fraud", state, [event])
    >>> another_worker = KeyedModel()
    >>> outputs = another_worker.step("fraud", state, [Observation("b", 3, score=0.5)])
    >>> outputs.predictions[0].n_labels
    1
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        every: int = 50,
        cached: int = 1_000,
        trusted_types: Sequence[str] | None = None,
    ) -> None:
        own = of_one_model(settings or Settings())
        trusted = None if trusted_types is None else tuple(trusted_types)
        self._options = RestoreOptions(own, None, None, trusted)
        self._every, self._cached = count(every, "every", 1), count(cached, "cached", 1)
        self._kept: OrderedDict[str, tuple[bytes, Processor]] = OrderedDict()

    def __reduce__(self) -> tuple[Callable[..., KeyedModel], tuple[object, ...]]:
        """Pickle and copy the parameters."""
        given = self._options.settings, self._every, self._cached, self._options.trusted_types
        return _of_process, given

    def step(self, name: str, state: KeyedState, events: Events | list[Event]) -> Outputs:
        """Process events of a model, and write them to its state.

        Parameters
        ----------
        name
            Key of the state in the engine.
        state
            What the engine has under this key.
        events
            The next events, in their order.

        Returns
        -------
        Outputs
            As of `abers.stream.Processor.process_logged`.

        Raises
        ------
        StateError
            If the state is damaged, incomplete, or of other settings; nothing is written then.
        ParameterError
            If these are no events; nothing is written then.
        """
        head = _head(name, state)
        token, processor = self._kept.pop(name, (b"", None))
        if processor is None or token != head.token:
            processor = self._restored(name, state, head)
        outputs, entry = processor.process_logged(events)
        body = _encode(entry)
        head.token = _next(head.token, body)
        state.put(f"entry-{head.first + head.entries}", body)
        head.entries += 1
        if head.entries >= self._every:
            self._compact(state, head, processor)
        state.put(_HEAD, _encode(head))
        self._keep(name, head.token, processor)
        return outputs

    def _keep(self, name: str, token: bytes, processor: Processor) -> None:
        self._kept[name] = token, processor
        if len(self._kept) > self._cached:
            self._kept.popitem(last=False)

    def _restored(self, name: str, state: KeyedState, head: _Head) -> Processor:
        """Return the processor of a state."""
        try:
            snapshot = b"".join(_parts(state, "snapshot", range(head.chunks)))
            processor = self._options.restore(snapshot) if head.chunks else self._options.new()
            processor.apply_many(_entries(state, head))
        except StateError as error:
            msg = f"the state of {shown(name)} cannot be used: {error}"
            raise type(error)(msg) from None
        return processor

    def _compact(self, state: KeyedState, head: _Head, processor: Processor) -> None:
        """Let a snapshot take the place of all entries."""
        blob = processor.snapshot()
        chunks = range(0, len(blob), _CHUNK)
        for part, start in enumerate(chunks):
            state.put(f"snapshot-{part}", blob[start : start + _CHUNK])
        for part in range(len(chunks), head.chunks):
            state.remove(f"snapshot-{part}")
        for number in range(head.first, head.first + head.entries):
            state.remove(f"entry-{number}")
        head.before, head.chunks = head.token, len(chunks)
        head.first, head.entries = head.first + head.entries, 0


@cache
def _of_process(
    settings: Settings, every: int, cached: int, trusted_types: tuple[str, ...] | None
) -> KeyedModel:
    """Return what has these parameters in this process."""
    return KeyedModel(settings, every=every, cached=cached, trusted_types=trusted_types)


def _head(name: str, state: KeyedState) -> _Head:
    """Return the head of a state, or a new one."""
    given = state.get(_HEAD)
    if given is None:
        return _Head()
    try:
        head = _decode_head(given)
    except msgspec.MsgspecError as error:
        msg = f"the state of {shown(name)} is garbled ({error}); {REMEDY}"
        raise StateError(msg) from None
    if head.format != _FORMAT:
        msg = (
            f"the state of {shown(name)} is of format {head.format}, and this abers reads format "
            f"{_FORMAT}; go on with the version of abers that wrote it"
        )
        raise StateError(msg)
    return head


def _entries(state: KeyedState, head: _Head) -> Iterator[JournalEntry]:
    """Yield the entries behind the snapshot, and see that they lead to the token of the head."""
    token = head.before
    for body in _parts(state, "entry", range(head.first, head.first + head.entries)):
        token = _next(token, body)
        try:
            yield _decode_entry(body)
        except (msgspec.MsgspecError, ValueError) as error:
            msg = f"an entry is garbled ({error}); {REMEDY}"
            raise StateError(msg) from None
    if token != head.token:
        msg = f"its entries are not those that its head names; {REMEDY}"
        raise StateError(msg)


def _parts(state: KeyedState, kind: str, numbers: range) -> Iterator[bytes]:
    """Yield the bytes of each number."""
    for number in numbers:
        if (found := state.get(f"{kind}-{number}")) is None:
            msg = f"{kind}-{number} is missing; {REMEDY}"
            raise StateError(msg)
        yield found


def _next(token: bytes, body: bytes) -> bytes:
    """Return the token behind an entry."""
    return blake2b(token + body, digest_size=_TOKEN).digest()

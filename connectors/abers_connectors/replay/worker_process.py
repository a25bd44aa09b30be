"""A worker of a replay: a process with a processor of its own.

Parent and worker exchange pickles over a pipe that no other process has. A worker ends when its
parent closes the pipe, or is gone.
"""

from __future__ import annotations

import pickle
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_all_start_methods, get_context
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from abers.stream import Processor

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerContext, SpawnContext

    from abers.stream import Events, Outputs, Settings
    from abers.stream.option import Front

__all__ = ["FinalState", "Processed", "ProcessorOptions", "WorkerEndError", "WorkerProcess"]

_PROTOCOL = 5  # its pickles hold arrays as they are
_PATIENCE = 5.0  # seconds for a worker to end


class WorkerEndError(Exception):
    """A worker ended before it answered; the message says how."""


class ProcessorOptions(TypedDict):
    """What a processor has besides its settings."""

    outcomes: bool
    front: Front  # where its user writes options


class Processed(NamedTuple):
    """What a worker made of a batch."""

    outputs: Outputs  # without the settled batch
    keys: int  # models and segments that the worker has


class FinalState(NamedTuple):
    """The state of a worker at the end."""

    snapshot: bytes
    seconds: float  # of processor time


class WorkerProcess:
    """A process that is started at once, and the thread that talks to it.

    Parameters
    ----------
    settings, options
        Those of the processor.
    key
        Seals the final state; see `Processor.snapshot`.
    """

    def __init__(self, settings: Settings, key: bytes, options: ProcessorOptions) -> None:
        context = _context()
        self._connection, own = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(own, settings, key, options), daemon=True
        )
        self._process.start()
        own.close()
        self._thread = ThreadPoolExecutor(1, "worker")

    @property
    def pid(self) -> int | None:
        """Number of the process."""
        return self._process.pid

    def process(self, events: Events) -> Future[bytes]:
        """Let the worker process a batch; `answer` reads the result."""
        return self._thread.submit(self._ask, pickle.dumps(events, _PROTOCOL))

    def finish(self) -> Future[bytes]:
        """Let the worker return its `FinalState`."""
        return self._thread.submit(self._ask, pickle.dumps(None, _PROTOCOL))

    def answer(self, future: Future[bytes]) -> Any:  # noqa: ANN401 - as the request has it
        """Wait for an answer.

        Raises
        ------
        WorkerEndError
            If the process ended, or ran out of memory.
        Exception
            What else the worker raised.
        """
        try:
            found = pickle.loads(future.result())  # noqa: S301 - of our own process
        except (EOFError, OSError):
            raise WorkerEndError(self._end()) from None
        if isinstance(found, MemoryError):
            msg = "ran out of memory"
            raise WorkerEndError(msg) from None
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self._thread.shutdown(cancel_futures=True)
        self._connection.close()

    def _ask(self, request: bytes) -> bytes:
        self._connection.send_bytes(request)
        return self._connection.recv_bytes()

    def _end(self) -> str:
        self._process.join(_PATIENCE)
        code = self._process.exitcode
        if code is None or code >= 0:
            return f"ended with code {code}"
        found = signal.Signals(-code)
        # The kernel ends the process that takes most memory in this way.
        why = ", perhaps for lack of memory" if found == signal.SIGKILL else ""
        return f"was ended by {found.name}{why}"


def _context() -> ForkServerContext | SpawnContext:
    """Return what starts workers; a fork would copy several threads, and only one goes on."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    # A server that has imported this module forks the workers: each import would take longer.
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _serve(
    connection: Connection, settings: Settings, key: bytes, options: ProcessorOptions
) -> None:
    """Answer requests until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, which ends this
    processor = Processor(settings, **options)
    with suppress(EOFError, OSError):
        while True:
            request = pickle.loads(connection.recv_bytes())  # noqa: S301 - of our parent
            try:
                answer = pickle.dumps(_answer(processor, request, key), _PROTOCOL)
            except Exception as error:  # noqa: BLE001 - the parent raises it
                answer = _encoded(error)
            connection.send_bytes(answer)


def _answer(processor: Processor, events: Events | None, key: bytes) -> Processed | FinalState:
    if events is None:
        # No event follows, and the ids are most of the state of a long stream.
        pieces = processor.snapshot_pieces(key=key, finished_ids=False)
        return FinalState(b"".join(pieces), process_time())
    outputs = processor.process_batch(events)._replace(settled_batch=None)
    return Processed(outputs, len(processor.keys))


def _encoded(error: Exception) -> bytes:
    """Return an error as the parent can read it."""
    try:
        found = pickle.dumps(error, _PROTOCOL)
        pickle.loads(found)  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - anything an error's class does
        return pickle.dumps(RuntimeError(repr(error)), _PROTOCOL)
    return found

"""Workers as processes, and their supervisor."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.connectors.kafka.brokers import PATIENCE

from abers_connectors.errors import FAILURE, UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.connectors.kafka.chaos.application import Application

__all__ = ["Supervisor", "Worker"]

# Exits after which a supervisor starts a worker again.
_AGAIN = {FAILURE, UNAVAILABLE, -signal.SIGKILL}
_URL = re.compile(rb"http://[\d.:]+")
_STARTED = b"health, metrics and the live page at"  # said by a process that can stop in order


class Worker:
    """A process that serves, started again when it is killed or asks for it.

    Parameters
    ----------
    application, instance
        The application, and the group instance id.
    python
        The interpreter of the environment with abers: this one unless given.
    module
        The module that is run: the command unless given.
    words
        More words of the command line.
    kafka
        Further keys of its section [kafka].

    Attributes
    ----------
    exits
        Codes with which it ended, in order.
    words
        As given; the next start has what is set here.
    """

    def __init__(
        self,
        application: Application,
        instance: str,
        *,
        python: str = sys.executable,
        module: str = "abers_connectors",
        words: Sequence[str] = (),
        **kafka: object,
    ) -> None:
        """Start it."""
        self.instance, self._command = instance, [python, "-m", module]
        self._config = application.written(instance, **kafka)
        self.words = words
        self.log: Path = application.folder / f"worker-{instance}.log"
        self.exits: list[int] = []
        self.wanted = True
        self.start()

    def start(self) -> None:
        """Start the process."""
        with self.log.open("ab") as log:
            self._before = log.tell()
            self.process = subprocess.Popen(
                [*self._command, "run", self._config, *self.words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    def ready(self, code: int = 200, within: float = PATIENCE) -> None:
        """Wait until /readyz answers with a code, while the process runs."""
        deadline = time.monotonic() + within
        while self.readyz() != code:
            assert self.process.poll() is None, self.said()[-2_000:]
            assert time.monotonic() < deadline, self.said()[-2_000:]
            time.sleep(0.05)

    def readyz(self) -> int | None:
        """Return the code that /readyz answers with, None if it does not answer."""
        found = _URL.search(self.log.read_bytes()[self._before :])
        if found is None:
            return None
        try:
            with urlopen(f"{found[0].decode()}/readyz", timeout=10) as answer:  # noqa: S310 - ours
                return int(answer.status)
        except HTTPError as error:
            return error.code
        except OSError:  # the process ends
            return None

    def started(self) -> bool:
        """Return whether the process has loaded: before, it ends as interrupted if stopped."""
        return _STARTED in self.log.read_bytes()[self._before :]

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill the process, as a power failure does."""
        self.send(signal.SIGKILL)

    def stop(self, within: float = PATIENCE) -> float:
        """Stop the process in order, and return the seconds taken; it is not restarted."""
        self.wanted = False
        began = time.monotonic()
        self.send(signal.SIGCONT)
        self.process.terminate()
        self.ended(within)
        return time.monotonic() - began

    def ended(self, within: float = PATIENCE) -> int:
        """Wait until the process ends, and return its code."""
        code = self.process.wait(within)
        if not self.wanted:
            self.exits.append(code)
        return code

    def tend(self) -> None:
        """Restart the process if it ended and should not have."""
        code = self.process.poll()
        if code is None or not self.wanted:
            return
        self.exits.append(code)
        if code in _AGAIN:
            self.start()
        else:
            self.wanted = False

    def said(self) -> str:
        """Return the log of the process."""
        return self.log.read_text(errors="replace")


class Supervisor:
    """Restarts workers in a thread of its own, as a service manager would."""

    def __init__(self, application: Application) -> None:
        """Start tending."""
        self.application = application
        self.workers: dict[str, Worker] = {}
        self.retired: list[Worker] = []
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._tend, daemon=True)
        self._thread.start()

    def add(self, instance: str, **more: Any) -> Worker:  # noqa: ANN401 - of a worker
        """Start a worker."""
        worker = Worker(self.application, instance, **more)
        with self._lock:
            self.workers[instance] = worker
        return worker

    def retire(self, instance: str) -> float:
        """Stop a worker finally once it has started, and return the seconds taken."""
        deadline = time.monotonic() + PATIENCE
        while True:
            with self._lock:  # nobody starts it again now
                worker = self.workers[instance]
                if worker.started():
                    self.retired.append(self.workers.pop(instance))
                    worker.wanted = False
                    break
            self.require_all()
            assert time.monotonic() < deadline, worker.said()[-2_000:]
            time.sleep(0.05)
        return worker.stop()

    def require_all(self) -> None:
        """Assert that no worker has ended finally, or show its last log lines."""
        with self._lock:
            gone = [one for one in self.workers.values() if not one.wanted]
        assert not gone, [(one.instance, one.exits, one.said()[-2_000:]) for one in gone]

    def close(self) -> None:
        """End all processes."""
        self._ended.set()
        self._thread.join()
        for worker in [*self.workers.values(), *self.retired]:
            worker.wanted = False
            if worker.process.poll() is None:
                worker.kill()
            worker.process.wait()

    def _tend(self) -> None:
        while not self._ended.wait(0.05):
            with self._lock:
                for worker in self.workers.values():
                    worker.tend()

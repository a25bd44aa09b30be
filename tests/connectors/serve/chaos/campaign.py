"""A campaign of faults while clients send, and the check of the result."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from tests.connectors.serve.chaos import served
from tests.connectors.serve.chaos.again import require_again
from tests.connectors.serve.chaos.clients import TOKENS, Clients
from tests.connectors.serve.chaos.disk import small_disk
from tests.connectors.serve.chaos.judge import followed, judge
from tests.connectors.serve.chaos.ledger import Ledger
from tests.connectors.serve.running import Running, command

from abers_connectors.errors import UNAVAILABLE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.connectors.serve.chaos.judge import CheckResult

__all__ = ["Campaign"]

_ENVIRON = {f"ABERS_{kind.upper()}_TOKEN": token for kind, token in TOKENS.items()}
_CLOCKS = (0, 0, -3_600, -86_400)  # seconds
_PATIENCE, _TURN = 120.0, 0.02  # seconds
_ROOM = 4 << 20  # bytes
_MOST = 200  # answers between two faults


class Campaign:
    """Servers of one state, one after the other, and the clients that they have.

    Parameters
    ----------
    folder
        An empty folder.
    seed
        Of the clients, and of the faults.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.ledger, self.folder = Ledger(), folder
        self.state, self._kept = folder / "state", folder / "kept"
        self._kept.mkdir()
        self._config = folder / "serve.toml"
        self._config.write_text("[task]\nscores = 'probability'\n")
        self._chance = random.Random(seed)  # noqa: S311 - of a test
        self._port, self._clock = "0", 0
        with self._started() as first:
            self._port = str(first.address.port)
            self._terminate(first)
        self._clients = Clients(seed, int(self._port), self.ledger)

    # Faults

    def kill(self) -> None:
        """Kill a server that answers."""
        with self._started() as running:
            self._answers(running, self._chance.randrange(_MOST))
            running.process.kill()
            self._end(running, -9)
        self.ledger.done["kills"] += 1

    def kill_early(self) -> None:
        """Kill a server that starts: it loads its modules, or restores the state."""
        words = command(self.state, str(self._config), port=self._port, program=self._program())
        process = subprocess.Popen(words, env=os.environ | _ENVIRON, stderr=subprocess.DEVNULL)
        threading.Event().wait(1.5 * self._chance.random())
        process.kill()
        process.wait()
        self.ledger.done["kills"] += 1

    def terminate(self) -> None:
        """End a server that answers."""
        with self._started() as running:
            self._answers(running, self._chance.randrange(_MOST))
            self._terminate(running)

    def second(self) -> None:
        """Start a second server of the same state, which ends, and the first goes on."""
        with self._started() as running, self._started("0") as other:
            self._end(other, UNAVAILABLE)
            assert "writes there" in "".join(other.said)
            self._answers(running, _MOST)
            self._terminate(running)
        self.ledger.done["second servers"] += 1

    def set_clock(self) -> None:
        """Let the next servers have another clock."""
        before, self._clock = self._clock, self._chance.choice(_CLOCKS)
        self.ledger.done["clocks set back"] += self._clock < before

    def fill_disk(self) -> None:
        """Copy the state to a small disk, let that be full, and go on when it has room."""
        used = sum(file.stat().st_size for file in self.state.iterdir())
        with small_disk(self.folder / "small", used + _ROOM) as disk:
            if disk is None:
                self.ledger.done["disks that could not be mounted"] += 1
                return
            home, self.state = self.state, disk.path / "state"
            shutil.copytree(home, self.state)
            with self._started() as running:
                self._answers(running, _MOST)
                disk.fill()
                self._end(running, UNAVAILABLE)
            with self._started() as full:
                self._end(full, UNAVAILABLE)
            disk.free()
            self.terminate()
            shutil.rmtree(home)
            shutil.copytree(self.state, home)
            self.state = home
        self.ledger.done["disks full"] += 1

    # The end

    def checked(self) -> CheckResult:
        """Let the clients end, ask all again, and return what is found."""
        before = followed(self.state, self._config).accounts
        with self._started() as running:
            self._clients.stop()
            require_again(running, self.state, self._config, self.ledger, before)
            self._terminate(running)
        served.keep(self.state, self._kept)
        return judge(self.state, self._kept, self._config, self.ledger)

    # Servers

    def _program(self) -> tuple[str, ...]:
        return served.__name__, str(self._kept), str(self._clock)

    def _started(self, port: str | None = None) -> Running:
        """Start a server, and wait until it is ready, or has ended."""
        port = self._port if port is None else port
        return Running(
            self.state, str(self._config), environ=_ENVIRON, port=port, program=self._program()
        )

    def _answers(self, running: Running, count: int) -> None:
        """Wait until the clients have so many more answers."""
        goal, end = self._answered() + count, time.monotonic() + _PATIENCE
        while self._answered() < goal:
            self._clients.look()
            assert running.process.poll() is None, running.ended()
            assert time.monotonic() < end, running.said
            threading.Event().wait(_TURN)

    def _answered(self) -> int:
        return self.ledger.done["predictions answered"] + self.ledger.done["labels answered"]

    def _terminate(self, running: Running) -> None:
        running.process.terminate()
        self._end(running, 0)

    def _end(self, running: Running, code: int) -> None:
        """Require how a server ends."""
        assert running.ended() == code, running.said
        assert "Traceback" not in "".join(running.said), running.said

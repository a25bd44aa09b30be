"""A client of `abers serve` for a day, which sends again until it is answered."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.connectors.serve.chaos.ledger import Ledger
from tests.connectors.serve.running import JSON, Running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Server", "Visitor"]

_PAUSE, _TIMEOUT, _BEFORE = 0.1, 30.0, 5.0  # seconds
_MODELS = 10
_TROUBLE = 500  # the first status that is the server's fault


class Server:
    """`abers serve` at one port, which is started again after planned stops.

    Attributes
    ----------
    planned
        Begin and end of each planned stop, as seconds of the monotonic clock.
    said
        Its log.
    """

    def __init__(self, folder: Path, port: int) -> None:
        """Start it."""
        self.state, self.port = folder / "served", port
        self.config = folder / "serve.toml"
        self.config.write_text('[task]\nscores = "probability"\n')
        self.planned: list[tuple[float, float]] = []
        self.said: list[str] = []
        self.running = self._started()

    def restart(self) -> None:
        """Stop it in order, and start it again."""
        began = time.monotonic()
        self.stop()
        self.running = self._started()
        self.planned.append((began, time.monotonic()))

    def stop(self) -> None:
        """Stop it in order."""
        assert self.running.terminate() == 0, self.running.said
        self.said += self.running.said

    def _started(self) -> Running:
        return Running(self.state, str(self.config), port=str(self.port))


class _Answer(NamedTuple):
    """When a request was sent, and its status; None if no answer came."""

    at: float
    status: int | None


class Visitor:
    """Asks for predictions, and sends their labels a while later, in a thread.

    Attributes
    ----------
    ledger
        What was answered.
    answers
        All answers.
    """

    def __init__(self, server: Server, seed: int) -> None:
        self.ledger = Ledger()
        self.answers: list[_Answer] = []
        self._server = server
        self._random = Random(seed)  # noqa: S311 - not for secrets
        self._number = 0
        self._ended = threading.Event()
        self._failed: list[BaseException] = []

    @contextmanager
    def visiting(self) -> Iterator[None]:
        """Send requests in a `with` block."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
        if self._failed:
            raise self._failed[0]

    def _run(self) -> None:
        try:
            waiting: list[list[dict[str, Any]]] = []
            while not self._ended.wait(_PAUSE):
                waiting.append(self._predict(self._rows()))
                if len(waiting) > self._random.randrange(20):
                    self._label(waiting.pop(0))
            for rows in waiting:
                self._label(rows)
        except BaseException as error:  # noqa: BLE001 - raised by `visiting`
            self._failed.append(error)

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for _ in range(self._random.choice((1, 1, 5))):
            self._number += 1
            score = round(self._random.random(), 4)
            model = f"shop-{self._random.randrange(_MODELS)}"
            rows.append({"id": f"v{self._number}", "model": model, "score": score})
        return rows

    def _predict(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.ledger.predictions(rows, self._asked("/v1/predict", rows))
        return rows

    def _label(self, rows: list[dict[str, Any]]) -> None:
        labels = [
            {"id": one["id"], "model": one["model"], "label": _label_of(one["score"])}
            for one in rows
        ]
        self.ledger.labels(labels, self._asked("/v1/labels", labels))

    def _asked(self, path: str, rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - as JSON has it
        """Send rows until they are answered."""
        body = json.dumps(rows)
        while True:
            began = time.monotonic()
            status, answer = self._tried(path, body)
            self.answers.append(_Answer(began, status))
            if status == http.client.OK:
                return answer
            assert status is None or status >= _TROUBLE, (status, answer)
            time.sleep(_PAUSE)

    def _tried(self, path: str, body: str) -> tuple[int | None, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=_TIMEOUT)
        try:
            connection.request("POST", path, body, JSON)
            found = connection.getresponse()
            return found.status, json.loads(found.read())
        except (OSError, http.client.HTTPException):
            return None, None
        finally:
            connection.close()

    # The end

    def unplanned(self) -> list[_Answer]:
        """Return what failed outside of planned stops."""
        planned = self._server.planned
        return [
            one
            for one in self.answers
            if one.status != http.client.OK
            and not any(begin - _BEFORE < one.at < end for begin, end in planned)
        ]

    def statuses(self) -> Counter[int | None]:
        """Return how often each status came."""
        return Counter(one.status for one in self.answers)


def _label_of(score: float) -> int:
    """Return a label, the same for the same score, which is 1 about as often as the score says."""
    return int(round(10_000 * score) * 7_919 % 1_000 < 1_000 * score)

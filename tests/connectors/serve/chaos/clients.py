"""Clients of `abers serve` that repeat what is not answered, and do much that they should not."""

from __future__ import annotations

import asyncio
import json
import random
import time
from threading import Thread
from typing import TYPE_CHECKING, Any

from tests.connectors.serve.chaos.connection import Connection, request

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tests.connectors.serve.chaos.connection import Answer
    from tests.connectors.serve.chaos.ledger import Ledger

__all__ = ["CLIENTS", "TOKENS", "Clients"]

CLIENTS = 16
TOKENS = {"predict": "p" * 32, "label": "l" * 32, "http": "r" * 32}
_MODELS = ("first", "second", "third/part")
_PATHS = {"predict": "/v1/predict", "label": "/v1/labels"}
_PAUSE = 0.05  # seconds between requests, also while the server is away
_DAY = 86_400_000  # milliseconds
_NONSENSE: tuple[tuple[bytes, dict[str, Any], int], ...] = (
    (b"{", {}, 400),
    (b"7", {}, 400),
    (b"\xff\xfe\x00", {}, 400),
    (b"[" * 100_000, {}, 400),
    (b"[" + b"7," * 10_000 + b"7]", {}, 413),
    (b"[]", {"kind": "text/plain"}, 415),
    (b"[]", {"length": 5 << 20}, 413),
    (b"[]", {"token": "x" * 32}, 401),
    (b"[]", {"token": ""}, 401),
)


class Client:
    """A client with keys of its own, which sends one request after the other."""

    def __init__(self, number: int, seed: int, port: int, ledger: Ledger) -> None:
        self._number, self._port, self._ledger = number, port, ledger
        self._chance = random.Random(f"{seed}-{number}")  # noqa: S311 - of a test
        self._connection, self._count = Connection(port), 0
        self._now = time.time_ns() // 1_000_000
        self.stopped = False

    async def run(self) -> None:
        """Send until it is stopped; what was begun is answered."""
        rude = (self._cut, self._nonsense, self._bad_rows, self._no_request)
        while not self.stopped:
            await asyncio.sleep(_PAUSE)
            await self._rows()
            if self._chance.random() < 0.3:
                await self._through(self._chance.choice(rude))
        self._connection.leave()

    # What must be answered

    async def _rows(self) -> None:
        """Send observations and their labels, at times the labels first, or twice."""
        rows = self._new(self._chance.choice((1, 1, 1, 3, 20)))
        labels = [_labelled(row) for row in rows]
        steps: list[Callable[[], Coroutine[Any, Any, None]]] = [
            lambda: self._predict(rows),
            lambda: self._label(labels),
        ]
        if self._chance.random() < 0.2:
            steps.reverse()
            self._ledger.done["requests of labels before their predictions"] += 1
        for step in steps:
            await step()
            if self._chance.random() < 0.2:
                await step()
        if self._chance.random() < 0.1:
            await self._conflict(labels)

    async def _predict(self, rows: list[dict[str, Any]]) -> None:
        self._ledger.sent.update((row["model"], row["id"]) for row in rows)
        if self._chance.random() < 0.1:
            await asyncio.gather(*(self._predicted(rows, Connection(self._port)) for _ in "ab"))
        else:
            await self._predicted(rows, self._connection)

    async def _predicted(self, rows: list[dict[str, Any]], connection: Connection) -> None:
        self._ledger.predictions(rows, await self._answered("predict", rows, connection))
        if connection is not self._connection:
            connection.leave()

    async def _label(self, labels: list[dict[str, Any]]) -> None:
        self._ledger.sent.update((row["model"], row["id"]) for row in labels)
        self._ledger.labels(labels, await self._answered("label", labels, self._connection))

    async def _conflict(self, labels: list[dict[str, Any]]) -> None:
        """Send other labels of observations that have theirs."""
        others = [row | {"label": 1 - row["label"]} for row in labels]
        found = await self._answered("label", others, self._connection)
        assert {one["status"] for one in found} == {"conflict"}, found
        self._ledger.done["conflicts"] += len(others)

    async def _answered(
        self, kind: str, rows: list[dict[str, Any]], connection: Connection
    ) -> list[dict[str, Any]]:
        """Send rows until they are answered; at times leave before the answer is read."""
        data = request(_PATHS[kind], json.dumps(rows).encode(), TOKENS[kind])
        while True:
            try:
                if self._chance.random() < 0.1:
                    await self._left(data, connection)
                answer = await connection.ask(data)
            except OSError:
                self._ledger.done["tries without an answer"] += 1
                await asyncio.sleep(_PAUSE)
                continue
            if answer.status == 200:
                return list(answer.json)
            assert answer.status in {429, 503}, answer
            await asyncio.sleep(_PAUSE)

    async def _left(self, data: bytes, connection: Connection) -> None:
        """Send a request, and leave before its answer, or in the middle of it."""
        reader = await connection.send(data)
        if self._chance.random() < 0.5:
            await reader.read(self._chance.randrange(1, 40))
        connection.leave()
        self._ledger.done["answers not read"] += 1

    # What must be refused

    async def _cut(self) -> None:
        """Leave in the middle of a request."""
        body = json.dumps(self._refused(self._new(3))).encode()
        kind = self._chance.choice([*_PATHS])
        data = request(_PATHS[kind], body, TOKENS[kind])
        await self._connection.send(data[: -self._chance.randrange(1, len(body))])
        self._connection.leave()
        self._ledger.done["requests cut"] += 1

    async def _nonsense(self) -> None:
        """Send something other than a list of rows, or no token."""
        body, given, status = self._chance.choice(_NONSENSE)
        kind = self._chance.choice([*_PATHS])
        if body == b"[]":
            body = json.dumps(self._refused(self._new(2))).encode()
        given = {"token": TOKENS[kind]} | given
        await self._require(request(_PATHS[kind], body, **given), status)

    async def _bad_rows(self) -> None:
        """Send rows that cannot be used, among those that can."""
        good, bad = self._new(2), self._refused(self._new(4))
        bad[0]["score"], bad[1]["colour"], bad[2]["time"] = "high", "red", 1 << 60
        bad[3] = {"score": 0.5}
        rows = [bad[0], good[0], *bad[1:], good[1], 7]
        self._ledger.sent.update((row["model"], row["id"]) for row in good)
        data = request(_PATHS["predict"], json.dumps(rows).encode(), TOKENS["predict"])
        answer = await self._connection.ask(data)
        if answer.status == 200:
            found = answer.json
            assert [at for at, one in enumerate(found) if "error" not in one] == [1, 5], found
            self._ledger.predictions(good, [found[1], found[5]])
            self._ledger.done["rows refused"] += len(rows) - len(good)

    async def _no_request(self) -> None:
        """Send bytes that are no request."""
        junk = self._chance.randbytes(self._chance.randrange(1, 2_000))
        connection = Connection(self._port)
        await connection.send(junk + b"\r\n\r\n")
        connection.leave()
        self._ledger.done["bytes that are no request"] += 1

    async def _require(self, data: bytes, status: int) -> None:
        answer: Answer = await self._connection.ask(data)
        assert answer.status in {status, 503}, (status, answer)
        self._ledger.done["requests refused"] += 1

    async def _through(self, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await act()
        except OSError:
            self._connection.leave()

    # Rows

    def _new(self, count: int) -> list[dict[str, Any]]:
        """Return rows of new ids; the times of some are behind those before them."""
        rows: list[dict[str, Any]] = []
        for _ in range(count):
            self._count += 1
            score = self._chance.randrange(64) / 64
            row = {"id": f"{self._number}-{self._count}", "score": score}
            row["model"] = self._chance.choice(_MODELS)
            if self._chance.random() < 0.2:
                row["time"] = self._now - self._chance.randrange(2 * _DAY, 3 * _DAY)
            rows.append(row)
        return rows

    def _refused(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self._ledger.refused.update((row["model"], row["id"]) for row in rows)
        return rows


def _labelled(row: dict[str, Any]) -> dict[str, Any]:
    """Return the label of a row: the same each time."""
    value = int(64 * row["score"] % 3 == 0)
    times = {"time": row["time"]} if "time" in row else {}
    return {"id": row["id"], "model": row["model"], "label": value, **times}


class Clients:
    """All clients, in a thread of their own."""

    def __init__(self, seed: int, port: int, ledger: Ledger) -> None:
        self._all = [Client(number, seed, port, ledger) for number in range(CLIENTS)]
        self._failed: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        async def every() -> None:
            async with asyncio.TaskGroup() as group:
                for one in self._all:
                    group.create_task(one.run())

        try:
            asyncio.run(every())
        except BaseException as error:  # noqa: BLE001 - raised below
            self._failed = error

    def look(self) -> None:
        """Raise what a client has found to be wrong."""
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        """Let what was begun be answered, and end."""
        for one in self._all:
            one.stopped = True
        self._thread.join()
        self.look()

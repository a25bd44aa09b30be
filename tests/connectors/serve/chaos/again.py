"""Asking everything again: the same predictions, each label known, and accounts that close."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, TypeVar

from tests.connectors.serve.chaos.clients import TOKENS
from tests.connectors.serve.chaos.judge import followed
from tests.connectors.serve.running import JSON

if TYPE_CHECKING:
    from pathlib import Path

    from tests.connectors.serve.chaos.ledger import Key, Ledger
    from tests.connectors.serve.running import Running

__all__ = ["require_again"]

T = TypeVar("T")

_ROWS = 1_000  # of a request
_PATIENCE = 60.0  # seconds
_EVENTS = re.compile(r"^abers_events_total\{.*\} (\S+)$", re.MULTILINE)


def require_again(
    running: Running, state: Path, config: Path, ledger: Ledger, before: dict[str, int]
) -> None:
    """Require of a server without other clients that it knows all that was answered.

    Its accounts before it was started are those before.
    """
    for part in _parts(ledger.predicted):
        rows = [{"model": model, "id": id_, "score": 0.5} for (model, id_), _ in part]
        assert _asked(running, "predict", rows) == [made for _, made in part]
    for labels in _parts(ledger.labelled):
        for other, status in ((0, "duplicate"), (1, "conflict")):
            rows = [
                {"model": model, "id": id_, "label": value ^ other}
                for (model, id_), value in labels
            ]
            found = {one["status"] for one in _asked(running, "label", rows)}
            assert found == {status}, found
    _require_metrics(running, before, followed(state, config).accounts)


def _parts(answers: dict[Key, T]) -> list[list[tuple[Key, T]]]:
    every = [*answers.items()]
    return [every[start : start + _ROWS] for start in range(0, len(every), _ROWS)]


def _asked(running: Running, kind: str, rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401
    path = "/v1/predict" if kind == "predict" else "/v1/labels"
    reply = running.ask(path, rows, {**JSON, "authorization": f"Bearer {TOKENS[kind]}"})
    assert reply.status == 200, reply
    return reply.json


def _require_metrics(running: Running, before: dict[str, int], after: dict[str, int]) -> None:
    """Require that the metrics say, in time, how all events of this server ended, or wait."""
    end, waiting = time.monotonic() + _PATIENCE, "waiting_labels"
    ended = after["events"] - before["events"] - after[waiting] + before[waiting]
    while True:
        text = running.ask("/metrics").body.decode()
        assert 'abers_unbalanced_partitions{application="serve",process="0"} 0.0' in text
        if (found := sum(map(float, _EVENTS.findall(text)))) == ended:
            return
        assert time.monotonic() < end, (found, before, after)

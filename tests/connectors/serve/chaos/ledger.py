"""What clients were answered, by model and id, and what must have left no trace."""

from __future__ import annotations

from collections import Counter
from typing import Any

__all__ = ["Key", "Ledger"]

Key = tuple[str, str]
"""Model and id."""


class Ledger:
    """The answers that clients have; each contradiction of two answers is an error at once.

    Attributes
    ----------
    sent
        Keys that may be in the state.
    predicted
        Prediction by key, as it was answered.
    labelled
        Label by key, as it was answered that it is learned or waits.
    refused
        Keys that were in nothing but refused rows and requests, or in halves of requests.
    done
        Numbers of what the clients did.
    """

    def __init__(self) -> None:
        self.sent: set[Key] = set()
        self.predicted: dict[Key, dict[str, Any]] = {}
        self.labelled: dict[Key, int] = {}
        self.refused: set[Key] = set()
        self.done: Counter[str] = Counter()

    def predictions(self, rows: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
        """Note the answers to rows that ask for predictions."""
        for row, answer in zip(rows, answers, strict=True):
            assert "error" not in answer, answer
            assert self.predicted.setdefault(_key(row), answer) == answer
            self.done["predictions answered"] += 1

    def labels(self, rows: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
        """Note the answers to rows that bring labels, the first of their ids or the same again."""
        for row, answer in zip(rows, answers, strict=True):
            assert answer.get("status") in {"learned", "waiting", "duplicate"}, (row, answer)
            assert self.labelled.setdefault(_key(row), row["label"]) == row["label"]
            self.done["labels answered"] += 1


def _key(row: dict[str, Any]) -> Key:
    return row["model"], row["id"]

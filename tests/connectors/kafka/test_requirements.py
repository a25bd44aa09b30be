"""What must be installed for a service, told before it starts."""

from __future__ import annotations

import sys

import pytest

from abers_connectors.config import Config, Http, Kafka
from abers_connectors.kafka.requirements import lacking

KAFKA = Kafka(bootstrap=("a:1",), observations="i", predictions="o")


def test_nothing_is_lacking() -> None:
    """With everything installed there is nothing to tell."""
    assert list(lacking(Config(kafka=KAFKA))) == []


@pytest.mark.parametrize(
    ("module", "group"), [("kafka", "kafka"), ("snappy", "kafka"), ("uvicorn", "http")]
)
def test_what_is_lacking(module: str, group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each library that is missing is told with the command that installs it."""
    line = f"{group}: a section [{group}] needs {module}, which is not installed; "
    line += f"run: pip install 'abers[{group}]'"
    monkeypatch.setitem(sys.modules, module, None)
    assert list(lacking(Config(kafka=KAFKA))) == [line]
    without = Config(kafka=KAFKA, http=Http(enabled=False))
    assert list(lacking(without)) == ([] if module == "uvicorn" else [line])

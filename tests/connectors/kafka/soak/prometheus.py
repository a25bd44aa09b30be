"""A Prometheus with the rules of the service, whose durations are divided by one number."""

from __future__ import annotations

import json
import re
import subprocess
import time
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from ruamel.yaml import YAML
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.soak.bucket import free_port

from abers_connectors.metrics.alert_rules import alert_rules

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Prometheus", "scaled"]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"(\d+)([smhd])")
_RANGE = re.compile(r"\[[^]]*]")


def scaled(rules: str, factor: float) -> str:
    """Divide the durations of rules by a number: each `for`, window and step of a subquery."""

    def shorter(found: re.Match[str]) -> str:
        return f"{round(1000 * int(found[1]) * _SECONDS[found[2]] / factor)}ms"

    whole = YAML(typ="safe").load(rules)
    for group in whole["groups"]:
        for rule in group["rules"]:
            rule["expr"] = _RANGE.sub(lambda one: _DURATION.sub(shorter, one.group()), rule["expr"])
            if "for" in rule:
                rule["for"] = _DURATION.sub(shorter, rule["for"])
    return json.dumps(whole)  # which is YAML, too


class Prometheus:
    """A process that scrapes some ports and evaluates the rules.

    Parameters
    ----------
    folder
        Folder of its storage.
    ports
        Ports of the processes of the service.
    factor
        Number by which the durations of the rules are divided.
    step
        Seconds between two scrapes, and between two evaluations.
    """

    def __init__(self, folder: Path, ports: Iterable[int], factor: float, step: float) -> None:
        """Start it."""
        folder.mkdir()
        self._step, port = step, free_port()
        self._url = f"http://127.0.0.1:{port}"
        rules, config = folder / "rules.yml", folder / "prometheus.yml"
        rules.write_text(scaled(alert_rules(), factor))
        targets = [f"127.0.0.1:{one}" for one in ports]
        often = f"{round(1000 * step)}ms"
        written = {
            "global": {
                "scrape_interval": often,
                "scrape_timeout": often,
                "evaluation_interval": often,
            },
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": "abers", "static_configs": [{"targets": targets}]}],
        }
        config.write_text(json.dumps(written))
        subprocess.run(["promtool", "check", "config", config], check=True, capture_output=True)  # noqa: S607
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [  # noqa: S607
                    "prometheus",
                    f"--config.file={config}",
                    f"--storage.tsdb.path={folder / 'storage'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=log,
                stderr=log,
            )
        self._await()

    def _await(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with urlopen(f"{self._url}/-/ready", timeout=10):  # noqa: S310 - ours
                    return
            except URLError:
                assert self._process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def firing(self, begin: float, end: float) -> frozenset[str]:
        """Return the alerts that fired at any time between two times."""
        found = self.series('ALERTS{alertstate="firing"}', begin, end)
        return frozenset(labels["alertname"] for labels, _ in found)

    def series(
        self, query: str, begin: float, end: float
    ) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
        """Return the labels, and the times and values, of each series of a query."""
        words = {"query": query, "start": begin, "end": end, "step": self._step}
        with urlopen(f"{self._url}/api/v1/query_range?{urlencode(words)}", timeout=60) as answer:  # noqa: S310 - ours
            said: dict[str, Any] = json.load(answer)
        return [
            (one["metric"], [(at, float(value)) for at, value in one["values"]])
            for one in said["data"]["result"]
        ]

    def close(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait()

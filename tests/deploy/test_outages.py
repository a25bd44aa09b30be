"""Alerts about processes that end, restart or never start: which fire, and when."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from tests.deploy.files import DEPLOY, promtool
from tests.deploy.outages import JOB, STEP, Process, Span, back_off, scraped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

MINUTE, HOUR = 60, 3_600
START = 20 * MINUTE
"""When something happens: before it all is well."""
END = START + 2 * HOUR + 10 * MINUTE
ALWAYS = Span(0, END + 1)
BEFORE, AFTER = Span(0, START), Span(START, END + 1)


class Alert(NamedTuple):
    """An alert that must have fired by a time."""

    name: str
    by: float
    application: str = "fraud"
    process: str = ""

    def labels(self) -> str:
        """Return its labels, as a selector has them."""
        found = f'alertname="{self.name}", application="{self.application}"'
        return f'{found}, process="{self.process}"'

    def sample(self) -> dict[str, Any]:
        """Return the sample of a query that says that it fires."""
        labels = self.labels().replace(', process=""', "")
        return {"labels": f"{{{labels}}}", "value": 1}


def healthy(application: str, *names: str) -> list[Process]:
    """Return processes to which nothing happens."""
    return [Process(application, name, [ALWAYS], [ALWAYS]) for name in names]


def require(
    folder: Path,
    processes: Sequence[Process],
    *alerts: Alert,
    also: Iterable[str] = (),
    series: Iterable[dict[str, str]] = (),
    until: float = END,
) -> None:
    """Require alerts of a story by their times, and no others but some that may fire, too."""
    by, wanted = (
        "group by (alertname, application, process)",
        {one._replace(by=0) for one in alerts},
    )
    others = f'alertstate="firing", alertname!~"{"|".join(also)}"'
    tests: list[dict[str, Any]] = [
        {
            "expr": f"{by} (last_over_time(ALERTS{{{others}}}[{until}s]))",
            "eval_time": f"{until}s",
            "exp_samples": [one.sample() for one in sorted(wanted)],
        }
    ]
    for one in alerts:
        labels = f'{{alertstate="firing", {one.labels()}}}'
        tests.append(
            {
                "expr": f"{by} (ALERTS{labels})",
                "eval_time": f"{one.by:.0f}s",
                "exp_samples": [one.sample()],
            }
        )
    story = {
        "rule_files": [str(DEPLOY / "rules.yml")],
        "evaluation_interval": f"{STEP}s",
        "tests": [
            {
                "interval": f"{STEP}s",
                "input_series": [*scraped(processes, until), *series],
                "promql_expr_test": tests,
            }
        ],
    }
    path = folder / "story.yml"
    path.write_text(json.dumps(story))
    promtool("test", "rules", path)


pytestmark = pytest.mark.prometheus


@pytest.mark.parametrize("targets", [[BEFORE], [ALWAYS]], ids=["without targets", "with targets"])
def test_a_second_application_is_dead(tmp_path: Path, targets: list[Span]) -> None:
    """Its alert names it within six minutes, and goes on for two hours."""
    dead = [Process("second", name, [BEFORE], targets) for name in ("0", "1")]
    down = [Alert("AbersDown", END - MINUTE, "second", one.name) for one in dead]
    require(
        tmp_path,
        [*healthy("fraud", "0", "1"), *dead],
        Alert("AbersGone", START + 6 * MINUTE, "second"),
        Alert("AbersGone", END - MINUTE, "second"),
        *(down if targets == [ALWAYS] else ()),
    )


BOTH = {"AbersRestarts", "AbersDown"}


def noticed(life: float) -> str:
    """Return the alert that notices short lives: scrapes meet each of the longer ones."""
    return "AbersRestarts" if life > 2 * STEP else "AbersDown"


@pytest.mark.parametrize("life", [1, 5, 20, 45, 150], ids=lambda life: f"{life} s")
def test_one_of_four_processes_is_in_a_crash_loop(tmp_path: Path, life: float) -> None:
    """An alert names the process within ten minutes, however long each of its lives is.

    Lives that scrapes meet are counted as restarts. Of the others only silence is seen.
    """
    lives = [BEFORE, *back_off(START, END, life)]
    rest = healthy("fraud", "1", "2", "3")
    name = noticed(life)
    crashing = Process("fraud", "0", lives, [ALWAYS])
    alert = Alert(name, START + 10 * MINUTE, process="0")
    require(tmp_path, [crashing, *rest], alert, also=BOTH - {name}, until=START + HOUR)


def test_a_crash_loop_at_a_new_address(tmp_path: Path) -> None:
    """A process that moved, and never answers there, is missing although the others do all work."""
    moved = Process("fraud", "0", [BEFORE], [BEFORE, AFTER])
    alert = Alert("AbersProcessMissing", START + 11 * MINUTE)
    processes = [moved, *healthy("fraud", "1", "2", "3"), *healthy("second", "0", "1")]
    require(tmp_path, processes, alert, until=START + HOUR)


@pytest.mark.parametrize("life", [5, 20, 60], ids=lambda life: f"{life} s")
@pytest.mark.parametrize("names", [["0"], ["0", "1", "2", "3"]], ids=["one", "four"])
def test_an_outage_of_a_quarter_of_an_hour(tmp_path: Path, names: list[str], life: float) -> None:
    """A record that ends each process that reads it is noticed within four and a half minutes."""
    end = START + 15.5 * MINUTE
    hit = [START + 15.0 * number for number in range(len(names))]  # it goes from one to the next
    processes = [
        Process(
            "fraud", name, [Span(0, at), *back_off(at, end, life), Span(end, END + 1)], [ALWAYS]
        )
        for name, at in zip(names, hit, strict=True)
    ]
    by = hit[-1] + 4.5 * MINUTE
    alert = noticed(life)
    alerts = [Alert(alert, by, process=name) for name in names]
    also = BOTH - {alert} | {"AbersPartitionsUnserved", "AbersGone"}
    require(tmp_path, processes, *alerts, also=also, until=START + HOUR)


RESTORED = 10
"""Seconds until a new process is ready, and the next one may go."""


def replaced(names: Sequence[str], silent: float, pulling: float) -> list[Process]:
    """Return processes that are replaced one after the other, each by one at another address.

    Each is without a target for a while, and then silent while its image is pulled.
    """
    found, end = [], float(START)
    for name in names:
        begin = end + silent + pulling
        lives, targets = [Span(0, end), Span(begin, END)], [Span(0, end), Span(end + silent, END)]
        found.append(Process("fraud", name, lives, targets))
        end = begin + RESTORED
    return found


def test_an_upgrade(tmp_path: Path) -> None:
    """A new version that replaces four processes one after the other alerts nobody."""
    names = ["3", "2", "1", "0"]
    require(tmp_path, replaced(names, 15, 30), until=START + HOUR)


def test_an_upgrade_and_back(tmp_path: Path) -> None:
    """Two restarts of each process at its address, within half an hour, alert nobody."""
    processes = []
    for number in range(4):
        first = START + 40.0 * number
        second = first + 15 * MINUTE
        lives = [Span(0, first), Span(first + 25, second), Span(second + 25, END)]
        processes.append(Process("fraud", str(number), lives, [ALWAYS]))
    require(tmp_path, processes, until=START + HOUR)


def test_fewer_and_more_processes(tmp_path: Path) -> None:
    """Neither fewer processes nor more alert anybody."""
    late = Span(START + 30 * MINUTE, END)
    fewer = [Process("fraud", name, [BEFORE], [BEFORE]) for name in ("4", "5", "6", "7")]
    more = [Process("fraud", name, [late], [late]) for name in ("8", "9")]
    require(tmp_path, [*healthy("fraud", "0", "1"), *fewer, *more], until=START + HOUR)


def test_one_process_stands_still(tmp_path: Path) -> None:
    """A process that has records to read and commits nothing is named, whatever the others do."""
    stuck = Process("fraud", "0", [ALWAYS], [ALWAYS], stuck=AFTER)
    alert = Alert("AbersNoCommits", START + 11 * MINUTE, process="0")
    require(tmp_path, [stuck, *healthy("fraud", "1", "2", "3")], alert, until=START + HOUR)


def test_partitions_that_no_process_serves(tmp_path: Path) -> None:
    """Partitions that a dead process keeps are missed after five minutes, target or not."""
    silent = Process("fraud", "1", [BEFORE], [BEFORE])
    kept = silent._replace(lives=[ALWAYS], targets=[BEFORE])  # its group still counts on it
    alert = Alert("AbersPartitionsUnserved", START + 6 * MINUTE)
    require(tmp_path, [*healthy("fraud", "0"), kept], alert, until=START + HOUR)


def test_others_under_the_same_job(tmp_path: Path) -> None:
    """Other software under the job may restart, fall silent and take over addresses."""
    many = int(END / STEP)
    other = f'job="{JOB}", instance="other:8080"'
    series = [
        {"series": f"up{{{other}}}", "values": f"0x{many}"},
        {
            "series": f'process_start_time_seconds{{{other}, application="shop"}}',
            "values": f"0+1x{many}",
        },
    ]
    first = Process("fraud", "9", [BEFORE], [BEFORE])
    heir = Process("second", "0", [AFTER], [AFTER])
    taken = [
        one | {"series": one["series"].replace("second-0-0:", "fraud-9-0:")}
        for one in scraped([heir], START + HOUR)
    ]
    processes = [*healthy("fraud", "0", "1", "2"), first]
    # One ticket: a process went, and something under its job never answered.
    alert = Alert("AbersProcessMissing", START + 11 * MINUTE)
    require(tmp_path, processes, alert, series=[*series, *taken], until=START + HOUR)

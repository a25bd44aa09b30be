"""Take-over: an application learns behind another, and publishes from where that has stopped."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from tests.connectors.conftest import in_a_line
from tests.connectors.kafka.applications import PARTITIONS, Served
from tests.connectors.kafka.brokers import PATIENCE
from tests.connectors.kafka.chaos.campaign import SECTIONS, drained, flowing
from tests.connectors.kafka.chaos.succession import Succession, require_one_publisher
from tests.connectors.kafka.clients import CLIENTS, on_each_client
from tests.connectors.kafka.streams import labels_of, observations, oracle
from tests.connectors.processes import until

from abers_connectors.errors import CONFIG, USAGE

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran
    from tests.connectors.kafka.brokers import Broker
    from tests.connectors.kafka.streams import Record

OTHERS = {"calibrator": {"window": 90}}
"""Settings of the successor that its predecessor has otherwise."""

OBSERVATIONS = observations(300, PARTITIONS)
LABELS = labels_of(OBSERVATIONS)
QUARTER, HALF, LAST = (OBSERVATIONS[number].time for number in (75, 150, 250))
END = LABELS[-1].time + 1


@on_each_client
def test_one_of_both_publishes(client: str, broker: Broker, tmp_path: Path) -> None:
    """Under load, each output comes once and to the byte from one of two applications.

    A process of the successor is killed before, during and after the take-over, and goes on without
    the option. The predecessor refuses to start again.
    """
    sections = SECTIONS | {"kafka": CLIENTS[client]}
    with Succession(broker, tmp_path, sections, OTHERS, 6_000) as both:
        both.traffic.play(2_000)
        both.start()

        def learn() -> None:
            both.kill(both.news)
            both.until_said("ready to take over")

        def take_over() -> None:
            both.stop_old()
            both.kill(both.news)
            both.until_said("took over")
            both.kill(both.news)

        flowing(both.traffic, 4_000, 800, learn)
        flowing(both.traffic, 3_000, 800, take_over)
        for one in both.news.workers.values():
            one.words = ()
            one.kill()
        both.traffic.play(20_000)
        drained(both.new, look=both.news.require_all)
        refused = both.olds.add("a")
        assert refused.ended() == CONFIG
        assert f"was taken over by {both.new.name}" in refused.said()
        both.stop_new()
        counts = require_one_publisher(both.old, both.new, both.traffic.ids)
    assert min(counts.values()) > 0


@pytest.mark.long
@pytest.mark.parametrize("client", CLIENTS)
def test_one_of_both_publishes_for_long(client: str, broker: Broker, tmp_path: Path) -> None:
    """Processes of both applications are killed 20 times while the successor takes over."""
    sections = SECTIONS | {"kafka": CLIENTS[client]}
    with Succession(broker, tmp_path, sections, OTHERS, 40_000) as both:
        both.traffic.play(5_000)
        both.start("abc")

        def learn() -> None:
            both.kill_now_and_then(8, both.olds, both.news)
            both.until_said("ready to take over")

        def take_over() -> None:
            both.stop_old()
            both.kill_now_and_then(8, both.news)
            both.until_said("took over")
            both.kill_now_and_then(4, both.news)

        flowing(both.traffic, 30_000, 1_000, learn)
        flowing(both.traffic, 30_000, 1_000, take_over)
        both.traffic.play(100_000)
        drained(both.new, look=both.news.require_all)
        both.stop_new()
        counts = require_one_publisher(both.old, both.new, both.traffic.ids)
    print(f"take-over, {client}: {both.kills} kills, {dict(counts)}")  # noqa: T201 - the result
    assert both.kills == 20
    assert min(counts.values()) > 0


def part(since: int, until: int) -> tuple[list[Record], list[Record]]:
    """Return the observations and the labels of a time."""
    both = (OBSERVATIONS, LABELS)
    first, second = ([one for one in some if since <= one.time < until] for some in both)
    return first, second


@pytest.fixture
def two(
    broker: Broker, tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> tuple[Served, Served]:
    """Return an application that has processed half of a stream, and one that may take over."""
    old, new = Served(broker, tmp_path, start), Served(broker, tmp_path, start)
    new.topics = old.topics | {"changelog": new.topics["changelog"]}
    old.produce(*part(0, HALF))
    old.configure()
    old.serve()
    new.configure("calibrator.window = 50")
    return old, new


def test_an_operator_changes_settings(
    two: tuple[Served, Served], broker: Broker, invoke: Callable[..., Ran]
) -> None:
    """From a state that a replay saved, the successor publishes the rest, and restarts at will."""
    old, new = two
    words = ("--until", str(QUARTER), "--output", "before.jsonl", "--save-state", "seed")
    ran = invoke("replay", "abers.toml", *words)
    assert ran.code == 0, ran.err
    new.serve("--initial-state", "seed", "--take-over", old.app)
    new.produce(*part(HALF, LAST))
    new.serve("--take-over", old.app)
    new.produce(*part(LAST, END))
    new.serve()
    _, by_new = oracle(OBSERVATIONS, LABELS, new.config().settings(), PARTITIONS)
    old.configure()
    _, by_old = oracle(*part(0, HALF), old.config().settings(), PARTITIONS)
    found = broker.consume(new.topics["predictions"])
    expected = by_old + [one for one in by_new if one[0] >= HALF]
    assert sorted((one.timestamp, one.value) for one in found) == expected
    code, err = old.refused()
    assert code == CONFIG
    assert f"{old.app} was taken over by {new.app}" in in_a_line(err)


def test_what_learns_is_not_published_by_mistake(
    two: tuple[Served, Served], broker: Broker, invoke: Callable[..., Ran]
) -> None:
    """Without the option a successor does not start before the take-over, even if it is rebuilt."""
    old, new = two
    old.configure()
    with old.run() as running, old.broker.admin() as admin:
        until(running, lambda: old.members(admin))
        new.configure("calibrator.window = 50")
        new.serve("--take-over", old.app)  # until it has read all that the other has
        for rebuilt in (False, True):
            if rebuilt:
                ran = invoke("state", "rebuild", "abers.toml", "--from-inputs")
                assert ran.code == 0, ran.err
            code, err = new.refused()
            assert code == CONFIG
            assert f"{new.app} has not yet taken over from {old.app}" in in_a_line(err)
        running.send_signal(signal.SIGTERM)
        assert running.wait(PATIENCE) == 0
    new.serve("--take-over", old.app)
    _, by_old = oracle(*part(0, HALF), old.config().settings(), PARTITIONS)
    found = broker.consume(new.topics["predictions"])
    assert len(found) == len(by_old)


def test_whom_an_application_cannot_take_over_from(two: tuple[Served, Served]) -> None:
    """The application itself, an unknown one, and one behind its start are errors that say so."""
    old, new = two
    for other, why in (
        (new.app, f"{new.app} cannot take over from itself; give this one another"),
        ("nobody", "group nobody has no committed offsets; name the kafka.application_id"),
    ):
        code, err = new.refused("--take-over", other)
        assert code == CONFIG
        assert why in in_a_line(err)
    new.produce(*part(HALF, LAST))
    new.configure('kafka.starting_offset = "latest"')
    code, err = new.refused("--take-over", old.app)
    assert code == CONFIG
    assert "records between would have no prediction. Start" in in_a_line(err)


def test_files_are_not_taken_over(tmp_path: Path, invoke: Callable[..., Ran]) -> None:
    """A configuration of files has no group to take over."""
    (tmp_path / "files.toml").write_text('input.observations = "scores.jsonl"\n')
    ran = invoke("run", "files.toml", "--take-over", "old")
    assert ran.code == USAGE
    assert "--take-over needs a section [kafka], which files.toml does not have" in ran.err


def test_flags_that_do_not_fit(tmp_path: Path, invoke: Callable[..., Ran]) -> None:
    """All flags that do not fit the configuration are named before a broker is asked."""
    text = (
        '[kafka]\nbootstrap_servers = "localhost:1"\nobservations = "scores"\n'
        'predictions = "predictions"\napplication_id = "own"\n'
    )
    (tmp_path / "one.toml").write_text(text)
    ran = invoke("run", "one.toml", "--take-over", "own", "--stage", "tasks")
    assert ran.code == CONFIG
    assert "--take-over: own cannot take over from itself" in ran.err
    assert "--stage tasks: needs kafka.route_by, which is not set" in ran.err
    (tmp_path / "one.toml").write_text(f'{text}route_by = "model"\n')
    ran = invoke("run", "one.toml", "--take-over", "old", "--initial-state", "seed")
    assert ran.code == CONFIG
    assert "--take-over: it stops at offsets of the inputs" in ran.err
    assert "--initial-state: a saved state is by the partitions of the inputs" in ran.err

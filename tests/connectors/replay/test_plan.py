"""The plan of `abers replay`: which options go together, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from abers import ParameterError
from abers.exceptions import ConfigError
from abers_connectors.config.values import Lateness
from abers_connectors.replay.options import ReplayOptions
from abers_connectors.replay.plan import ReplayPlan, plan_replay

CONFIG = """
[input]
observations = "in.jsonl"
delay = 1
[output]
predictions = "out.jsonl"
"""
STATE = """
[state]
path = "abers.state"
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with a configuration and some inputs."""
    monkeypatch.chdir(tmp_path)
    Path("abers.toml").write_text(CONFIG)
    Path("kept.toml").write_text(CONFIG + STATE)
    lines = [b'{"id":"%d","time":%d000,"score":0.5,"label":1}\n' % (n, n) for n in range(1, 7)]
    Path("in.jsonl").write_bytes(b"".join(lines))
    Path("other.jsonl").write_bytes(b"".join(lines[:2]))


def ids(plan: ReplayPlan) -> list[str]:
    """Run a plan, and return the ids of its predictions."""
    with plan.job.start(plan.pace) as running:
        for _ in running.run():
            pass
    lines = Path(plan.job.outputs["predictions"]).read_bytes().splitlines()
    return [msgspec.json.decode(line)["id"] for line in lines]


def test_a_stream_by_default() -> None:
    """By default labels are 50 observations late, which a sentence says, and nothing is written."""
    plan = plan_replay(ReplayOptions("Phishing"))
    assert (plan.delay, plan.pace) == (Lateness(observations=50), None)
    assert plan.job.outputs == {}
    (note,) = plan.said.notes
    assert note.startswith("Labels are assumed to come 50 observations late, and the results")


def test_a_configuration_says_everything_itself() -> None:
    """The delay and the outputs of a configuration hold; the plan has no delay."""
    plan = plan_replay(ReplayOptions("abers.toml"))
    assert plan.delay is None
    assert plan.job.outputs["predictions"] == "out.jsonl"
    assert ids(plan) == ["1", "2", "3", "4", "5", "6"]


def test_another_input_and_output() -> None:
    """--from and --output take the place of what the configuration says."""
    plan = plan_replay(ReplayOptions("abers.toml", from_="other.jsonl", output="else.jsonl"))
    assert ids(plan) == ["1", "2"]
    assert plan.job.outputs["predictions"] == "else.jsonl"


def test_state_and_outputs_of_a_run_are_left_alone() -> None:
    """A configuration that keeps a state is replayed to another output, with its dead letters."""
    for output in (None, "out.jsonl", "./out.jsonl"):
        with pytest.raises(ParameterError, match=r"kept\.toml keeps a state.* another --output"):
            plan_replay(ReplayOptions("kept.toml", output=output))
    Path("parts.toml").write_text((CONFIG + STATE).replace("out.jsonl", "parts.parquet"))
    Path("parts.parquet").mkdir()
    with pytest.raises(ParameterError, match=r"parts\.toml keeps a state"):
        plan_replay(ReplayOptions("parts.toml", output="parts.parquet/mine.parquet"))
    plan = plan_replay(ReplayOptions("kept.toml", output="else.jsonl"))
    assert plan.job.state is None
    assert plan.job.outputs == {
        "predictions": "else.jsonl",
        "dead_letters": "else.jsonl.dead.jsonl",
    }
    ids(plan)
    assert not Path("abers.state").exists()
    assert not Path("out.jsonl").exists()


def test_what_only_a_state_needs_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay keeps no state, so it needs neither its directory nor the secret of a learner."""
    monkeypatch.delenv("ABERS_STATE_KEY", raising=False)
    kept = CONFIG + "[learner]\n" + STATE.replace("abers.state", "no/abers.state")
    Path("kept.toml").write_text(kept)
    Path("in.jsonl").write_text('{"id": "1", "time": 1, "x": {"a": 1}, "label": 1}\n')
    assert ids(plan_replay(ReplayOptions("kept.toml", output="else.jsonl"))) == ["1"]


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        ("3000", None, ["3", "4", "5", "6"]),
        (None, "3000", ["1", "2"]),
        ("1970-01-01T00:00:02Z", "1970-01-01T00:00:04Z", ["2", "3"]),
        ("9000", None, []),
    ],
)
def test_a_part_of_history(since: str | None, until: str | None, expected: list[str]) -> None:
    """From a time on, and before a time, in milliseconds or RFC 3339."""
    plan = plan_replay(ReplayOptions("in.jsonl", since=since, until=until, output="out.jsonl"))
    assert ids(plan) == expected


def test_the_labels_of_a_part_of_history() -> None:
    """Labels belong to the observations of their records, and otherwise go by their times."""
    plan = plan_replay(
        ReplayOptions("in.jsonl", since="3000", until="5000", output="out.jsonl", delay="3")
    )
    with plan.job.start() as running:
        assert [*running.run()][-1] == 2
    counters = running.processors[0].counters
    assert (counters["observations"], counters["labels_in"], counters["labels"]) == (2, 2, 2)
    Path("abers.toml").write_text(CONFIG.replace("delay = 1", 'labels = "other.jsonl"'))
    plan = plan_replay(ReplayOptions("abers.toml", since="2000", until="5000"))
    with plan.job.start() as running:
        assert [*running.run()]
    counters = running.processors[0].counters
    assert (counters["observations"], counters["labels_in"], counters["labels"]) == (3, 1, 1)


def test_a_speed() -> None:
    """A speed sets the pace, and a run takes the time that it should."""
    Path("in.jsonl").write_text(
        "".join(f'{{"score":0.5,"label":1,"time":{n * 500}}}\n' for n in range(4))
    )
    plan = plan_replay(ReplayOptions("in.jsonl", speed="50x", output="out.jsonl"))
    assert plan.pace is not None
    assert ids(plan) == ["1", "2", "3", "4"]


def test_numbers_of_milliseconds() -> None:
    """A plain number is a duration in milliseconds."""
    assert (
        plan_replay(ReplayOptions("Phishing", forgetting={"max_age": "5000"})).job.settings.max_age
        == 5000
    )
    assert (
        plan_replay(
            ReplayOptions("Phishing", forgetting={"half_life": "5s"})
        ).job.settings.half_life
        == 5000
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"stream": "in.jsonl", "from_": "x.jsonl"}, "--from goes with a configuration; in.jsonl"),
        ({"stream": "Phishing", "from_": "x.jsonl"}, "--from goes with a configuration"),
        ({"stream": "Phishing", "speed": "fast"}, "--speed 'fast' is not a speed; write 1x"),
        ({"stream": "Phishing", "since": "noon"}, "^--since: time 'noon' is not a time"),
        (
            {"stream": "in.jsonl", "since": "2026-01-02"},
            "^--since: time '2026-01-02' has no UTC offset; name its zone, such as Europe/Berlin",
        ),
        (
            {"stream": "in.jsonl", "since": "5000", "until": "5000"},
            "^--until is not after --since, so nothing is left; give a later one",
        ),
        ({"stream": "Phishing", "until": "1700000000"}, "^--until: time .* seems to be in seconds"),
    ],
)
def test_words_that_do_not_go_together(words: dict[str, Any], message: str) -> None:
    """An option that would be ignored is refused, with a remedy."""
    with pytest.raises(ParameterError, match=message):
        plan_replay(ReplayOptions(**words))


def test_mistakes_in_a_configuration() -> None:
    """Mistakes in a configuration name it, and a missing file of --from names the flag."""
    with pytest.raises(
        ParameterError, match=r"--from: inn\.jsonl: no such file; did you mean in\."
    ):
        plan_replay(ReplayOptions("abers.toml", from_="inn.jsonl"))
    with pytest.raises(ConfigError, match=r"aber\.toml: no such file; did you mean abers\.toml"):
        plan_replay(ReplayOptions("aber.toml"))

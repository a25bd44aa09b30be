"""Configurations: where values come from, and what they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from abers import ConfigError, registry
from abers.stream import Observation, Processor, Settings, make_task
from abers.stream.cells import Fields
from abers.stream.settings import LARGEST_TIME
from abers_connectors.config.description import described, usual_keys
from abers_connectors.config.model import Config, load
from abers_connectors.config.sections import InputSection
from abers_connectors.config.values import MAX_COUNT, Lateness

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran

MINIMAL = {"input.observations": "stream.jsonl"}

DAY = 86_400_000


def loaded(environ: dict[str, str] | None = None, **flags: Any) -> Config:  # noqa: ANN401
    """Load a configuration of flags, in which a double underscore stands for a dot."""
    named = {name.replace("__", "."): value for name, value in flags.items()}
    return load(flags=MINIMAL | named, environ=environ or {})


# What is loaded


def test_only_observations_must_be_given() -> None:
    """A single key is a configuration, and the rest has the defaults of the processor."""
    config = loaded()
    assert config == Config(input=InputSection(observations="stream.jsonl"))
    assert config.settings() == Settings()
    assert config.fields() == config.label_fields() == Fields()
    assert config.output.dead_letters_path == "abers.dead.jsonl"


def test_settings() -> None:
    """Everything that shapes the state reaches the processor, in milliseconds."""
    config = loaded(
        task__scores="probability",
        calibrator__half_life="2h",
        learner__name="tree",
        limits={
            "label_timeout": "1d",
            "allowed_lateness": "3s",
            "max_clock_skew": "250ms",
            "max_jump": 5,
        },
        limits__dedup_ttl="4m",
        limits__dedup_max_ids=0,
        limits__max_pending=7,
        limits__max_early=8,
        limits__max_models=9,
        limits__retire_after="30d",
        limits__max_id_bytes=10,
        limits__max_name_bytes=11,
        monitoring={
            "enabled": False,
            "tests": False,
            "grace_period": 9,
            "tolerance": 2,
            "average_run_length": 10,
            "cooldown": 11,
        },
    )
    assert config.settings() == Settings(
        scores="probability",
        half_life=7_200_000,
        learner="tree",
        label_timeout=DAY,
        allowed_lateness=3_000,
        max_clock_skew=250,
        max_jump=5,
        dedup_ttl=240_000,
        dedup_max_ids=0,
        max_pending=7,
        max_early=8,
        max_models=9,
        retire_after=30 * DAY,
        max_id_bytes=10,
        max_name_bytes=11,
        monitors=False,
        tests=False,
        grace_period=9,
        tolerance=2.0,
        average_run_length=10,
        cooldown=11,
    )


def test_a_run_length_may_be_a_time() -> None:
    """An average run length is a number of observations, or a time in which there are many."""
    settings = loaded(monitoring={"average_run_length": "30d"}).settings()
    assert settings == Settings(average_run_time=30 * DAY)
    config = loaded(monitoring={"average_run_length": "36h", "tolerance": 1.5})
    (line,) = described(config)["Watches"]
    assert str(line) == (
        "alarm beyond 1.5 times the odds; 36 hours on average between false alarms"
    )
    assert not usual_keys(config) & {"monitoring.average_run_length", "monitoring.tolerance"}


@pytest.mark.parametrize(
    ("monitoring", "says"),
    [({"enabled": False}, "nothing"), ({"tests": False}, "scores, without tests and alarms")],
)
def test_monitoring_without_alarms(monitoring: dict[str, bool], says: str) -> None:
    """The meaning of a configuration says whether there are tests."""
    assert [*map(str, described(loaded(monitoring=monitoring))["Watches"])] == [says]


def test_the_meaning_of_a_server() -> None:
    """A server reads rows of requests, keeps its state in a folder, and listens."""
    flags = {"serve.data": "folder", "task.scores": "probability", "http.port": 99}
    found = described(load(flags=flags, environ={}))
    assert {part: [*map(str, lines)] for part, lines in found.items()} | {"Watches": []} == {
        "Task": ["two classes; raw scores are probabilities"],
        "Reads": [
            "rows of requests",
            "predictions: id, score, model, segment, time",
            "labels: id, label (1, true), model, time",
        ],
        "Writes": ["state to folder"],
        "Calibrates": ["ivap; all labels; p is protected"],
        "Waits": ["7 days for a label"],
        "Watches": [],
        "Serves": ["page, health and metrics at http://127.0.0.1:99"],
    }


def test_no_calibrator_serves_the_scores() -> None:
    """The meaning of the calibrator "none" is that scores are served as they are."""
    config = loaded(task={"scores": "probability"}, calibrator={"kind": "none"})
    says = "none; scores are served as they are, and nothing is learned"
    assert [*map(str, described(config)["Calibrates"])] == [says]


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_each_calibrator_of_the_registry(task: str) -> None:
    """A calibrator that is added to the registry needs no line in the configuration."""
    classes = ["cat", "dog"] if task == "multiclass" else []
    for name in registry.names(task):
        able = registry.capabilities(name, task)
        scores = "probability" if able.of_probabilities else "any"
        needed = {"kind": task, "classes": classes, "scores": scores}
        support = [0.0, 1.0] if (task, name) == ("regression", "protected") else []
        chosen = {"kind": name, "support": support}
        settings = loaded(task=needed, calibrator=chosen).settings()
        assert settings.calibrator == name
        make_task(settings)


def test_a_run_with_a_calibrator_of_your_own(
    invoke: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration names a class of another package by its import path."""
    (tmp_path / "own.py").write_text(
        "from abers.calibration.baselines import Platt\nclass Own(Platt): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "scores.jsonl").write_text(
        "".join(
            f'{{"id": "{n}", "time": {n}, "score": 0.{n % 7}, "label": {n % 2}}}\n'
            for n in range(50)
        )
    )
    for name in ("platt", "own:Own"):
        (tmp_path / f"{name}.toml").write_text(
            f'[calibrator]\nkind = "{name}"\n'
            '[input]\nobservations = "scores.jsonl"\ndelay = 2\n'
            f'[output]\npredictions = "{name}.jsonl"\n'
        )
        assert invoke("check", f"{name}.toml").code == 0
        assert invoke("run", f"{name}.toml").code == 0
    assert (tmp_path / "own:Own.jsonl").read_text() == (tmp_path / "platt.jsonl").read_text()


@pytest.mark.parametrize(("count", "span"), [(MAX_COUNT, LARGEST_TIME), (1, 1)])
def test_extreme_limits(count: int, span: int) -> None:
    """The processor takes whatever is accepted here."""
    names = ["dedup_max_ids", "max_pending", "max_early", "max_models", "max_id_bytes"]
    counts = dict.fromkeys(names, count) | {"max_name_bytes": max(count, len("default"))}
    times = [
        "label_timeout",
        "allowed_lateness",
        "max_clock_skew",
        "max_jump",
        "dedup_ttl",
        "retire_after",
    ]
    config = loaded(limits=counts | dict.fromkeys(times, span), calibrator__half_life=span)
    assert Processor(config.settings()).process(Observation("a", 0, score=0.5))


@pytest.mark.parametrize(
    ("given", "delay"),
    [
        (0, Lateness(observations=0)),
        (50, Lateness(observations=50)),
        ("0s", Lateness(span=0)),
        ("2d", Lateness(span=2 * DAY)),
    ],
)
def test_delay(given: object, delay: Lateness) -> None:
    """A delay is a number of observations, or a duration."""
    assert loaded(input__delay=given).input.delay == delay
    assert InputSection(observations="x.csv", delay=delay).delay == delay


def test_fields() -> None:
    """The second input has the fields of the first, except those that are set."""
    config = loaded(
        input__labels="labels.csv",
        input__fields={"id": "payload.id", "model": "const:fraud", "passthrough": ["country"]},
        input__label_fields__id="txn",
    )
    assert config.fields() == Fields(id="payload.id", model="const:fraud", passthrough=("country",))
    assert config.label_fields() == Fields(id="txn", model="const:fraud", passthrough=("country",))


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ({}, "logistic"),
        ({"task__kind": "multiclass", "task__classes": ["a", "b"]}, "softmax"),
        ({"task__kind": "regression"}, "linear"),
    ],
)
def test_the_usual_learner(task: dict[str, Any], name: str) -> None:
    """A section without a name means the usual learner of the task, which can be made."""
    config = loaded(**task, learner={}, input__fields__x="x")
    assert config.settings().learner == name
    assert Processor(config.settings()).process(Observation("a", 0, x={"b": 1.0}))
    assert loaded(**task, learner__name="tree").settings().learner == "tree"
    assert loaded(**task).settings().learner is None


def test_features() -> None:
    """Features are at "x" if there is a learner, or where they are said to be."""
    assert loaded().fields().x is None
    assert loaded(learner={}).fields().x == "x"
    assert loaded(learner={}, input__fields__x="payload").fields().x == "payload"
    assert loaded(input__fields__x=["a", "b"]).fields().x == ("a", "b")


def test_label_values() -> None:
    """Label values keep their types."""
    positive = loaded(input__pos_label=["fraud", 1, 0.5, True]).input.pos_label
    assert [(type(one), one) for one in positive] == [
        (str, "fraud"),
        (int, 1),
        (float, 0.5),
        (bool, True),
    ]


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ({}, None),
        ({"input__unlabelled": "drop"}, None),
        ({"input__unlabelled": False}, 0),
        ({"input__unlabelled": "1"}, 1),
        ({"input__unlabelled": "genuine", "input__pos_label": ["fraud"]}, 0),
        ({"input__unlabelled": "fraud", "input__pos_label": ["fraud"]}, 1),
        (
            {"input__unlabelled": 7, "task__kind": "multiclass", "task__classes": ["cat", "7"]},
            "7",
        ),
    ],
)
def test_the_label_that_is_assumed(given: dict[str, Any], label: object) -> None:
    """It is read as the labels of the records are, and is a setting of the state."""
    config = loaded(limits__label_timeout="30d", **given)
    assert config.settings().unlabelled == label
    (line,) = described(config)["Waits"]
    expected = f"; then it counts as label {label}, and a later one is not learned"
    assert str(line) == f"30 days for a label{'' if label is None else expected}"


@pytest.mark.parametrize(
    ("predictions", "dead_letters"),
    [
        ("-", "abers.dead.jsonl"),
        ("scores.jsonl", "scores.jsonl.dead.jsonl"),
        ("out.d/scores.csv.gz", "out.d/scores.csv.gz.dead.jsonl"),
        ("scores.parquet", "scores.parquet.dead.jsonl"),
    ],
)
def test_dead_letters_lie_beside_the_predictions(predictions: str, dead_letters: str) -> None:
    """Bad records have a file of their own, named after the predictions."""
    assert loaded(output__predictions=predictions).output.dead_letters_path == dead_letters
    named = loaded(output__predictions=predictions, output__dead_letters="bad.jsonl")
    assert named.output.dead_letters_path == "bad.jsonl"


def test_a_configuration_is_immutable() -> None:
    """Nobody changes a configuration that others hold."""
    with pytest.raises(AttributeError, match="immutable"):
        loaded().output.predictions = "x.csv"  # type: ignore[misc]


def test_in_code() -> None:
    """The values of a section that is made in code are read like those of a file."""
    given: Any = "2d"
    assert InputSection(observations="a.csv", delay=given).delay == Lateness(span=2 * DAY)
    given = "soon"
    with pytest.raises(ConfigError, match="delay: 'soon' is not a delay"):
        InputSection(observations="a.csv", delay=given)


# Where values come from


def test_precedence(tmp_path: Path) -> None:
    """A flag beats the environment, which beats the file, which beats the default."""
    path = tmp_path / "abers.toml"
    path.write_text(
        'input.observations = "s.csv"\n[limits]\nmax_models = 1\nmax_early = 1\nmax_pending = 1'
    )
    environ = {"ABERS_LIMITS__MAX_EARLY": "2", "ABERS_LIMITS__MAX_PENDING": "2"}
    limits = load(path, environ=environ, flags={"limits.max_pending": 3}).settings()
    assert (limits.max_models, limits.max_early, limits.max_pending) == (1, 2, 3)
    assert limits.dedup_max_ids == Settings().dedup_max_ids


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("INPUT__FIELDS__ID", "txn_id", ("input", "fields", "id", "txn_id")),
        ("INPUT__FIELDS__ID", '"5"', ("input", "fields", "id", "5")),
        ("INPUT__FIELDS", '{id = "n", score = "s"}', ("input", "fields", "score", "s")),
        (
            "INPUT__FIELDS__PASSTHROUGH",
            '["a", "b"]',
            ("input", "fields", "passthrough", ("a", "b")),
        ),
        ("MONITORING__ENABLED", "false", ("monitoring", "enabled", False)),
        ("CALIBRATOR__WINDOW", "1_000", ("calibrator", "window", 1000)),
        ("STATE__PATH", "a = b # c\n[x]", ("state", "path", "a = b # c\n[x]")),
        ("STATE__PATH", '"a"\nb = "c"', ("state", "path", '"a"\nb = "c"')),
        ("LEARNER__NAME", "tree", ("learner", "name", "tree")),
    ],
)
def test_environment(name: str, value: str, found: tuple[Any, ...]) -> None:
    """The value of a variable is read as TOML if it can be, or else as it stands."""
    values = loaded({f"ABERS_{name}": value}).values()
    assert values[".".join(found[:-1])] == found[-1]


@pytest.mark.parametrize("name", ["ABERS_BACKEND", "ABERS_STATE_KEY", "ABERS_", "INPUT__X", "__"])
def test_other_variables(name: str) -> None:
    """A variable without a double underscore, or without our prefix, is none of ours."""
    assert loaded({name: "x"}) == loaded()


def test_layers_are_merged_by_key() -> None:
    """A section in one layer leaves the keys alone that another has in it."""
    config = loaded({"ABERS_INPUT__FIELDS": '{id = "a", time = "b"}'}, input__fields={"id": "c"})
    assert (config.input.fields.id, config.input.fields.time) == ("c", "b")
    assert config.input.observations == "stream.jsonl"

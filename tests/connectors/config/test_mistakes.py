"""Mistakes in configurations: all are reported at once, with their origin."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import abers_connectors
from abers.exceptions import ConfigError
from abers.stream.cells import BadRecordError
from abers.stream.readers import ClassReader, FeaturesReader, LabelReader
from abers.stream.settings import LARGEST_TIME
from abers.stream.times import TimeReader
from abers_connectors.config.layers import SECTIONS, OptionsError, keys_of, options
from abers_connectors.config.model import Config, load
from abers_connectors.config.values import MAX_COUNT

if TYPE_CHECKING:
    from collections.abc import Callable

PRODUCT = Path(abers_connectors.__file__).parent
PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def loaded(**flags: Any) -> Config:  # noqa: ANN401
    """Load stream.jsonl and some keys; a double underscore stands for a dot."""
    named = {name.replace("__", "."): value for name, value in flags.items()}
    return load(flags={"input.observations": "stream.jsonl"} | named, environ={})


@pytest.fixture
def messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Return the messages about an abers.toml, with variables and flags."""
    monkeypatch.chdir(tmp_path)

    def lines(
        text: str | bytes,
        environ: dict[str, str] | None = None,
        flags: dict[str, Any] | None = None,
    ) -> list[str]:
        Path("abers.toml").write_bytes(text.encode() if isinstance(text, str) else text)
        try:
            load("abers.toml", environ=environ or {}, flags=flags)
        except ConfigError as error:
            return list(error.problems)
        return []

    return lines


# Messages


def test_five_mistakes(messages: Callable[..., list[str]]) -> None:
    """All mistakes are reported at once, with suggestions."""
    text = """
    [task]
    scores = "probabilities"
    [calibrator]
    window = "100"
    [input]
    observations = "stream.jsonl"
    feilds = { id = "txn" }
    [limits]
    label_timeout = "7 days"
    [outptu]
    predictions = "-"
    """
    assert sorted(messages(text)) == [
        'abers.toml: calibrator.window: "100" is not a whole number; write one, without quotes',
        'abers.toml: input.feilds: unknown key; did you mean "fields"?',
        (
            'abers.toml: limits.label_timeout: "7 days" is not a duration; '
            'write "250ms", "5s", "5m", "2h" or "7d", or a whole number of milliseconds'
        ),
        'abers.toml: outptu: unknown key; did you mean "output"?',
        (
            'abers.toml: task.scores: "probabilities" is not one of "any", "probability", "logit"; '
            'did you mean "probability"?'
        ),
    ]


def test_the_page_shows_the_messages(messages: Callable[..., list[str]]) -> None:
    """The messages on the page of the documentation are the real ones."""
    text = """
    [task]
    scores = "probabilities"
    [input]
    observations = "stream.jsonl"
    feilds = { id = "txn" }
    [output]
    outcomes = "-"
    [limits]
    label_timeout = "7 days"
    """
    shown = re.search(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown is not None
    environ = {"ABERS_CALIBRATOR__WIDNOW": "5", "ABERS_CALIBRATOR_WINDOW": "5"}
    lines = messages(text, environ)
    assert sorted(shown[1].splitlines()) == sorted(lines)


PROTECTED = "task.kind = 'regression'\ncalibrator.kind = 'protected'"
WHOLE = "task.kind = 'regression'\ncalibrator = {distributions = 'full',"
MISTAKES = {
    # unknown keys
    "calibrator = {halflife = '1d'}": 'calibrator.halflife: unknown key; did you mean "half_life"?',
    "input.score = 's'": 'input.score: unknown key; did you mean "input.fields.score"?',
    "calibrator.name = 'ivap'": 'calibrator.name: unknown key; did you mean "kind"?',
    "window = 5": 'window: unknown key; did you mean "calibrator.window"?',
    "monitoring.zzz = 5": "monitoring.zzz: unknown key; [monitoring] has enabled, "
    "tests, grace_period, tolerance, average_run_length, cooldown",
    'state."a\\nb" = 5': 'state."a\\nb": unknown key; [state] has path, snapshot_every, shared, '
    "retain, key_file",
    "zzz = {}": "zzz: unknown key; a configuration has task, calibrator, learner, input, output, "
    "kafka, schema_registry, limits, state, http, serve, monitoring, alerts, telemetry",
    # wrong types
    "input.fields.id = 5": "input.fields.id: 5 is not a string; put it in quotes",
    "input.fields.score = 'label'": (
        'input.fields.label: "label" is already input.fields.score; name another field'
    ),
    "input.fields = {score = {a = 'p', b = 'y'}, label = 'y'}\n"
    "task = {kind = 'multiclass', classes = ['a', 'b']}": (
        'input.fields.label: "y" is already input.fields.score; name another field'
    ),
    "input.fields.id = ''": (
        "input.fields.id: must be a non-empty string; write one, or remove the key"
    ),
    "input.fields.passthrough = 'a'": 'input.fields.passthrough: "a" is not a list; write ["a"]',
    "input.fields.passthrough = ['a', 5]": (
        "input.fields.passthrough.1: 5 is not a string; put it in quotes"
    ),
    "input.fields.x = []": (
        "input.fields.x: [] is not a field path; write one path, or a list of them: "
        '["amount", "age"]'
    ),
    "input.pos_label = [2024-01-31]": (
        'input.pos_label.0: "2024-01-31" is not a label; write a string, a number, true or false'
    ),
    "input.pos_label = [nan]": (
        "input.pos_label.0: NaN is not a label; write a string, a number, true or false"
    ),
    "input.delay = -1": "input.delay: -1 is not a delay; "
    'write a number of observations, or "250ms", "5s", "5m", "2h" or "7d"',
    "monitoring.enabled = 'yes'": (
        'monitoring.enabled: "yes" is not a boolean; write true or false, without quotes'
    ),
    "output = 'x.csv'": "output: must be a section; write its keys below a line [output]",
    'state.path = "a\\u0000b"': 'state.path: "a\\u0000b" must not contain a null character',
    # numbers
    "calibrator.window = 0": "calibrator.window: 0 is too small; write at least 1",
    "calibrator.window = true": "calibrator.window: true is not a whole number; "
    "write one, without quotes",
    "calibrator.max_age = '0s'": (
        'calibrator.max_age: must be longer than zero; write "250ms", "5s", "5m", "2h" or "7d"'
    ),
    f"limits.max_early = {MAX_COUNT + 1}": f"limits.max_early: {MAX_COUNT + 1} is too large; "
    f"write at most {MAX_COUNT}",
    "output.max_dead_letter_ratio = 1.5": "output.max_dead_letter_ratio: 1.5 is too large; "
    "write at most 1.0",
    # words
    "task.kind = 'binray'": (
        'task.kind: "binray" is not one of "binary", "multiclass", "regression"; did you mean'
        ' "binary"?'
    ),
    "output.on_bad_record = 'ignore'": (
        'output.on_bad_record: "ignore" is not one of "dead-letter", "stop"'
    ),
    "input.format = 'CSV'": (
        'input.format: "CSV" is not one of "csv", "jsonl", "parquet", "json", "avro", '
        '"protobuf", "json-schema"; did you mean "csv"?'
    ),
    "task.scores = 5": 'task.scores: 5 is not one of "any", "probability", "logit"',
    "task.classes = true": "task.classes: true is not a list; write [true]",
    # tasks
    "task.kind = 'multiclass'": (
        'task.classes: must be two or more different classes, such as ["cat", "dog"]'
    ),
    "task = {kind = 'multiclass', classes = ['a']}": (
        'task.classes: must be two or more different classes, such as ["cat", "dog"]'
    ),
    "task = {kind = 'multiclass', classes = ['a', 'b', 'a']}": (
        'task.classes: must be two or more different classes, such as ["cat", "dog"]'
    ),
    f"task = {{kind = 'multiclass', classes = ['a', '{'b' * 257}']}}": (
        f'task.classes: "{"b" * 59}… has 257 bytes; shorten it, or raise '
        "limits.max_name_bytes = 256"
    ),
    f"input.fields.model = 'const:{'m' * 300}'": (
        f'input.fields.model: "{"m" * 59}… has 300 bytes; shorten it, or raise '
        "limits.max_name_bytes = 256"
    ),
    "limits.max_name_bytes = 3\ninput.fields.segment = 'const:east'": (
        'input.fields.segment: "east" has 4 bytes; shorten it, or raise limits.max_name_bytes = 3'
    ),
    "task.classes = ['a', 'b']": 'task.classes: applies only to the task "multiclass"; remove it',
    "task = {kind = 'regression', classes = ['a', 'b']}": (
        'task.classes: applies only to the task "multiclass"; remove it'
    ),
    "limits.label_timeout = '1d'\ninput.unlabelled = 'ok'": (
        "input.unlabelled: 'ok' is not a label; write 0 or 1, or false or true, or name the values "
        'that mean 1 in input.pos_label; or write "drop"'
    ),
    "limits.label_timeout = '1d'\ninput.unlabelled = [0]": (
        "input.unlabelled: [0] is not a label; write a string, a number, true or false"
    ),
    "task.kind = 'regression'\nlimits.learn_after = '30d'": (
        "limits.learn_after: is for the calibrators ivap, cvap, one-vs-rest, protected and "
        "protected-cvap; remove it"
    ),
    "calibrator.kind = 'platt'\nlimits.learn_after = '30d'": (
        "limits.learn_after: is for the calibrators ivap, cvap, one-vs-rest, protected and "
        "protected-cvap; remove it"
    ),
    "input.unlabelled = 0": (
        'input.unlabelled: needs limits.label_timeout; set how long a label may take, such as "30d"'
    ),
    "task.kind = 'regression'\ninput.unlabelled = 0": (
        "input.unlabelled: 0 is a class, and labels are numbers; remove it"
    ),
    "task = {kind = 'multiclass', classes = ['a', 'b']}\ninput.unlabelled = 'c'\n"
    "limits.label_timeout = '1d'": (
        "input.unlabelled: 'c' is not among the classes ['a', 'b']; add it to task.classes, or "
        'fix it; or write "drop"'
    ),
    "task.kind = 'regression'\ninput.pos_label = [1]": (
        'input.pos_label: applies only to the task "binary"; remove it'
    ),
    "task = {kind = 'regression', scores = 'probability'}": (
        'task.scores: must be "any" or "logit" for the task "regression"'
    ),
    "task = {kind = 'regression', quantiles = [0.5, 0.1]}": (
        "task.quantiles: [0.5, 0.1] is not an ascending list between 0 and 1"
    ),
    "task = {kind = 'regression', quantiles = []}": (
        "task.quantiles: [] is not an ascending list between 0 and 1"
    ),
    "task = {kind = 'regression', quantiles = [0.0]}": (
        "task.quantiles: [0.0] is not an ascending list between 0 and 1"
    ),
    "task = {kind = 'regression', quantiles = [nan]}": (
        "task.quantiles: [NaN] is not a list of finite numbers; write a list such as [0.1, 0.5]"
    ),
    "task = {kind = 'regression', quantiles = 0.5}": (
        "task.quantiles: 0.5 is not a list of finite numbers; write a list such as [0.1, 0.5]"
    ),
    "task.quantiles = [0.5]": 'task.quantiles: applies only to the task "regression"; remove it',
    "calibrator.grid = [1]": 'calibrator.grid: applies only to the task "regression"; remove it',
    "task.kind = 'regression'\ncalibrator.grid = [2, 1]": "calibrator.grid: [2, 1] "
    "is not an ascending list of numbers",
    "task.kind = 'regression'\ncalibrator.grid = [inf]": (
        "calibrator.grid: [Infinity] is not a list of finite numbers; write a list such as "
        "[0.1, 0.5]"
    ),
    f"task.kind = 'regression'\ncalibrator.grid = [{10**400}]": "calibrator.grid: "
    f"[1{'0' * 58}… is not a list of finite numbers; write a list such as [0.1, 0.5]",
    "calibrator.distributions = 'full'": (
        'calibrator.distributions: applies only to the task "regression"; remove it'
    ),
    "task.kind = 'regression'\ncalibrator.distributions = 'scred'": (
        'calibrator.distributions: "scred" is not one of "none", "scored", "full"; did you '
        'mean "scored"?'
    ),
    "task.kind = 'regression'\ncalibrator.support = [0, 1]": (
        'calibrator.support: needs calibrator.distributions = "scored" or "full", or '
        "calibrator.coverage"
    ),
    "calibrator.label_rates = [0.5, 2]": (
        "calibrator.label_rates: [0.5, 2] must be two shares from 0.000001 to 1: of the labels of "
        "class 0, then of class 1"
    ),
    "task.scores = 'logit'\ncalibrator.label_rates = [0.5, 1]": (
        'calibrator.label_rates: needs calibrator.probability = "merged": the protected '
        "probability is about observations with labels only"
    ),
    "calibrator.support = [0, 1]": (
        'calibrator.support: applies only to the task "regression"; remove it'
    ),
    PROTECTED: (
        'calibrator.support: "protected" needs the ends of all labels; write [lowest, highest]'
    ),
    f"{PROTECTED}\ncalibrator.support = [1, 0]": (
        "calibrator.support: [1, 0] is not two numbers in ascending order"
    ),
    f"{PROTECTED}\ncalibrator.support = [0, 1]\ncalibrator.grid = [0.5]": (
        'calibrator.grid: is not for "protected"; remove it'
    ),
    f"{PROTECTED}\ncalibrator.support = [0, 1]\ncalibrator.max_age = '1d'": (
        'calibrator.max_age: is not for "protected"; remove it'
    ),
    f"{PROTECTED}\ncalibrator.support = [0, 1]\ncalibrator.half_life = '1d'": (
        'calibrator.half_life: is not for "protected"; remove it'
    ),
    f"{PROTECTED}\ncalibrator.coverage = 0.8": (
        'calibrator.support: "protected" needs the ends of all labels; write [lowest, highest]'
    ),
    "task.kind = 'regression'\ncalibrator.half_life = '1h'\ncalibrator.coverage = 0.8": (
        "calibrator.coverage: has no promise with unequal weights; forget by calibrator.window, "
        "or remove calibrator.half_life"
    ),
    "task.kind = 'regression'\ncalibrator.coverage = 0.8\n"
    "calibrator.kind = 'abers.regression:IVAPR'": (
        'calibrator.coverage: needs calibrator.kind = "ivapr" or "protected"'
    ),
    "calibrator.coverage = 0.8": (
        'calibrator.coverage: applies only to the task "regression"; remove it'
    ),
    f"{PROTECTED}\ncalibrator.support = [0, 1]\ncalibrator.coverage = 1.0": (
        "calibrator.coverage: 1.0 is too large; write less than 1.0"
    ),
    f"{PROTECTED}\ncalibrator.support = [0, 1]\ncalibrator.coverage = 0": (
        "calibrator.coverage: 0 is too small; write more than 0.0"
    ),
    "calibrator.base_weight = 1.0": "calibrator.base_weight: 1.0 is too large; write less than 1.0",
    "calibrator.base_weight = 0": "calibrator.base_weight: 0 is too small; write more than 0.0",
    f"{WHOLE} support = [1, 0]}}": (
        "calibrator.support: [1, 0] is not two numbers in ascending order"
    ),
    f"{WHOLE} support = [1]}}": "calibrator.support: [1] is not two numbers in ascending order",
    f"{WHOLE} support = [0, inf]}}": (
        "calibrator.support: [0, Infinity] is not a list of finite numbers; write a list such"
        " as [0.1, 0.5]"
    ),
    f"{WHOLE} support = [0, 1], grid = [0, 2]}}": (
        "calibrator.support: [0, 1] does not contain calibrator.grid; widen it"
    ),
    "task.kind = 'regression'\ncalibrator.kind = 'ivap'": (
        'calibrator.kind: "ivap" does not support the task "regression"; use "ivapr" or "protected"'
    ),
    "task = {kind = 'multiclass', classes = ['a', 'b']}\ncalibrator.kind = 'ivapr'": (
        'calibrator.kind: "ivapr" does not support the task "multiclass"; use "one-vs-rest" '
        'or "one-vs-one" or "protected" or "none"'
    ),
    "task = {kind = 'multiclass', classes = ['a', 'b']}\ncalibrator.kind = 'protectd'": (
        'calibrator.kind: "protectd" is not one of "one-vs-rest", "one-vs-one", '
        '"protected", "none", or "package.module:Class"; did you mean "protected"?'
    ),
    "task = {kind = 'multiclass', classes = ['a', 'b']}\ncalibrator.kind = 'protected'": (
        'calibrator.kind: "protected" needs probabilities; set task.scores = "probability"'
    ),
    "task = {kind = 'multiclass', classes = ['a', 'b']}\ncalibrator.probability = 'protected'": (
        'calibrator.probability: "protected" needs probabilities; set task.scores = "probability"'
    ),
    "task = {kind = 'multiclass', classes = ['a', 'b'], scores = 'probability'}\n"
    "calibrator = {kind = 'one-vs-one', probability = 'protected'}": (
        'calibrator.probability: "protected" needs calibrator.kind = "one-vs-rest" or '
        '"protected", not "one-vs-one"; remove it'
    ),
    "task = {kind = 'multiclass', classes = ['a', 'b'], scores = 'probability'}\n"
    "calibrator = {kind = 'protected', probability = 'merged'}": (
        'calibrator.probability: cannot be "merged" for "protected"; set calibrator.kind = '
        '"one-vs-rest"'
    ),
    "task = {kind = 'multiclass', scores = 'probability'}\ncalibrator.probability = 'protected'": (
        'task.classes: must be two or more different classes, such as ["cat", "dog"]'
    ),
    "task.kind = 'regression'\ncalibrator.probability = 'protected'": (
        'calibrator.probability: "protected" does not support the task "regression"; remove it'
    ),
    "calibrator.kind = 'beta'": (
        'calibrator.kind: "beta" needs probabilities; set task.scores = "probability"'
    ),
    "calibrator.kind = 'abers.calibration.baselines:BetaCalibration'": (
        'calibrator.kind: "abers.calibration.baselines:BetaCalibration" needs probabilities; set '
        'task.scores = "probability"'
    ),
    "calibrator.kind = 'ivp'": (
        'calibrator.kind: "ivp" is not one of "ivap", "cvap", "protected", "protected-cvap", '
        '"platt", "isotonic", "dir", "beta", "none", or "package.module:Class"; did you '
        'mean "ivap"?'
    ),
    "calibrator.kind = 'abers.regression.ivapr:IVAPR'": (
        'calibrator.kind: "abers.regression.ivapr:IVAPR" does not support the task "binary"; use '
        '"ivap" or "cvap" or "protected" or "protected-cvap" or "platt" or "isotonic" or "dir" or '
        '"beta" or "none"'
    ),
    "calibrator = {kind = 'none', window = 5}\ntask.scores = 'probability'": (
        'calibrator.window: is not for "none"; remove it'
    ),
    "calibrator.kind = 'none'": (
        'calibrator.kind: "none" needs probabilities; set task.scores = "probability"'
    ),
    "monitoring.tolerance = 0.8": "monitoring.tolerance: 0.8 is too small; write at least 1.0",
    "monitoring.tolerance = inf": "monitoring.tolerance: Infinity is too large; write at most "
    "1000.0",
    "monitoring.tolerance = '1.25'": (
        'monitoring.tolerance: "1.25" is not a number; write one, without quotes'
    ),
    "monitoring.tolerence = 1.5": ('monitoring.tolerence: unknown key; did you mean "tolerance"?'),
    "monitoring.average_run_length = 1": (
        "monitoring.average_run_length: 1 is not a run length; write a number of observations from "
        '2 to 2147483647, or a time such as "30d"'
    ),
    "monitoring.average_run_length = '30 days'": (
        'monitoring.average_run_length: "30 days" is not a run length; write a number of '
        'observations from 2 to 2147483647, or a time such as "30d"'
    ),
    "calibrator.kind = 'abers.nothing:Own'": (
        "calibrator.kind: 'abers.nothing:Own' cannot be imported: No module named 'abers.nothing'"
    ),
    "calibrator.kind = 'collections:deque'": (
        "calibrator.kind: 'collections:deque' is not a subclass of abers.base.Calibrator"
    ),
    "calibrator = {kind = 'platt', probability = 'protected'}": (
        'calibrator.probability: "protected" needs calibrator.kind = "ivap" or "cvap" or '
        '"protected" or "protected-cvap", not "platt"; remove it'
    ),
    "calibrator = {kind = 'protected', probability = 'merged'}": (
        'calibrator.probability: cannot be "merged" for "protected"; set calibrator.kind = "ivap"'
    ),
    "calibrator.probability = 'protectd'": (
        'calibrator.probability: "protectd" is not one of "protected", "merged"; did you mean '
        '"protected"?'
    ),
    "calibrator.raw_weight = 1.0": "calibrator.raw_weight: 1.0 is too large; write less than 1.0",
    "calibrator.raw_weight = 0": "calibrator.raw_weight: 0 is too small; write more than 0.0",
    "calibrator.kind = 5": "calibrator.kind: 5 is not a string; put it in quotes",
    "calibrator.kind = ''": (
        "calibrator.kind: must be a non-empty string; write one, or remove the key"
    ),
    "input.fields.score = {a = 'x', b = 'y'}": (
        'input.fields.score: must be a single field for the task "binary"'
    ),
    "input.fields.score = {}": (
        "input.fields.score: {} is not a field path; write one path, or one for each class: "
        '{cat = "p_cat"}'
    ),
    "task = {kind = 'multiclass', classes = ['a', 'b']}\ninput.fields.score = {a = 'x'}": (
        'input.fields.score: must have one field for each of ["a", "b"]'
    ),
    "task = {kind = 'multiclass', classes = ['a', 'b']}\nlearner.name = 'logistic'": ""
    "learner.name: logistic knows two classes only; choose softmax, or another of bayes, forest, "
    "logistic, softmax, tree",
    "task.kind = 'regression'\nlearner.name = 'logistic'": "learner.name: logistic: no "
    "such learner; short names are forest, linear, tree, and other regressors of river go by their "
    "full name, such as river.tree.HoeffdingTreeRegressor",
    "task.kind = 'regression'\nlearner.name = 'lineer'": (
        "learner.name: lineer: no such learner; short names are forest, linear, tree, and "
        "other regressors of river go by their full name, such as "
        'river.tree.HoeffdingTreeRegressor; did you mean "linear"?'
    ),
    # keys that contradict each other
    "calibrator = {window = 5, half_life = '1d'}": (
        "calibrator.half_life: cannot be combined with calibrator.window; remove one of them"
    ),
    "input = {labels = 'l.csv', delay = 5}": (
        "input.delay: cannot be combined with input.labels; remove one of them"
    ),
    "input = {delay = 5, fields = {label_time = 't'}}": (
        "input.fields.label_time: cannot be combined with input.delay; remove one of them"
    ),
    "input = {labels = 'l.csv', fields = {label_time = 't'}}": (
        "input.fields.label_time: cannot be combined with input.labels; remove one of them"
    ),
    "input.timezone = 'Europe/Berln'": (
        'input.timezone: "Europe/Berln" is not a known time zone; write a name such as '
        '"Europe/Berlin" or "UTC" (where the system has no time zones, install the package tzdata)'
    ),
    "input.label_fields = {id = 'a'}": "input.label_fields: needs a second input; set input.labels",
    "input.format = 'avro'": (
        'input.format: "avro" applies only to topics, in a section [kafka]; for files write '
        '"csv", "jsonl", "parquet"'
    ),
    "output.format = 'avro'": (
        "output.format: applies only to topics, in a section [kafka]; remove it"
    ),
    "schema_registry.url = 'https://registry'": (
        "schema_registry: applies only to topics, in a section [kafka]; remove it"
    ),
    "telemetry.endpoint = 'http://localhost:4318'": (
        "telemetry: applies only to topics, in a section [kafka]; remove it"
    ),
    "input.format = 'csv'": (
        'input.format: "csv" contradicts the file name stream.jsonl; remove it'
    ),
    # alarms
    "alerts.webhook = 'https://example.com'\nmonitoring.tests = false": (
        "alerts.webhook: never gets an alarm, because monitoring.tests = false; remove one of"
        " the two"
    ),
    "alerts.webhook = 'https://example.com'\nmonitoring.enabled = false": (
        "alerts.webhook: never gets an alarm, because monitoring.enabled = false; remove one "
        "of the two"
    ),
    # files
    "output.predictions = 'stream.jsonl'": 'output.predictions: "stream.jsonl" is '
    "input.observations already; name another file",
    "output.outcomes = './a/../stream.jsonl'": 'output.outcomes: "./a/../stream.jsonl" is '
    "input.observations already; name another file",
    "output.outcomes = '-'": 'output.outcomes: "-" is output.predictions already; '
    "name another file",
    "output = {predictions = 'p.csv', outcomes = 'p.csv.dead.jsonl'}": "output.dead_letters: "
    '"p.csv.dead.jsonl" is output.outcomes already; name another file',
    "input.labels = 'stream.jsonl'": 'input.labels: "stream.jsonl" is input.observations already; '
    "name another file",
    "state.path = 'stream.jsonl'": 'state.path: "stream.jsonl" is input.observations already; '
    "name another file",
    "state.path = '-'": 'state.path: "-" is not a file; write the name of a file',
    "output.predictions = 'p.xml'": (
        'output.predictions: "p.xml" has an unknown format; end the name in .csv or .jsonl '
        "(.gz or .zst may follow), or .parquet"
    ),
}


@pytest.mark.parametrize(("text", "line"), MISTAKES.items())
def test_mistakes(text: str, line: str) -> None:
    """A mistake is one line: the key, what is wrong, and how to fix it."""
    values = {"input": {"observations": "stream.jsonl"}} | tomllib.loads(text)
    values["input"] = {"observations": "stream.jsonl"} | values["input"]
    with pytest.raises(ConfigError) as error:
        load(flags=values, environ={})
    assert error.value.problems == (f"command line: {line}",)


def test_a_kind_that_is_no_text_next_to_a_learner() -> None:
    """A list as the kind of task is named as a mistake, also where a server has a learner."""
    with pytest.raises(ConfigError) as error:
        load(flags={"task": {"kind": []}, "serve": {"learner": "a.skops"}}, environ={})
    assert any("task.kind: [] is not" in one for one in error.value.problems)


@pytest.mark.parametrize("content", [b"id,score\na,0.5\n", b"PAR1\xff"])
@pytest.mark.parametrize("name", ["scores.csv", "scores.jsonl.gz", "scores.parquet"])
def test_a_file_of_records_is_no_configuration(tmp_path: Path, name: str, content: bytes) -> None:
    """A file of records in the place of a configuration names the command for it."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        load(str(path), environ={})
    line = f"{path}: is a file of records, no configuration; try: abers replay {path}"
    assert error.value.problems == (line,)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "d",
        "1",
        "1.5h",
        "-1s",
        "1 d",
        "1w",
        "٣d",
        f"{LARGEST_TIME}s",
        LARGEST_TIME + 1,
        "9" * 5000,
        -1,
        1.0,
    ],
)
def test_invalid_durations(given: object) -> None:
    """A duration is a whole number with a unit, or a whole number of milliseconds."""
    with pytest.raises(ConfigError, match=r"limits.allowed_lateness: .* is not a duration; write"):
        loaded(limits__allowed_lateness=given)


@pytest.mark.parametrize("name", ["stream", "stream.txt", "stream.txt.gz", "-"])
def test_an_input_of_unknown_format(name: str) -> None:
    """An input whose name does not imply a format needs one."""
    with pytest.raises(ConfigError, match=r"input.observations: unknown kind of file"):
        loaded(input__observations=name)
    assert loaded(input__observations=name, input__format="csv").input.format == "csv"


def test_a_format_for_one_input() -> None:
    """The format applies to the input whose name does not imply it."""
    config = loaded(input__observations="-", input__labels="labels.csv", input__format="jsonl")
    assert config.input.format == "jsonl"


def test_standard_input_and_output_are_two() -> None:
    """One run may use both standard input and standard output, but neither of them twice."""
    config = loaded(input__observations="-", input__format="csv")
    assert config.output.predictions == "-"
    with pytest.raises(ConfigError, match=r'input.labels: "-" is input.observations already'):
        loaded(input__observations="-", input__labels="-", input__format="csv")


def test_a_link_is_the_file_it_points_to(tmp_path: Path) -> None:
    """A link and its target are the same file."""
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "scores.jsonl")
    paths = [str(tmp_path / name) for name in ("scores.jsonl", "link.jsonl")]
    with pytest.raises(ConfigError, match=r"output.predictions: .* is input.observations already"):
        loaded(input__observations=paths[0], output__predictions=paths[1])


def test_learners() -> None:
    """A learner has a short name, or the full name of a river classifier."""
    pytest.importorskip("river")
    assert loaded(learner={}).settings().learner == "logistic"
    full = "river.tree.HoeffdingTreeClassifier"
    assert loaded(learner__name=full).settings().learner == full
    match = r'learner.name: logisitc: no such learner; short names .*; did you mean "logistic"\?'
    with pytest.raises(ConfigError, match=match):
        loaded(learner__name="logisitc")
    with pytest.raises(ConfigError, match="cannot be made with its defaults"):
        loaded(learner__name="river.multiclass.OneVsRestClassifier")


def test_learners_without_river(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without river the full names are unknown, so none is refused."""
    monkeypatch.setitem(sys.modules, "river", None)
    assert loaded(learner__name="river.own.Classifier").settings().learner == "river.own.Classifier"


def test_observations_are_missing(messages: Callable[..., list[str]]) -> None:
    """The only required key is reported as missing, with or without its section."""
    line = 'abers.toml: input.observations: is missing; write a file, "-" for standard input, '
    line += "or topics in a section [kafka]"
    assert messages("") == messages("[input]") == [line]
    assert messages("", {"ABERS_INPUT__DELAY": "5"}) == [line.replace("abers.toml", "environment")]


# Origins of mistakes


def test_mistakes_in_the_environment(messages: Callable[..., list[str]]) -> None:
    """Messages and suggestions name the variable."""
    environ = {
        "ABERS_INPUT__FEILDS": "a",
        "ABERS_INPUT__FIELDS__ID": "5",
        "ABERS_INPUT__FIELDS__PASSTHROUGH": '["a", 5]',
        "ABERS_LIMTS__ALLOWED_LATENESS": "1s",
        "ABERS_TASK__KIND__X": "5",
        "ABERS_OUTPUT__A\nB": "5",
    }
    assert sorted(messages('input.observations = "s.csv"', environ)) == [
        "environment: ABERS_INPUT__FEILDS: unknown key; did you mean ABERS_INPUT__FIELDS?",
        "environment: ABERS_INPUT__FIELDS__ID: 5 is not a string; put it in quotes",
        "environment: ABERS_INPUT__FIELDS__PASSTHROUGH: 5 is not a string; put it in quotes",
        (
            "environment: ABERS_LIMTS__ALLOWED_LATENESS: unknown key; did you mean "
            "ABERS_LIMITS__ALLOWED_LATENESS?"
        ),
        (
            "environment: ABERS_OUTPUT__A\\nB: unknown key; [output] has predictions, "
            "outcomes, dead_letters, format, on_bad_record, max_dead_letter_ratio"
        ),
        (
            'environment: ABERS_TASK__KIND__X: {"x": 5} is not one of "binary", "multiclass", '
            '"regression"'
        ),
    ]


def test_each_layer_is_named(messages: Callable[..., list[str]]) -> None:
    """A mistake names its own layer, whatever the other layers have in that section."""
    text = '[input]\nobservations = "s.csv"\n[limits]\nallowed_lateness = "x"'
    lines = messages(
        text, {"ABERS_LIMITS__MAX_CLOCK_SKEW": "y"}, {"limits.max_jump": "z", "task": {"kind": "k"}}
    )
    assert [line[: line.index(" is not")] for line in lines] == [
        'command line: task.kind: "k"',
        'abers.toml: limits.allowed_lateness: "x"',
        'environment: ABERS_LIMITS__MAX_CLOCK_SKEW: "y"',
        'command line: limits.max_jump: "z"',
    ]


def test_an_overridden_mistake(messages: Callable[..., list[str]]) -> None:
    """A value that a higher layer replaces is not checked."""
    text = '[input]\nobservations = "s.csv"\n[limits]\nallowed_lateness = "x"'
    assert messages(text, {"ABERS_LIMITS__ALLOWED_LATENESS": "1s"}) == []


def test_a_key_within_a_value(messages: Callable[..., list[str]]) -> None:
    """A layer that puts keys below a value of a lower layer is refused and named."""
    assert messages('input.observations = "s.csv"', {"ABERS_INPUT__OBSERVATIONS__X": "5"}) == [
        ("environment: ABERS_INPUT__OBSERVATIONS__X: input.observations is a value, not a section")
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[input]\nformat = csv", r"abers.toml: line 2, column 10: Invalid value"),
        ("a = 1\na = 2\n", r"abers.toml: line 2, column \d+: Cannot overwrite a value"),
        ("[input", "abers.toml: end of document: Expected .*"),
        (b"[input]\n\xff", "abers.toml: byte 9 is not UTF-8; save the file as UTF-8"),
        ("a = " + "[" * 5000, "abers.toml: is nested too deeply"),
        ("a = " + "9" * 5000, "abers.toml: Exceeds the limit .*"),
    ],
)
def test_invalid_toml(messages: Callable[..., list[str]], text: str | bytes, line: str) -> None:
    """A file that is not TOML is refused, with line and column if they are known."""
    (only,) = messages(text)
    assert re.fullmatch(line, only)


def test_missing_files(messages: Callable[..., list[str]]) -> None:
    """A missing file is reported with the closest name in its directory."""
    messages("")
    for name, line in {
        "abres.toml": "abres.toml: no such file; did you mean abers.toml?",
        "no/abers.toml": "no/abers.toml: no such file",
        ".": ".: is a directory; name a TOML file in it",
        "abers.toml/x": "abers.toml/x: cannot be read (Not a directory)",
    }.items():
        with pytest.raises(ConfigError) as error:
            load(name, environ={})
        assert error.value.problems == (line,)


# Any values

NAMES = sorted({key for path in keys_of() for key in path})
KEYS = st.sampled_from(NAMES) | st.text(max_size=5)
LEAVES = (
    st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["-", "a.csv", "5s", "csv", "probability", "tree", "river.tree.X"])
    | st.datetimes()
    | st.dates()
    | st.times()
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4)
)
WHOLES = st.fixed_dictionaries(
    {},
    optional={
        name: st.dictionaries(st.sampled_from([*info]) | KEYS, VALUES, max_size=4) | VALUES
        for name in SECTIONS
        if "." not in name
        if (info := [path[1] for path in keys_of() if path[0] == name and len(path) > 1])
    },
)


@given(WHOLES | st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, st.text() | st.just("{}")))
def test_anything(values: dict[str, Any], variables: dict[str, str]) -> None:
    """Any TOML and environment give a configuration, or lines that say why not."""
    environ = {f"ABERS_INPUT__{name.upper()}": value for name, value in variables.items()}
    flags = {name: value for name, value in values.items() if "." not in name}
    try:
        config = load(flags=flags, environ=environ)
    except ConfigError as error:
        lines = error.problems
    else:
        lines = (config.output.dead_letters_path,)
        assert config.label_fields()
        assert config.settings().label_timeout >= 0
    assert lines
    assert all(line.isprintable() and line for line in lines)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (
            {"calibrator.kind": "beta"},
            '--calibrator: "beta" needs probabilities; add --scores probability',
        ),
        (
            {"calibrator.window": 5, "calibrator.half_life": "1d"},
            "--half-life: cannot be combined with --window; remove one of them",
        ),
        (
            {"calibrator.kind": "none", "task.scores": "probability", "calibrator.max_age": "1d"},
            '--max-age: is not for "none"; leave it out',
        ),
        (
            {"calibrator.max_age": "soon"},
            (
                '--max-age: "soon" is not a duration; write "250ms", "5s", "5m", "2h" or "7d", '
                "or a whole number of milliseconds"
            ),
        ),
        (
            {"output.predictions": "a.csv"},
            '--output: "a.csv" is the input already; name another file',
        ),
        (
            {"input.labels": "b.csv", "output.predictions": "b.csv"},
            '--output: "b.csv" is --labels already; name another file',
        ),
        (
            {"input.labels": "b.csv", "input.delay": 5},
            "--delay: cannot be combined with --labels; remove one of them",
        ),
        (
            {"input.pos_label": ["yes", {}]},
            "--positive: {} is not a label; write a string, a number, true or false",
        ),
    ],
)
def test_mistakes_in_flags(given: dict[str, Any], line: str) -> None:
    """A command says the mistakes in its flags, and what to add, as they are written there."""
    with pytest.raises(OptionsError) as error:
        load(flags={"input.observations": "a.csv"} | given, environ={}, front="flag")
    assert error.value.problems == [line]


def test_a_variable_names_variables(messages: Callable[..., list[str]]) -> None:
    """A mistake in the environment names other options as variables, too."""
    environ = {"ABERS_KAFKA__STALL_TIMEOUT": '"5s"', "ABERS_KAFKA__SECURITY__KEYFILE": "k"}
    text = "kafka = {bootstrap_servers = 'b:1', observations = 'o', predictions = 'p'}\n"
    assert messages(text, environ) == [
        (
            "environment: ABERS_KAFKA__STALL_TIMEOUT: must be longer than "
            "ABERS_KAFKA__TRANSACTION_TIMEOUT"
        ),
        (
            "environment: ABERS_KAFKA__SECURITY__KEYFILE: applies only to TLS; set "
            'ABERS_KAFKA__SECURITY__PROTOCOL="SSL" or "SASL_SSL", or remove it'
        ),
    ]


@pytest.mark.parametrize(
    ("read", "cell", "key", "flag", "parameter"),
    [
        (LabelReader().one, "late", "input.pos_label", "--positive", "positive"),
        (LabelReader().one, -4, "task.kind", "--task regression", "task='regression'"),
        (TimeReader().one, "2026-03-01 00:00:00", "input.timezone", "--timezone", "zone"),
        (FeaturesReader().one, 5, "input.fields.x", "input.fields.x in a configuration", "x"),
        (ClassReader(["a"]).one, "b", "task.classes", "--score", "classes"),
    ],
)
def test_what_a_record_lacks_is_named_as_its_user_writes_it(
    read: Callable[[object], object], cell: object, key: str, flag: str, parameter: str
) -> None:
    """The error of a cell names a key that there is, its flag, or a parameter."""
    with pytest.raises(BadRecordError) as caught:
        read(cell)
    assert key in options()
    declared = options()[key].flag
    assert declared is None or flag.startswith(declared)
    assert key in caught.value.said("toml")
    assert flag in caught.value.said("flag")
    assert parameter in caught.value.said("python") == str(caught.value)


# Variables that nothing reads


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ABERS_CALIBRATOR_WINDOW", "ABERS_CALIBRATOR__WINDOW"),
        ("ABERS_CALIBRATOR_WIDNOW", "ABERS_CALIBRATOR__WINDOW"),
        ("abers_calibrator__window", "ABERS_CALIBRATOR__WINDOW"),
        ("ABERS_INPUT_FIELDS_LABEL_TIME", "ABERS_INPUT__FIELDS__LABEL_TIME"),
        ("ABERS_STATE_KYE", "ABERS_STATE_KEY"),
        ("ABERS_KAFKA_PASWORD", "ABERS_KAFKA_PASSWORD"),
    ],
)
def test_a_variable_that_nothing_reads(
    messages: Callable[..., list[str]], name: str, meant: str
) -> None:
    """A variable that is nearly one of ours is a mistake, after all others, with a guess."""
    others = messages("input.feilds = 5")
    line = f"environment: {name}: is not read; did you mean {meant}?"
    assert messages("input.feilds = 5", {name: "5"}) == [*others, line]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ABERS_DATA", "/data"),
        ("ABERS_SERVICE_HOST", "10.0.0.1"),
        ("ABERS_HTTP_PORT", "tcp://10.0.0.1:80"),  # of a service abers-http of Kubernetes
        ("CALIBRATOR_WINDOW", "5"),
    ],
)
def test_a_variable_of_something_else(
    messages: Callable[..., list[str]], name: str, value: str
) -> None:
    """A variable of another program is no mistake, with any value."""
    assert messages('input.observations = "a.csv"', {name: value}) == []


def test_variables_that_the_product_reads(messages: Callable[..., list[str]]) -> None:
    """No variable that a module of the product reads is taken for a mistake."""
    literal = re.compile(r'"(ABERS(?:_[A-Z]+)+)"')
    lines = (line for path in PRODUCT.rglob("*.py") for line in path.read_text().splitlines())
    names = {name for line in lines if ">>>" not in line for name in literal.findall(line)}
    assert len(names) > 5
    assert messages('input.observations = "a.csv"', dict.fromkeys(names, "x")) == []

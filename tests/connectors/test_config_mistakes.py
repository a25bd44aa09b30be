"""Configurations with mistakes: all are told at once, where they were made."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers.exceptions import ConfigError
from abers.stream.settings import LARGEST_TIME
from abers_connectors._config_errors import keys_of
from abers_connectors._config_types import MOST
from abers_connectors.config import Config, load

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def loaded(**flags: Any) -> Config:  # noqa: ANN401
    """Load stream.jsonl and some keys, in which a double underscore stands for a dot."""
    named = {name.replace("__", "."): value for name, value in flags.items()}
    return load(flags={"input.observations": "stream.jsonl"} | named, environ={})


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Give what is told of an abers.toml, with variables and flags beside it."""
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


# What is told


def test_five_mistakes(told: Callable[..., list[str]]) -> None:
    """All mistakes are told at once, each with what was probably meant."""
    text = """
    [task]
    scores = "probabilities"
    [calibrator]
    window = "100"
    [input]
    observations = "stream.jsonl"
    feilds = { id = "txn" }
    [limits]
    label_wait = "7 days"
    [outptu]
    predictions = "-"
    """
    assert sorted(told(text)) == [
        'abers.toml: calibrator.window: "100" is not a whole number; write one, without quotes',
        'abers.toml: input.feilds: unknown key, did you mean "fields"?',
        (
            'abers.toml: limits.label_wait: "7 days" is not a duration; '
            'write "250ms", "5s", "5m", "2h" or "7d", or a whole number of milliseconds'
        ),
        'abers.toml: outptu: unknown key, did you mean "output"?',
        (
            'abers.toml: task.scores: "probabilities" is none of "any", "probability", "logit", '
            'did you mean "probability"?'
        ),
    ]


def test_the_page_shows_what_is_told(told: Callable[..., list[str]]) -> None:
    """The mistakes on the page of the documentation are told in the words that stand there."""
    text = """
    [task]
    scores = "probabilities"
    [input]
    observations = "stream.jsonl"
    feilds = { id = "txn" }
    [output]
    outcomes = "-"
    [limits]
    label_wait = "7 days"
    """
    shown = re.search(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown is not None
    lines = told(text, {"ABERS_CALIBRATOR__WIDNOW": "5"})
    assert sorted(shown[1].splitlines()) == sorted(lines)


WHOLE = "task.kind = 'regression'\ncalibrator = {distributions = 'told',"
MISTAKES = {
    # unknown keys
    "calibrator = {halflife = '1d'}": 'calibrator.halflife: unknown key, did you mean "half_life"?',
    "input.score = 's'": 'input.score: unknown key, did you mean "input.fields.score"?',
    "window = 5": 'window: unknown key, did you mean "calibrator.window"?',
    "monitoring.zzz = 5": "monitoring.zzz: unknown key; [monitoring] has enabled, "
    "tests, tests_after, alarm_distance, alarm_quiet",
    'state."a\\nb" = 5': 'state."a\\nb": unknown key; [state] has path, every, shared, keep',
    "zzz = {}": "zzz: unknown key; a configuration has task, calibrator, learner, input, output, "
    "kafka, limits, state, http, monitoring, alerts",
    # wrong types
    "input.fields.id = 5": "input.fields.id: 5 is not a text; write one, in quotes",
    "input.fields.id = ''": "input.fields.id: is empty; write a name, or leave the key out",
    "input.fields.extra = 'a'": 'input.fields.extra: "a" is not a list; write ["a"]',
    "input.fields.extra = ['a', 5]": "input.fields.extra.1: 5 is not a text; write one, in quotes",
    "input.fields.x = []": "input.fields.x: [] names no fields; "
    'write a path, or a list of them: ["amount", "age"]',
    "input.positive = [2024-01-31]": 'input.positive.0: "2024-01-31" is not a label; '
    "write a text, a number, true or false",
    "input.positive = [nan]": "input.positive.0: NaN is not a label; "
    "write a text, a number, true or false",
    "input.delay = -1": "input.delay: -1 is not a delay; "
    'write a number of observations, or "250ms", "5s", "5m", "2h" or "7d"',
    "monitoring.enabled = 'yes'": 'monitoring.enabled: "yes" is neither true nor false; '
    "write one of these, without quotes",
    "output = 'x.csv'": "output: is no section; write its keys below a line [output]",
    'state.path = "a\\u0000b"': 'state.path: "a\\u0000b" is no path; leave out the null character',
    # numbers
    "calibrator.window = 0": "calibrator.window: 0 is too small; write at least 1",
    "calibrator.window = true": "calibrator.window: true is not a whole number; "
    "write one, without quotes",
    "calibrator.max_age = '0s'": 'calibrator.max_age: "0s" is no time at all; '
    'write "250ms", "5s", "5m", "2h" or "7d"',
    f"limits.max_early = {MOST + 1}": f"limits.max_early: {MOST + 1} is too large; "
    f"write at most {MOST}",
    "output.max_dead_per_1000 = 1001": "output.max_dead_per_1000: 1001 is too large; "
    "write at most 1000",
    # words
    "task.kind = 'binray'": 'task.kind: "binray" is none of "binary", "multiclass", "regression", '
    'did you mean "binary"?',
    "output.on_bad_record = 'ignore'": 'output.on_bad_record: "ignore" is none of '
    '"dead-letter", "stop"',
    "input.format = 'CSV'": 'input.format: "CSV" is none of "csv", "jsonl", "parquet", '
    'did you mean "csv"?',
    "task.scores = 5": 'task.scores: 5 is none of "any", "probability", "logit"',
    # tasks
    "task.kind = 'multiclass'": 'task.classes: name two or more different classes: ["cat", "dog"]',
    "task = {kind = 'multiclass', classes = ['a']}": "task.classes: name two or more different "
    'classes: ["cat", "dog"]',
    "task = {kind = 'multiclass', classes = ['a', 'b', 'a']}": "task.classes: name two or more "
    'different classes: ["cat", "dog"]',
    f"task = {{kind = 'multiclass', classes = ['a', '{'b' * 257}']}}": (
        f'task.classes: "{"b" * 59}… takes 257 bytes; shorten it, or raise '
        "limits.max_name_bytes = 256"
    ),
    f"input.fields.model = 'const:{'m' * 300}'": (
        f'input.fields.model: "{"m" * 59}… takes 300 bytes; shorten it, or raise '
        "limits.max_name_bytes = 256"
    ),
    "limits.max_name_bytes = 3\ninput.fields.segment = 'const:east'": (
        'input.fields.segment: "east" takes 4 bytes; shorten it, or raise limits.max_name_bytes = 3'
    ),
    "task.classes = ['a', 'b']": 'task.classes: is for the task "multiclass"; leave it out',
    "task = {kind = 'regression', classes = ['a', 'b']}": "task.classes: is for the task "
    '"multiclass"; leave it out',
    "task.kind = 'regression'\ninput.positive = [1]": 'input.positive: is for the task "binary"; '
    "leave it out",
    "task = {kind = 'regression', scores = 'probability'}": "task.scores: is for classes; "
    'write "any" for the task "regression"',
    "task = {kind = 'regression', quantiles = [0.5, 0.1]}": "task.quantiles: [0.5, 0.1] is not an "
    "ascending list of numbers between 0 and 1",
    "task = {kind = 'regression', quantiles = []}": "task.quantiles: [] is not an ascending list "
    "of numbers between 0 and 1",
    "task = {kind = 'regression', quantiles = [0.0]}": "task.quantiles: [0.0] is not an ascending "
    "list of numbers between 0 and 1",
    "task = {kind = 'regression', quantiles = [nan]}": "task.quantiles: [NaN] is not a list of "
    "finite numbers; write one such as [0.1, 0.5]",
    "task = {kind = 'regression', quantiles = 0.5}": "task.quantiles: 0.5 is not a list of "
    "finite numbers; write one such as [0.1, 0.5]",
    "task.quantiles = [0.5]": 'task.quantiles: is for the task "regression"; leave it out',
    "calibrator.thresholds = [1]": 'calibrator.thresholds: is for the task "regression"; '
    "leave it out",
    "task.kind = 'regression'\ncalibrator.thresholds = [2, 1]": "calibrator.thresholds: [2, 1] "
    "is not an ascending list of numbers",
    "task.kind = 'regression'\ncalibrator.thresholds = [inf]": "calibrator.thresholds: "
    "[Infinity] is not a list of finite numbers; write one such as [0.1, 0.5]",
    f"task.kind = 'regression'\ncalibrator.thresholds = [{10**400}]": "calibrator.thresholds: "
    f"[1{'0' * 58}… is not a list of finite numbers; write one such as [0.1, 0.5]",
    "calibrator.distributions = 'told'": "calibrator.distributions: is for the task "
    '"regression"; leave it out',
    "task.kind = 'regression'\ncalibrator.distributions = 'jugded'": "calibrator.distributions: "
    '"jugded" is none of "none", "judged", "told", did you mean "judged"?',
    "task.kind = 'regression'\ncalibrator.support = [0, 1]": "calibrator.support: is for "
    'calibrator.distributions = "judged" or "told"; leave it out',
    f"{WHOLE} support = [1, 0]}}": "calibrator.support: [1, 0] is not two numbers, the smaller one "
    "first",
    f"{WHOLE} support = [1]}}": "calibrator.support: [1] is not two numbers, the smaller one first",
    f"{WHOLE} support = [0, inf]}}": "calibrator.support: [0, Infinity] is not a list of finite "
    "numbers; write one such as [0.1, 0.5]",
    f"{WHOLE} support = [0, 1], thresholds = [0, 2]}}": "calibrator.support: [0, 1] does not span "
    "calibrator.thresholds; widen it",
    "task.kind = 'regression'\ncalibrator.kind = 'ivap'": 'calibrator.kind: "ivap" is none for '
    'the task "regression": "ivapr"',
    "task = {kind = 'multiclass', classes = ['a', 'b']}\ncalibrator.kind = 'ivapr'": ""
    'calibrator.kind: "ivapr" is none for the task "multiclass": "one-vs-rest" or "one-vs-one"',
    "calibrator.kind = 'beta'": 'calibrator.kind: "beta" is for probabilities; '
    'write task.scores = "probability"',
    "input.fields.score = {a = 'x', b = 'y'}": "input.fields.score: is one field for the task "
    '"binary"; name it',
    "input.fields.score = {}": "input.fields.score: {} names no field; "
    'write a path, or one by class: {cat = "p_cat"}',
    "task = {kind = 'multiclass', classes = ['a', 'b']}\ninput.fields.score = {a = 'x'}": ""
    'input.fields.score: names a field for each of ["a", "b"], and no other',
    "task = {kind = 'multiclass', classes = ['a', 'b']}\nlearner.name = 'logistic'": ""
    "learner.name: logistic knows two classes only; choose softmax, or another of bayes, forest, "
    "logistic, softmax, tree",
    "task.kind = 'regression'\nlearner.name = 'logistic'": "learner.name: logistic: no "
    "such learner; short names are forest, linear, tree, and other regressors of river go by their "
    "full name, such as river.tree.HoeffdingTreeRegressor",
    "task.kind = 'regression'\nlearner.name = 'lineer'": "learner.name: lineer: no such learner; "
    "short names are forest, linear, tree, and other regressors of river go by their full name, "
    'such as river.tree.HoeffdingTreeRegressor, did you mean "linear"?',
    # keys that contradict each other
    "calibrator = {window = 5, half_life = '1d'}": "calibrator.half_life: cannot go together with "
    "calibrator.window; leave one of them out",
    "input = {labels = 'l.csv', delay = 5}": "input.delay: cannot go together with input.labels; "
    "leave one of them out",
    "input.label_fields = {id = 'a'}": "input.label_fields: there is no second input; "
    "name it in input.labels",
    "input.format = 'csv'": 'input.format: "csv" contradicts the name stream.jsonl; '
    "leave format out",
    # alarms
    "alerts.webhook = 'https://example.com'\nmonitoring.tests = false": "alerts.webhook: is told "
    "of alarms, and with monitoring.tests = false there are none",
    "alerts.webhook = 'https://example.com'\nmonitoring.enabled = false": "alerts.webhook: is told "
    "of alarms, and with monitoring.enabled = false there are none",
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
    "state.path = '-'": 'state.path: "-" is no file; name one',
    "output.predictions = 'p.xml'": 'output.predictions: "p.xml" is an unknown kind of file; '
    "end its name in .csv or .jsonl (.gz or .zst may follow), or in .parquet",
}


@pytest.mark.parametrize(("text", "line"), MISTAKES.items())
def test_mistakes(text: str, line: str) -> None:
    """A mistake is told in one line: where it is, what is wrong, how to mend it."""
    values = {"input": {"observations": "stream.jsonl"}} | tomllib.loads(text)
    values["input"] = {"observations": "stream.jsonl"} | values["input"]
    with pytest.raises(ConfigError) as told:
        load(flags=values, environ={})
    assert told.value.problems == (f"command line: {line}",)


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
def test_what_is_no_duration(given: object) -> None:
    """A duration is a whole number with a unit, or a whole number of milliseconds."""
    with pytest.raises(ConfigError, match=r"limits.lateness: .* is not a duration; write"):
        loaded(limits__lateness=given)


@pytest.mark.parametrize("name", ["stream", "stream.txt", "stream.txt.gz", "-"])
def test_an_input_of_unknown_format(name: str) -> None:
    """An input whose name does not say its format needs one."""
    with pytest.raises(ConfigError, match=r"input.observations: unknown kind of file"):
        loaded(input__observations=name)
    assert loaded(input__observations=name, input__format="csv").input.format == "csv"


def test_a_format_that_one_input_needs() -> None:
    """The format is that of the input whose name does not say it."""
    config = loaded(input__observations="-", input__labels="labels.csv", input__format="jsonl")
    assert config.input.format == "jsonl"


def test_standard_input_and_output_are_two() -> None:
    """Standard input may be read and standard output written by one run; neither by two."""
    config = loaded(input__observations="-", input__format="csv")
    assert config.output.predictions == "-"
    with pytest.raises(ConfigError, match=r'input.labels: "-" is input.observations already'):
        loaded(input__observations="-", input__labels="-", input__format="csv")


def test_a_link_is_the_file_it_points_to(tmp_path: Path) -> None:
    """A file is known by what it is, not by its name."""
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "scores.jsonl")
    paths = [str(tmp_path / name) for name in ("scores.jsonl", "link.jsonl")]
    with pytest.raises(ConfigError, match=r"output.predictions: .* is input.observations already"):
        loaded(input__observations=paths[0], output__predictions=paths[1])


def test_learners() -> None:
    """A learner is one of the short names, or a classifier of river."""
    pytest.importorskip("river")
    assert loaded(learner={}).settings().learner == "logistic"
    full = "river.tree.HoeffdingTreeClassifier"
    assert loaded(learner__name=full).settings().learner == full
    told = 'learner.name: logisitc: no such learner; short names .*, did you mean "logistic"?'
    with pytest.raises(ConfigError, match=told):
        loaded(learner__name="logisitc")
    with pytest.raises(ConfigError, match="cannot be made with its defaults"):
        loaded(learner__name="river.multiclass.OneVsRestClassifier")


def test_learners_without_river(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without river nobody can say which learners there are, so none is refused here."""
    monkeypatch.setitem(sys.modules, "river", None)
    assert loaded(learner__name="river.own.Classifier").learner is not None


def test_observations_are_missing(told: Callable[..., list[str]]) -> None:
    """The one key that must be given is asked for, whether its section is there or not."""
    line = 'abers.toml: input.observations: missing; name a file, "-" for standard input, '
    line += "or topics in a section [kafka]"
    assert told("") == told("[input]") == [line]
    assert told("", {"ABERS_INPUT__DELAY": "5"}) == [line.replace("abers.toml", "environment")]


# Where mistakes are told to be


def test_mistakes_in_the_environment(told: Callable[..., list[str]]) -> None:
    """A variable is called by its name, and so is the one that was probably meant."""
    environ = {
        "ABERS_INPUT__FEILDS": "a",
        "ABERS_INPUT__FIELDS__ID": "5",
        "ABERS_INPUT__FIELDS__EXTRA": '["a", 5]',
        "ABERS_LIMTS__LATENESS": "1s",
        "ABERS_TASK__KIND__X": "5",
        "ABERS_OUTPUT__A\nB": "5",
    }
    assert sorted(told('input.observations = "s.csv"', environ)) == [
        "environment: ABERS_INPUT__FEILDS: unknown key, did you mean ABERS_INPUT__FIELDS?",
        "environment: ABERS_INPUT__FIELDS__EXTRA: 5 is not a text; write one, in quotes",
        "environment: ABERS_INPUT__FIELDS__ID: 5 is not a text; write one, in quotes",
        "environment: ABERS_LIMTS__LATENESS: unknown key, did you mean ABERS_LIMITS?",
        (
            "environment: ABERS_OUTPUT__A\\nB: unknown key; [output] has predictions, "
            "outcomes, dead_letters, on_bad_record, max_dead_per_1000"
        ),
        (
            'environment: ABERS_TASK__KIND__X: {"x": 5} is none of "binary", "multiclass", '
            '"regression"'
        ),
    ]


def test_each_layer_is_named(told: Callable[..., list[str]]) -> None:
    """A mistake is told where it was made, whatever the other layers have in that section."""
    text = '[input]\nobservations = "s.csv"\n[limits]\nlateness = "x"'
    lines = told(
        text, {"ABERS_LIMITS__MAX_AHEAD": "y"}, {"limits.max_jump": "z", "task": {"kind": "k"}}
    )
    assert [line[: line.index(" is no")] for line in lines] == [
        'command line: task.kind: "k"',
        'abers.toml: limits.lateness: "x"',
        'environment: ABERS_LIMITS__MAX_AHEAD: "y"',
        'command line: limits.max_jump: "z"',
    ]


def test_a_mistake_that_is_overruled(told: Callable[..., list[str]]) -> None:
    """A value that another layer replaces is not looked at."""
    text = '[input]\nobservations = "s.csv"\n[limits]\nlateness = "x"'
    assert told(text, {"ABERS_LIMITS__LATENESS": "1s"}) == []


def test_a_key_within_a_value(told: Callable[..., list[str]]) -> None:
    """A layer that goes on where a lower one ends is refused, and named."""
    assert told('input.observations = "s.csv"', {"ABERS_INPUT__OBSERVATIONS__X": "5"}) == [
        (
            "environment: ABERS_INPUT__OBSERVATIONS__X: "
            "input.observations is no section that holds keys"
        )
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[input]\nformat = csv", r"abers.toml: line 2, column 10: Invalid value"),
        ("a = 1\na = 2\n", r"abers.toml: line 2, column \d+: Cannot overwrite a value"),
        ("[input", "abers.toml: end of document: Expected .*"),
        (b"[input]\n\xff", "abers.toml: byte 9 is not UTF-8; save the file in that encoding"),
        ("a = " + "[" * 5000, "abers.toml: is nested too deeply"),
        ("a = " + "9" * 5000, "abers.toml: Exceeds the limit .*"),
    ],
)
def test_what_is_no_toml(told: Callable[..., list[str]], text: str | bytes, line: str) -> None:
    """A file that is no TOML is refused with line and column, where there are any."""
    (only,) = told(text)
    assert re.fullmatch(line, only)


def test_files_that_are_not_there(told: Callable[..., list[str]]) -> None:
    """A configuration that is missing is told with the closest name beside it."""
    told("")
    for name, line in {
        "abres.toml": "abres.toml: no such file; did you mean abers.toml?",
        "no/abers.toml": "no/abers.toml: no such file",
        ".": ".: is a directory; name a TOML file in it",
        "abers.toml/x": "abers.toml/x: cannot be read (Not a directory)",
    }.items():
        with pytest.raises(ConfigError) as error:
            load(name, environ={})
        assert error.value.problems == (line,)


# Anything at all

NAMES = sorted({key for path in keys_of(Config) for key in path})
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
SECTIONS = st.fixed_dictionaries(
    {},
    optional={
        name: st.dictionaries(st.sampled_from([*info]) | KEYS, VALUES, max_size=4) | VALUES
        for name in Config.model_fields
        if (info := [path[1] for path in keys_of(Config) if path[0] == name and len(path) > 1])
    },
)


@given(SECTIONS | st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, st.text() | st.just("{}")))
def test_anything(values: dict[str, Any], variables: dict[str, str]) -> None:
    """Whatever TOML and the environment hold, there is a configuration, or lines that say why."""
    environ = {f"ABERS_INPUT__{name.upper()}": value for name, value in variables.items()}
    flags = {name: value for name, value in values.items() if "." not in name}
    try:
        config = load(flags=flags, environ=environ)
    except ConfigError as error:
        lines = error.problems
    else:
        lines = (config.output.dead_letters_path,)
        assert config.label_fields()
        assert config.settings().label_wait >= 0
    assert lines
    assert all(line.isprintable() and line for line in lines)

"""Several calibrators on one stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from abers import ParameterError
from abers.stream import Settings
from abers_connectors.replay.comparison import contestants

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.connectors.conftest import Ran

CONFIG = """
[task]
scores = "probability"
[calibrator]
kind = "{kind}"
probability = "{probability}"
window = 50
[input]
observations = "stream.csv"
delay = 10
[output]
predictions = "{kind}.jsonl"
"""


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a small stream into the working directory."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{(7 * n) % 101 / 100},{int(n % 7 > 2)}" for n in range(200)]
    (tmp_path / "stream.csv").write_text("\n".join(["score,label", *rows]))


@pytest.mark.usefixtures("stream")
def test_each_is_what_it_would_be_alone(invoke: Callable[..., Ran], tmp_path: Path) -> None:
    """The table has the results of a run with each calibrator alone, and nothing is written."""
    for kind in ("ivap", "protected", "platt", "isotonic", "beta", "none"):
        of = "protected" if kind == "protected" else "merged"
        text = CONFIG.format(kind=kind, probability=of).replace(
            "[input]", '[input.fields]\nid = "row"\ntime = "row"\n[input]'
        )
        if kind == "none":  # which holds nothing
            text = text.replace("window = 50\n", "")
        (tmp_path / f"{kind}.toml").write_text(text)
    before = {*tmp_path.iterdir()}
    names = "ivap,protected,platt,isotonic,beta,none"
    ran = invoke("replay", "ivap.toml", "--compare", names, "--json")
    assert ran.code == 0, ran.err
    assert {*tmp_path.iterdir()} == before
    found = json.loads(ran.out)
    assert [*found] == names.split(",")
    for kind, compared in found.items():
        alone = json.loads(invoke("run", f"{kind}.toml", "--json").out)
        del alone["events_per_second"], compared["events_per_second"]
        assert compared == alone


@pytest.mark.usefixtures("stream")
def test_one_table(invoke: Callable[..., Ran]) -> None:
    """A row for the raw scores and for each calibrator goes to standard output."""
    ran = invoke("replay", "stream.csv", "--scores", "probability", "--compare", "ivap, isotonic")
    assert ran.code == 0, ran.err
    assert [line.split()[0] for line in ran.out.splitlines() if "0." in line] == [
        "raw",
        "ivap",
        "isotonic",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ivap,plat", "'plat' is not a calibrator of a binary task; .* did you mean platt"),
        ("", "'' is not a calibrator"),
        ("ivap,platt,ivap", "ivap is named twice"),
        ("beta", "calibrator: 'beta' needs probabilities"),
    ],
)
def test_names_that_do_not_go(words: str, message: str) -> None:
    """Each error names the option."""
    with pytest.raises(ParameterError, match=f"--compare: .*{message}"):
        contestants(words, Settings())


@pytest.mark.usefixtures("stream")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output", "x.jsonl"], "--output does not go with --compare"),
        (["--speed", "10x"], "--speed does not go with --compare"),
        (["--calibrator", "ivap"], "--calibrator does not go with --compare"),
        (["--coverage", "0.8"], "--coverage does not go with --compare"),
    ],
)
def test_options_that_do_not_go(
    invoke: Callable[..., Ran], options: list[str], message: str
) -> None:
    """A comparison writes only its table, as fast as it can."""
    ran = invoke("replay", "stream.csv", "--compare", "ivap", *options)
    assert ran.code == 2
    assert message in ran.err


def test_each_calibrator_of_numbers_has_the_coverage() -> None:
    """The coverage of a configuration is that of every calibrator with such intervals."""
    settings = Settings(
        task="regression",
        calibrator="protected",
        support=(0.0, 1.0),
        distributions="scored",
        coverage=0.8,
    )
    found = contestants("ivapr,protected", settings)
    assert [one.coverage for one in found] == [0.8, 0.8]


@pytest.mark.usefixtures("stream")
def test_folds_share_the_window(invoke: Callable[..., Ran]) -> None:
    """CVAP keeps as many labels as the others, and the command says how many."""
    words = ("replay", "stream.csv", "--compare", "ivap,cvap", "--window", "50", "--delay", "5")
    ran = invoke(*words)
    assert ran.code == 0, ran.err
    assert "cvap keeps the last 10 labels of each of 5 folds, together 50." in ran.err
    (ivap, cvap) = contestants("ivap,cvap", Settings(window=50))
    assert (ivap.window, cvap.window, cvap.folds) == (50, 10, 5)
    assert contestants("cvap", Settings())[0].window is None


@pytest.mark.usefixtures("stream")
def test_rates_are_for_those_that_take_them(invoke: Callable[..., Ran]) -> None:
    """With rates of labels the merged interval is compared with calibrators that take none."""
    options = ("--scores", "probability", "--label-rates", "0.5", "1", "--json")
    ran = invoke("replay", "stream.csv", "--compare", "ivap,platt", *options)
    assert ran.code == 0, ran.err
    plain = invoke("replay", "stream.csv", "--compare", "ivap,platt", *options[:2], "--json")
    found, without = json.loads(ran.out), json.loads(plain.out)
    assert found["ivap"] != without["ivap"]
    assert found["platt"]["calibrated"] == without["platt"]["calibrated"]

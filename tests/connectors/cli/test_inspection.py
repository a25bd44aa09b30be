"""The content of a saved state, and errors about other files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.keys import KEY, OTHER

from abers import ParameterError, StateError, VennAbers
from abers.stream import Label, Observation, Processor, Settings
from abers_connectors.cli.inspection import Held, Inspected, inspected, show_inspected
from abers_connectors.replay.state_file import StateFile

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the state is kept."""
    return tmp_path / "abers.state"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the key in the environment."""
    monkeypatch.setenv("ABERS_STATE_KEY", KEY)


def save(path: Path, settings: Settings | None = None) -> Processor:
    """Save a processor that has seen a little of everything."""
    processor = Processor(settings)
    processor.process_many(
        [
            Observation("a", 1_000, "fraud", 0.5, {"amount": 1.0}, segment="at"),
            Observation("b", 2_000, "fraud", 0.5, {"amount": 1.0}),
            Label("a", 3_000, "fraud", 1),
            Label("c", 4_000, "fraud", 1),
            Observation("", 5_000, "fraud", 0.5, {"amount": 1.0}),
        ]
    )
    StateFile(str(path), {}, KEY).save(processor, {"source": {"records": 5}})
    return processor


@pytest.mark.parametrize("monitors", [True, False])
def test_what_a_state_says(path: Path, *, monitors: bool) -> None:
    """Settings, position, clock, counters, pending events, and each calibrator are shown."""
    processor = save(path, Settings(monitors=monitors))
    found = inspected(str(path))
    assert found.path == str(path)
    assert found.bytes == path.stat().st_size
    assert found.sealed
    assert found.settings["monitors"] is monitors
    assert found.position == {"source": {"records": 5}, "files": {}, "layout": 1}
    assert found.clock == 4_000
    assert found.counters == processor.counters
    assert found.accounts == processor.accounts
    assert (found.waiting_for_labels, found.waiting_for_observations) == (1, 1)
    assert (found.remembered_ids, found.learner_bytes) == (1, 0)
    one: Any = {
        "log_loss": pytest.approx(0.6931, abs=1e-4),
        "log_loss_infinite": 0,
        "brier": 0.25,
        "ece": 0.5,
    }
    none = {"log_loss": None, "log_loss_infinite": 0, "brier": None, "ece": None}
    assert found.held == [
        Held("fraud", "at", 1, one if monitors else {}),
        Held("fraud", "", 0, none if monitors else {}),  # type: ignore[arg-type]
    ]


def test_learners_are_counted_and_not_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of the learners is shown without reading a pickle."""
    save(path, Settings(learner="logistic"))
    monkeypatch.setattr("pickle.loads", None)
    assert inspected(str(path)).learner_bytes > 100


@pytest.mark.parametrize(("key", "why"), [("", "there is no key"), (OTHER, "under another key")])
def test_a_sealed_state_needs_its_key(
    path: Path, monkeypatch: pytest.MonkeyPatch, key: str, why: str
) -> None:
    """Without it the file is named, and what to do, and no key is shown."""
    save(path)
    monkeypatch.setenv("ABERS_STATE_KEY", key)
    with pytest.raises(StateError, match=rf"abers\.state: .*{why}") as refusal:
        inspected(str(path))
    assert not any(one in str(refusal.value) for one in (KEY, OTHER))


@pytest.mark.parametrize("key", ["", KEY])
def test_an_open_state_is_shown_as_such(
    path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """A state without a seal can be looked at whether there is a key or not."""
    monkeypatch.delenv("ABERS_STATE_KEY")
    StateFile(str(path), {}).save(Processor(), {})
    monkeypatch.setenv("ABERS_STATE_KEY", key)
    assert not inspected(str(path)).sealed


def test_all_of_it_can_be_written_as_json(path: Path) -> None:
    """The record of what was found is plain JSON."""
    save(path)
    record = msgspec.json.decode(msgspec.json.encode(inspected(str(path))))
    assert record["held"][0]["model"] == "fraud"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a snapshot of a processor"),
        (b"id,score\na,0.5\n", "not a snapshot of a processor"),
        (VennAbers().to_bytes(), r"the file is a calibrator .*VennAbers\.from_bytes"),
    ],
)
def test_what_is_no_state(path: Path, content: bytes, message: str) -> None:
    """A file of another kind is named as such."""
    path.write_bytes(content)
    with pytest.raises(StateError, match=rf"abers\.state: {message}"):
        inspected(str(path))


@given(st.data())
def test_a_damaged_state(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """With any byte changed, or anything cut off, it is refused by name."""
    path = tmp_path_factory.mktemp("state") / "abers.state"
    save(path)
    blob = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(blob) - 1))
    if data.draw(st.booleans()):
        del blob[place:]
    else:
        blob[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(blob)
    with pytest.raises(StateError, match=r"abers\.state: .*; (restore|load|give)"):
        inspected(str(path))


def test_no_such_file(tmp_path: Path) -> None:
    """A missing file is a usage error."""
    with pytest.raises(ParameterError, match="nothing: No such file or directory; name a file"):
        inspected(str(tmp_path / "nothing"))
    with pytest.raises(ParameterError, match="Is a directory; name a file that"):
        inspected(str(tmp_path))


def small(clock: int | None) -> Inspected:
    """Return the content of a small state."""
    return Inspected(
        path="[b]abers.state",
        bytes=12345,
        sealed=True,
        version="0.1.0",
        settings={"window": 7, "learner": None, "max_age": 3_600_000},
        position={"source": {"records": 3}, "files": {"input.observations": "in.csv"}},
        clock=clock,
        counters={"observations": 3, "labels": 0},
        accounts=Processor().accounts | {"observations": 3, "events": 3, "predictions": 2},
        waiting_for_labels=2,
        waiting_for_observations=1,
        remembered_ids=0,
        learner_bytes=0,
        held=[Held("fraud", "", 1000, {"log_loss": 0.5, "brier": 0.25, "ece": None})],
    )


def test_a_state_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """The content of a state goes to standard output, in words; also a time that is no date."""
    show_inspected(small(0))
    out = capsys.readouterr().out
    assert "[b]abers.state, 12,345 bytes, written by abers 0.1.0" in out
    assert "0 (1970-01-01 00:00:00+00:00)" in out
    assert re.search(r"setting window +7 *\n", out)
    assert re.search(r"setting max_age +1 hour *\n", out)
    assert "setting learner" not in out  # the default
    assert re.search(r"observations +3 *\n", out)
    assert re.search(r"events +3 events: 2 predictions *\n", out)
    assert re.search(r"does not add up +3 events: 2 predictions. These are 2, not 3", out)
    assert re.search(r"position +after 3 records of in.csv *\n", out)
    assert re.search(r"fraud +1,000 +0.5000 +0.2500 +- *\n", out)
    show_inspected(small(2**53 - 1))
    assert "(no date)" in capsys.readouterr().out
    show_inspected(small(None))
    assert re.search(r"clock +none", capsys.readouterr().out)


@pytest.mark.parametrize(("labels", "more"), [(20, ", labels @20"), (-1, "")])
def test_the_position_of_a_partition(
    capsys: pytest.CaptureFixture[str], labels: int, more: str
) -> None:
    """The position of a Kafka partition is shown in words."""
    place = {"app": "a", "partition": 3, "batch": 7, "changelog": 12, "following": [10, labels]}
    show_inspected(msgspec.structs.replace(small(0), position=place))
    out = " ".join(capsys.readouterr().out.split())
    assert (
        f"a[3] before batch 7; the changelog continues @12, observations @10{more} waiting" in out
    )


@pytest.mark.parametrize(
    ("position", "text"),
    [
        ({"inputs": [{"known": {"records": 3}}, {"at": {"records": 1200}}]}, "3 records and 1,200"),
        ({"at": {"records": 2}, "known": {"records": 5}, "clock": 7}, "after 5 records"),
        ({"at": None, "known": None}, "at the beginning"),
    ],
)
def test_the_position_of_files(
    capsys: pytest.CaptureFixture[str], position: dict[str, Any], text: str
) -> None:
    """The position of a run over files is the number of records read of each."""
    show_inspected(msgspec.structs.replace(small(0), position={"source": position}))
    assert text in " ".join(capsys.readouterr().out.split())

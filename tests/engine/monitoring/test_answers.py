"""The rules by which sums become answers, and their sentences."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from abers.backends import core
from abers.monitoring.answers import Answers, Sums, answers_of
from abers.monitoring.formats import NO_BREAK

DAY = 86_400_000
START = 1_388_534_400_000  # 1 Jan 2014


def sums(raw: Any, served: Any, labels: Any, **given: Any) -> Sums:  # noqa: ANN401 - columns
    """Return the sums of a stream with a row a minute, behind a warm-up of 300 like it."""
    one = core.AnswerSums(1.25, 1)
    one.skip(raw[:300], served[:300])
    n = len(labels)
    one.add(raw, served, labels, 300 + np.arange(n), START + 60_000 * np.arange(n))
    known: dict[str, Any] = {
        "warm_up": one.skipped,
        "came": n + 300,
        "grace_period": 200,
        "views": ("raw", "calibrated"),
        "incidents": {},
        "parts": (),
        "tolerance": 1.25,
    }
    return Sums(one.now(), one.whole(), one.trail(), **known | given)


def drawn(n: int, odds: float = 1.0, seed: int = 2) -> tuple[Any, Any, Any]:
    """Return raw forecasts whose odds are so many times too high, right ones, and labels."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2.0, 5.0, n)
    return odds * p / (1.0 - p + odds * p), p, (rng.random(n) < p).astype(float)


def states(found: Answers) -> list[str]:
    """Return the three states."""
    return [one.state for one in found.answers]


def plain(text: str) -> str:
    """Return a sentence with usual spaces."""
    return text.replace(NO_BREAK, " ")


def test_a_model_that_is_off_and_mended() -> None:
    """Raw odds twice too high are No; the right ones Yes; and calibration pays."""
    found = answers_of([sums(*drawn(5_500, 2.0))])
    assert states(found) == ["no", "yes", "yes"]
    model, served, pays = found.answers
    assert found.now is not None
    (everything, *_) = found.now.views["raw"].rows
    assert (model.group, model.number, model.of) == (None, everything.gap, 5_500)
    promised, came = (
        f"{100 * (one or 0.0):.1f} %" for one in (everything.promised, everything.came)
    )
    assert plain(model.sentence).startswith(f"Promised {promised}, came {came}: ")
    assert "points too high (range " in plain(model.sentence)
    assert plain(model.sentence).endswith("in 5,500 labels.")
    assert plain(served.sentence).startswith("Promised 28.")
    assert "lower, at least " in plain(pays.sentence)
    assert pays.low is not None
    assert pays.number is not None
    assert 0.0 < pays.low < pays.number
    assert found.wrong_by == 0.0
    assert found.now.views["raw"].wrong_by > 100.0


def test_calibration_that_costs() -> None:
    """If what is served is off and the model is right, calibration does not pay."""
    wrong, right, labels = drawn(5_500, 2.0)
    found = answers_of([sums(right, wrong, labels)])
    assert states(found)[1:] == ["no", "no"]
    assert "higher, at least " in plain(found["pays"].sentence)


def test_few_labels_decide_nothing() -> None:
    """The sentence says how far off is possible, and what does not matter."""
    found = answers_of([sums(*drawn(300))])
    assert states(found) == ["undecided"] * 3
    assert plain(found["model"].sentence).startswith("No fault found; ")
    assert "is possible (tolerance " in found["model"].sentence


def test_an_incident_that_is_not_seen_any_more() -> None:
    """While an incident is open and the main rows are right, the state is recovering."""
    columns = drawn(5_500)
    found = answers_of([sums(*columns, incidents={"raw": START})], zone="Europe/Berlin")
    assert states(found)[:2] == ["recovering", "yes"]
    sentence = plain(found["model"].sentence)
    assert sentence == "The fault of 1 Jan 2014 is not seen in the latest 5,500 labels."
    assert found["model"].since == START


def test_an_incident_that_is_still_seen() -> None:
    """An incident changes no answer but by its time while a main row is not right."""
    columns = drawn(5_500, 2.0)
    found = answers_of([sums(*columns, incidents={"raw": START})])
    assert found["model"].state == "no"
    assert found["model"].since == START


def test_the_warm_up() -> None:
    """Before the first label counts, all wait; the sentence says for how many."""
    empty = core.AnswerSums(1.25, 1)
    one = Sums(empty.now(), empty.whole(), [], 36, 36, 200, ("raw", "calibrated"), {}, (), 1.25)
    found = answers_of([one])
    assert states(found) == ["waiting"] * 3
    assert (found.now, found.whole, found.over_time) == (None, None, [])
    assert found["pays"].sentence == "36 of 200 labels."


def test_labels_that_came_wait_for_earlier_ones() -> None:
    """Where enough labels came and none counts, the sentence says what they wait for."""
    empty = core.AnswerSums(1.25, 1)
    one = Sums(empty.now(), empty.whole(), [], 36, 900, 200, ("raw", "calibrated"), {}, (), 1.25)
    said = "No label after the warm-up counts yet: an earlier prediction waits for its own."
    assert answers_of([one])["model"].sentence == said


def test_a_question_that_has_no_answer() -> None:
    """A question that is not answered raises a KeyError with those that are."""
    _, p, labels = drawn(5_500)
    with pytest.raises(KeyError, match=r"'pay' is not answered here; .* 'model', 'calibrated', 'p"):
        answers_of([sums(p, p, labels)])["pay"]


@pytest.mark.parametrize(
    ("views", "expected"),
    [(("calibrated",), ["undecided", "yes", "undecided"]), (("raw",), ["yes", "yes", "undecided"])],
)
def test_without_two_views(views: tuple[str, ...], expected: list[str]) -> None:
    """Scores that are no probabilities promise nothing; served as they are, nothing is saved."""
    _, p, labels = drawn(5_500)
    found = answers_of([sums(p, p, labels, views=views)])
    assert states(found) == expected
    assert found["pays"].sentence


def test_partitions_count_together() -> None:
    """Counts of partitions are added; the range is that of the sum of squares of both."""
    parts = [drawn(2_750, seed=seed) for seed in (1, 2)]
    found = answers_of([sums(*one) for one in parts])
    assert found.now is not None
    assert (found.now.labels, found.now.first_row, found.warm_up) == (5_500, None, None)
    p, y = (np.concatenate([one[k] for one in parts]) for k in (1, 2))
    row = found.now.views["calibrated"].rows[0]
    margin = core.margin(float(((y - p) ** 2).sum()), 0, 0.05) / 55.0
    assert row.gap == pytest.approx(100.0 * (y - p).mean())
    assert (row.low, row.high) == pytest.approx((row.gap - margin, row.gap + margin))
    assert sum(point.labels for point in found.over_time) == 5_500
    assert found.over_time[0].first_row is None


def test_raw_probabilities_of_0_and_1() -> None:
    """An infinite loss is said in words; what is saved at least is still known."""
    raw, p, labels = drawn(5_500, 2.0)
    raw[10], labels[10] = 0.0, 1.0
    found = answers_of([sums(raw, p, labels)])
    assert found["pays"].state == "yes"
    said = "The raw log loss is infinite: 1 raw prediction gave what came the probability 0."
    assert found["pays"].sentence == said
    assert found.whole is not None
    assert found.whole.losses is not None
    assert found.whole.losses.raw is None
    assert found.whole.losses.nats_high is None


def test_both_log_losses_are_infinite() -> None:
    """The sentence says of which log losses how many labels make them infinite."""
    raw, p, labels = drawn(5_500, 2.0)
    raw[10:12], p[20], labels[[10, 11, 20]] = 0.0, 0.0, 1.0
    said = answers_of([sums(raw, p, labels)])["pays"].sentence
    assert said == (
        "The raw and calibrated log losses are infinite: 2 raw predictions and 1 calibrated "
        "prediction gave what came the probability 0."
    )


@pytest.mark.parametrize(
    ("certain", "said"),
    [
        ((0, 1), "2 raw predictions and 1 calibrated prediction had"),
        ((0, 0), "2 raw predictions had"),
        ((1, 1), "1 calibrated prediction had"),
    ],
)
def test_certain_predictions_leave_it_undecided(certain: tuple[int, int], said: str) -> None:
    """Where 0 or 1 leaves a saving without a limit, the answer says so instead of a range."""
    raw, p, labels = drawn(300)
    first, last = certain
    if not first:
        raw[10:12], labels[10:12] = (0.0, 1.0), (0.0, 1.0)
    if last:
        p[20], labels[20] = 0.0, 0.0
    pays = answers_of([sums(raw, p, labels)])["pays"]
    assert pays.state == "undecided"
    assert pays.low is None or pays.high is None
    assert pays.number is not None
    assert pays.sentence.endswith(f", no range, as {said} a probability of 0 or 1.")


def test_no_more_than_all_of_a_loss_is_saved() -> None:
    """A saving ends at 100 % where all labels are of one class, as no loss is below 0."""
    labels = np.ones(400)
    found = answers_of([sums(np.full(400, 0.5), np.full(400, 0.999), labels)])
    assert found.whole is not None
    losses = found.whole.losses
    assert losses is not None
    assert losses.high == 1.0
    assert losses.nats_high == losses.raw == pytest.approx(np.log(2.0))
    assert losses.low is not None
    assert losses.saved is not None
    assert losses.low <= losses.saved == pytest.approx(1.0 + np.log(0.999) / np.log(2.0))


def test_the_record_is_json() -> None:
    """All numbers are finite, and times are in UTC."""
    record = answers_of([sums(*drawn(5_500, 2.0))], zone="Asia/Tokyo").record()
    text = json.dumps(record, allow_nan=False)
    assert json.loads(text)["now"]["start"] == "2014-01-01T00:00:00.000+00:00"
    assert record["wrong_by"] == 0.0


def test_numbers_without_a_median() -> None:
    """Intervals that are too wide are No; a single number promises nothing."""
    rng = np.random.default_rng(1)
    n = 5_000
    inside = (rng.random(n) < 0.96).astype(float)
    rows = np.column_stack((inside, np.zeros(n), np.full(n, 2.0), np.ones(n), np.full(n, np.nan)))
    one = core.IntervalSums(1, 11_112)
    one.add(rows, np.arange(n), START + np.arange(n))
    parts: tuple[float, ...] = (0.9,)
    known = Sums(
        one.now(), one.whole(), one.trail(), None, n, 200, ("calibrated",), {}, parts, 1.25
    )
    found = answers_of([known._replace(of_numbers=True)])
    assert states(found) == ["undecided", "no", "undecided"]
    sentence = plain(found["calibrated"].sentence)
    assert sentence.startswith("Intervals of 90 %: promised 90.0 %, inside 9")
    assert " points too wide (range " in sentence
    json.dumps(found.record(), allow_nan=False)

"""Every number of the answers, from what a stream put out: predictions and labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.engine.monitoring import answers_recomputed as anew
from tests.oracles.calibration_error import calibration_error

from abers.stream import Events, Label, Observation, Processor, Settings

START, MINUTE = 1_700_000_000_000, 60_000
TIMEOUT, GRACE = 600 * MINUTE, 150
CLASSES = ("a", "b", "c")
NAMES = ("labels", "came_count", "promised_sum", "gap", "low", "high")
ENDS = ("tolerance_low", "tolerance_high")


class Stream(NamedTuple):
    """What a processor put out about a model, in the order of the predictions."""

    predictions: list[Any]
    labels: list[Any]  # None where none came
    times: Any
    warm_up: int  # predictions before enough labels came
    settled: int  # predictions up to the first that waits
    answers: Any

    @property
    def rows(self) -> list[int]:
        """Rows that count: with a label, behind the warm-up, up to the first that waits."""
        return [k for k in range(self.warm_up, self.settled) if self.labels[k] is not None]


def streamed(settings: Settings, scores: Any, labels: Any, batch: int = 500) -> list[Stream]:  # noqa: ANN401
    """Run a stream of two segments whose labels come late, by their value, or never."""
    rng = np.random.default_rng(5)
    n = len(scores)
    first = np.array([hash_of(one) for one in labels])
    delays = rng.exponential(np.where(first, 30.0, 200.0)) + 1.0
    delays[rng.random(n) < 0.06] = np.inf
    arrivals = [(float(k), 0, k) for k in range(n)]
    arrivals += [(k + delays[k], 1, k) for k in range(n) if delays[k] < np.inf]
    arrivals = sorted(one for one in arrivals if one[0] < n)
    events: list[Any] = []
    for at, is_label, k in arrivals:
        time, segment = START + int(at * MINUTE), "st"[k % 2]
        if is_label:
            events.append(Label(f"{k}", time, "m", labels[k]))
        else:
            events.append(Observation(f"{k}", time, "m", scores[k], segment=segment))
    processor = Processor(settings)
    predictions, outcomes = list[Any](), dict[str, Any]()
    for begin in range(0, len(events), batch):
        outputs = processor.process_batch(Events.of(events[begin : begin + batch]))
        predictions += [*outputs.predictions]
        outcomes |= {one.id: one.label for one in outputs.outcomes or ()}
    clock = max(event.time for event in events)
    return [
        _of_segment(processor, predictions, outcomes, events, clock, segment) for segment in "st"
    ]


def hash_of(label: Any) -> bool:  # noqa: ANN401 - of any task
    """Return whether a label comes soon."""
    return label in {1, "a"} or (isinstance(label, float) and label > 0.0)


def _of_segment(  # noqa: PLR0913, PLR0917 - what a stream left
    processor: Processor,
    predictions: list[Any],
    outcomes: dict[str, Any],
    events: list[Any],
    clock: int,
    segment: str,
) -> Stream:
    mine = [one for one in predictions if one.segment == segment]
    came, before = 0, dict[str, int]()
    for event in events:
        if "st"[int(event.id) % 2] == segment:
            if isinstance(event, Observation):
                before[event.id] = came
            else:
                came += event.id in outcomes
    labels = [outcomes.get(one.id) for one in mine]
    warm_up = sum(before[one.id] < GRACE for one in mine)
    waits = [
        label is None and one.time + TIMEOUT >= clock
        for one, label in zip(mine, labels, strict=True)
    ]
    settled = waits.index(True) if any(waits) else len(mine)
    monitor = processor.monitors[processor.keys.index(("m", segment))]
    times = np.array([one.time for one in mine])
    return Stream(mine, labels, times, warm_up, settled, monitor.answers())


def check_period(period: Any, stream: Stream, rows: list[int]) -> None:  # noqa: ANN401
    """Compare the rows and the times of a period."""
    assert (period.first_row, period.last_row) == (rows[0] + 1, rows[-1] + 1)
    assert (period.start, period.until) == (stream.times[rows[0]], stream.times[rows].max())
    assert period.labels == len(rows)


def check_view(  # noqa: PLR0913 - what a view is made of
    view: Any,  # noqa: ANN401
    p: Any,  # noqa: ANN401
    y: Any,  # noqa: ANN401
    before: Any,  # noqa: ANN401
    share: float = 1.0,
    *,
    merged: bool,
) -> None:
    """Compare all rows of a view with those of numpy."""
    cut, tenths = anew.groups(before, merged=merged)
    assert view.cut == pytest.approx(cut)
    inside = {"all": p >= 0.0, "lower": p < cut, "upper": p >= cut}
    names = {"all": "All", "lower": f"< {cut:.2f}", "upper": f"≥ {cut:.2f}"}
    for a, b in tenths if len(tenths) > 1 else []:
        key = f"tenth-{round(10 * a)}"
        inside[key] = (p >= a) & ((p < b) | (b == 1.0))
        names[key] = f"< {b}" if a == 0.0 else f"≥ {a}" if b == 1.0 else f"{a}\N{EN DASH}{b}"
    inside = {key: rows for key, rows in inside.items() if rows.any()}
    assert {row.key for row in view.rows} == {*inside}
    for row in view.rows:
        level = anew.TENTH if row.key.startswith("tenth") else anew.MAIN
        part = anew.counted(p[inside[row.key]], y[inside[row.key]], 1.25, level * share)
        assert row.name == names[row.key]
        assert [getattr(row, name) for name in (*NAMES, *ENDS)] == pytest.approx(list(part))
        assert row.promised == pytest.approx(part.promised / part.labels)
        assert row.came == pytest.approx(part.came / part.labels)
        assert row.status == status(part)
    if share == 1.0:
        check_error(view.error, p, y, tenths)
    else:
        assert view.error is None


def check_error(error: Any, p: Any, y: Any, tenths: list[tuple[float, float]]) -> None:  # noqa: ANN401
    """Compare the calibration error over the tenths with that of their sums."""
    bins = []
    for a, b in tenths:
        rows = (p >= a) & ((p < b) | (b == 1.0))
        squares = ((y - p)[rows] ** 2).sum()
        bins.append([float(one) for one in (rows.sum(), y[rows].sum(), p[rows].sum(), squares)])
    ends = calibration_error(bins, anew.LEVEL)
    assert [error.low, error.high] == pytest.approx([one / len(p) for one in ends], abs=1e-12)
    assert error.plain == pytest.approx(sum(abs(one[1] - one[2]) for one in bins) / len(p))
    assert error.labels == len(p)


def status(part: anew.Part) -> str:
    """Return what a range says."""
    if part.tolerance_low <= part.low and part.high <= part.tolerance_high:
        return "right"
    if part.high < part.tolerance_low or part.low > part.tolerance_high:
        return "too high" if part.gap < 0 else "too low"
    if part.high < 0 or part.low > 0:
        return "leans high" if part.gap < 0 else "leans low"
    return "undecided"


def check_losses(losses: Any, both: list[Any], came: Any) -> None:  # noqa: ANN401
    """Compare losses and the range of what was saved."""
    for name, value in anew.saved(both[0], both[1], came).items():
        assert getattr(losses, name) == pytest.approx(value, rel=1e-9, abs=1e-12), name


def check_trail(points: Any, stream: Stream, p: Any, y: Any, cut: float) -> None:  # noqa: ANN401
    """Compare the points over time: they follow each other, and have the sums of their rows."""
    rows, at = stream.rows, 0
    assert 1 < len(points) <= 64
    for point in points:
        part = slice(at, at + point.labels)
        check_period(point, stream, rows[part])
        raw, served = p["raw"][part], p["calibrated"][part]
        inside = {"all": raw >= 0, "lower": raw < cut, "upper": raw >= cut}
        assert {*point.groups} == {key for key, one in inside.items() if one.any()}
        for key, dot in point.groups.items():
            assert dot.labels == inside[key].sum()
            for view, of_view in (("raw", raw), ("calibrated", served)):
                mine, came = of_view[inside[key]], y[view][part][inside[key]]
                low, high = anew.gap_range(mine, came, anew.LEVEL / 2)
                assert dot.came[view] == pytest.approx(came.mean())
                assert dot.promised[view] == pytest.approx(mine.mean())
                assert dot.low[view] == pytest.approx(mine.mean() + low / 100)
                assert dot.high[view] == pytest.approx(mine.mean() + high / 100)
        at += point.labels
    assert at == len(rows)


SETTINGS: dict[str, Any] = {"label_timeout": TIMEOUT, "grace_period": GRACE}


@pytest.mark.parametrize("given", [{}, {"calibrator": "cvap", "folds": 3}], ids=["ivap", "folds"])
def test_two_classes(given: dict[str, Any]) -> None:
    """Counts, shares, gaps, ranges, tolerances, cuts, rows and losses are those of the output."""
    rng = np.random.default_rng(1)
    n, folds = 26_000, given.get("folds", 0)
    p = rng.beta(2.0, 4.0, n)
    true = np.where(np.arange(n) < n // 2, p, p / (p + 2.0 * (1.0 - p)))
    labels = (rng.random(n) < true).astype(int).tolist()
    scores: list[Any] = [[one] * folds if folds else one for one in p.tolist()]
    settings = Settings(scores="probability", **SETTINGS, **given)
    for stream in streamed(settings, scores, labels):
        rows = stream.rows
        score = [np.median(one.score) if folds else one.score for one in stream.predictions]
        every = {
            "raw": np.array(score),
            "calibrated": np.array([one.p for one in stream.predictions]),
        }
        y = np.array([stream.labels[k] for k in rows], float)
        of_rows = {view: one[rows] for view, one in every.items()}
        served = of_rows["calibrated"]
        begin, earlier = anew.now_start(served * (1.0 - served))
        assert begin > 0
        warm = slice(stream.warm_up)
        answers = stream.answers
        assert answers.warm_up == stream.warm_up
        check_period(answers.now, stream, rows[begin:])
        check_period(answers.whole, stream, rows)
        for view, one in of_rows.items():
            before = one[earlier:begin]
            check_view(answers.now.views[view], one[begin:], y[begin:], before, merged=True)
            check_view(answers.whole.views[view], one, y, every[view][warm], merged=False)
        both = [np.column_stack((1.0 - one, one)) for one in of_rows.values()]
        came = y.astype(int)
        check_losses(answers.whole.losses, both, came)
        check_losses(answers.now.losses, [one[begin:] for one in both], came[begin:])
        cut = answers.whole.views["raw"].cut
        check_trail(answers.over_time, stream, of_rows, {"raw": y, "calibrated": y}, cut)


def test_several_classes() -> None:
    """The first choice, and each class, have the numbers of the output; losses are of the class."""
    rng = np.random.default_rng(2)
    n = 8_000
    p = rng.dirichlet((3.0, 2.0, 1.0), n)
    labels = [CLASSES[k] for k in (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)]
    wrong = p**1.5 / (p**1.5).sum(axis=1, keepdims=True)
    scores = [dict(zip(CLASSES, one, strict=True)) for one in wrong.tolist()]
    settings = Settings(task="multiclass", classes=CLASSES, scores="probability", **SETTINGS)
    for stream in streamed(settings, scores, labels):
        rows = stream.rows
        every = {
            view: np.array([[getattr(one, name)[c] for c in CLASSES] for one in stream.predictions])
            for view, name in (("raw", "score"), ("calibrated", "p"))
        }
        of_rows = {view: one[rows] for view, one in every.items()}
        came = np.array([CLASSES.index(stream.labels[k]) for k in rows])
        top = {view: one.max(axis=1) for view, one in of_rows.items()}
        right = {view: (one.argmax(axis=1) == came) * 1.0 for view, one in of_rows.items()}
        begin, earlier = anew.now_start(top["calibrated"] * (1.0 - top["calibrated"]))
        warm, answers = slice(stream.warm_up), stream.answers
        check_period(answers.now, stream, rows[begin:])
        for view, one in of_rows.items():
            first = every[view][warm]
            choice = top[view][earlier:begin] if begin else first.max(axis=1)
            now, whole = answers.now, answers.whole
            check_view(now.views[view], top[view][begin:], right[view][begin:], choice, merged=True)
            check_view(whole.views[view], top[view], right[view], first.max(axis=1), merged=False)
            for k, name in enumerate(CLASSES):
                of_now, of_whole = (each.classes[k].views[view] for each in (now, whole))
                assert now.classes[k].name == name
                y, mine = (came == k) * 1.0, one[:, k]
                before = mine[earlier:begin] if begin else first[:, k]
                check_view(of_now, mine[begin:], y[begin:], before, 1 / 3, merged=True)
                check_view(of_whole, mine, y, first[:, k], 1 / 3, merged=False)
        check_losses(answers.whole.losses, [*of_rows.values()], came)
        check_losses(answers.now.losses, [one[begin:] for one in of_rows.values()], came[begin:])
        check_trail(answers.over_time, stream, top, right, answers.whole.views["raw"].cut)


def test_numbers() -> None:
    """Levels of intervals, widths and errors are those of the output."""
    rng = np.random.default_rng(3)
    n, quantiles = 16_000, (0.05, 0.25, 0.5, 0.75, 0.95)
    scores = rng.normal(0.0, 1.0, n)
    labels = (scores + rng.normal(0.0, 1.0, n)).tolist()
    settings = Settings(
        task="regression", quantiles=quantiles, grid=(*np.linspace(-3, 3, 25).tolist(),), **SETTINGS
    )
    for stream in streamed(settings, scores.tolist(), labels):
        rows, answers = stream.rows, stream.answers
        begin = max(len(rows) // 11_112 - 1, 0) * 11_112
        for period, mine in ((answers.now, rows[begin:]), (answers.whole, rows)):
            check_period(period, stream, mine)
            y = np.array([stream.labels[k] for k in mine])
            model = np.array([stream.predictions[k].score for k in mine])
            table = np.array([[*stream.predictions[k].quantiles.values()] for k in mine])
            check_errors(period.errors, y, model, table[:, 2])
            assert [row.level for row in period.views["calibrated"].rows] == [0.9, 0.5]
            for row, low, high in zip(
                period.views["calibrated"].rows, table[:, :2].T, table[:, :-3:-1].T, strict=True
            ):
                check_level(row, y, low, high)


def check_errors(errors: Any, y: Any, model: Any, median: Any) -> None:  # noqa: ANN401
    """Compare the errors of single numbers: those of both where the median is finite."""
    known = np.isfinite(median)
    assert errors.medians == known.sum()
    assert errors.model == pytest.approx(np.abs(y - model)[known].mean())
    assert errors.median == pytest.approx(np.abs(y - median)[known].mean())
    assert errors.bias == pytest.approx((y - model).mean())
    assert errors.below == pytest.approx((y < model).mean())


def check_level(row: Any, y: Any, low: Any, high: Any) -> None:  # noqa: ANN401
    """Compare the counts of a level, its gap with the range, and the mean width."""
    inside = ((low <= y) & (y <= high)) * 1.0
    part = anew.counted(np.full(len(y), row.level), inside, 1.25, anew.LEVEL / 2 / 2)
    assert row.main == (row.level == 0.9)
    assert [getattr(row, name) for name in (*NAMES, *ENDS)] == pytest.approx(list(part))
    assert (row.below_count, row.above_count) == ((y < low).sum(), (y > high).sum())
    finite = np.isfinite(high - low)
    assert (row.finite, row.width) == (finite.sum(), pytest.approx((high - low)[finite].mean()))

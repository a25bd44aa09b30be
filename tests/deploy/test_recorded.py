"""What the rules record of two workers is what their events say, worked out directly."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from tests.connectors.kafka.reads import Read
from tests.connectors.kafka.works import Served
from tests.deploy.files import DEPLOY, promtool

from abers_connectors.metrics.service_metrics import registry_of
from abers_connectors.runtime.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    Pairs = Sequence[tuple[float, float]]

WINDOW, RATE = 5, 60
HIGH, LOW = 0.9, 0.1
"""Share of label 1 where the forecast is 0.5: too many at one worker, too few at the other, so
that both are far off, and both together hardly."""


class Worker(NamedTuple):
    """One process: its samples at the end of each minute, and what it found out in each."""

    name: str
    samples: list[dict[str, float]]
    outcomes: list[list[Any]]


def worked(name: str, minutes: Iterable[Pairs], flags: Mapping[str, object]) -> Worker:
    """Let a process take scores and their labels, scraped at the end of each minute."""
    status, task = Status(60.0), Served(flags=flags)
    worker, registry = Worker(name, [], []), registry_of(status)
    for minute, pairs in enumerate(minutes):
        records = []
        for number, (score, label) in enumerate(pairs):
            event = {"id": f"{minute}-{number}", "time": minute, "model": "m"}
            records.append(Read(json.dumps(event | {"score": score}).encode()))
            records.append(Read(json.dumps(event | {"label": label}).encode()))
        done = task.take(*records)
        status.batch_committed(task, done)
        assert done.outputs is not None
        worker.outcomes.append([*(done.outputs.outcomes or ())])
        families = [one for one in registry.collect() if one.name.startswith("abers_")]
        samples = [one for family in families for one in family.samples]
        worker.samples.append({one.name + json.dumps(one.labels): one.value for one in samples})
    return worker


def series(workers: Sequence[Worker]) -> Iterator[dict[str, str]]:
    """Return the samples as promtool takes them."""
    for worker in workers:
        for one in worker.samples[-1]:
            name, _, labels = one.partition("{")
            own = json.loads("{" + labels) | {"job": "abers", "instance": worker.name}
            written = ", ".join(f"{key}={json.dumps(value)}" for key, value in own.items())
            values = " ".join(repr(sample.get(one, 0.0)) for sample in worker.samples)
            yield {"series": f"{name}{{{written}}}", "values": values}


def recorded(tmp_path: Path, workers: Sequence[Worker], wanted: Mapping[str, float]) -> None:
    """Let promtool work out what is recorded, which must be as wanted but for rounding."""
    tests = [
        {
            "expr": f"abs({query} - {value!r}) < bool 1e-9",
            "eval_time": f"{len(workers[0].samples) - 1}m",
            "exp_samples": [{"labels": f"{{{query.partition('{')[2]}", "value": 1}],
        }
        for query, value in wanted.items()
    ]
    one = {"interval": "1m", "input_series": [*series(workers)], "promql_expr_test": tests}
    story = {"rule_files": [str(DEPLOY / "rules.yml")], "evaluation_interval": "1m", "tests": [one]}
    path = tmp_path / "story.yml"
    path.write_text(json.dumps(story))
    promtool("test", "rules", path)


def last(workers: Sequence[Worker]) -> list[Any]:
    """Return what was found out in the window."""
    return [one for worker in workers for minute in worker.outcomes[-WINDOW:] for one in minute]


def ece(forecasts: Sequence[float], labels: Sequence[int]) -> float:
    """Work out the expected calibration error over ten bins, closed on the left."""
    gaps: dict[int, float] = {}
    for p, label in zip(forecasts, labels, strict=True):
        place = max(number for number in range(10) if p >= number / 10)
        gaps[place] = gaps.get(place, 0.0) + p - label
    return sum(map(abs, gaps.values())) / len(labels)


def halves(share: float, seed: int) -> Iterator[Pairs]:
    """Return scores of which one is wrong: it says 0.5 where so many labels are 1."""
    rng, shares = np.random.default_rng(seed), {0.1: 0.1, 0.5: share, 0.92: 0.9}
    for _ in range(20):
        scores = rng.choice([0.1, 0.5, 0.5, 0.92], RATE).tolist()
        yield [(score, int(rng.random() < shares[score])) for score in scores]


@pytest.mark.prometheus
def test_two_workers_whose_errors_cancel(tmp_path: Path) -> None:
    """Errors that cancel between workers count for nothing, as in the events of both together."""
    flags = {"task.scores": "probability"}
    workers = [worked("a", halves(HIGH, 1), flags), worked("b", halves(LOW, 2), flags)]
    seen, known = last(workers), 'job="abers", application="abers", model="m"'
    labels, p = np.array([one.label for one in seen]), np.array([one.p for one in seen])
    assert len(seen) == 2 * WINDOW * RATE
    views = {"raw": [one.score for one in seen], "calibrated": p.tolist()}
    wanted = {
        f'job_application_model_view:abers_ece:rate5m{{{known}, view="{view}"}}': ece(
            forecasts, labels.tolist()
        )
        for view, forecasts in views.items()
    }
    apart = [ece([o.score for o in last([w])], [o.label for o in last([w])]) for w in workers]
    assert 4 * ece(views["raw"], labels.tolist()) < min(apart)
    losses = -np.log(np.where(labels == 1, p, 1 - p))
    wanted |= {
        f'job_application_model_view:{name}:rate5m{{{known}, view="calibrated"}}': float(
            values.mean()
        )
        for name, values in (
            ("abers_brier_score", (p - labels) ** 2),
            ("abers_log_loss_nats", losses),
        )
    }
    width = float(np.mean([one.p1 - one.p0 for one in seen]))
    wanted[f"job_application_model:abers_venn_abers_interval_width_ratio:rate5m{{{known}}}"] = width
    recorded(tmp_path, workers, wanted)


@pytest.mark.prometheus
def test_loss_saved(tmp_path: Path) -> None:
    """What calibration saves is the share by which the mean log loss is lower than the raw one."""
    minutes = [minute for seed in range(4) for minute in halves(HIGH, seed)]
    worker = worked("a", minutes, {"task.scores": "probability"})
    seen = [one for minute in worker.outcomes[-60:] for one in minute]
    calibrated, raw = (
        float(
            np.mean([-math.log(p if one.label else 1 - p) for one, p in zip(seen, ps, strict=True)])
        )
        for ps in ([one.p for one in seen], [one.score for one in seen])
    )
    assert calibrated < raw
    which = '{job="abers", application="abers", model="m"}'
    saved = {f"job_application_model:abers_loss_saved_ratio:rate1h{which}": 1 - calibrated / raw}
    recorded(tmp_path, [worker], saved)


@pytest.mark.prometheus
def test_losses_that_are_infinite(tmp_path: Path) -> None:
    """The mean log loss is that of the finite ones."""
    pairs = [(1.0, 0), (1.0, 1), (0.5, 0)]
    worker = worked("a", [pairs] * 20, {"calibrator.kind": "none", "task.scores": "probability"})
    which = '{job="abers", application="abers", model="m", view="calibrated"}'
    mean = math.log(2.0) / 2
    recorded(
        tmp_path, [worker], {f"job_application_model_view:abers_log_loss_nats:rate5m{which}": mean}
    )


@pytest.mark.prometheus
def test_coverage(tmp_path: Path) -> None:
    """Coverage of an hour, and what it should have been, by level."""
    rng = np.random.default_rng(5)
    minutes = [[(0.0, float(label)) for label in rng.normal(size=10)] for _ in range(81)]
    worker = worked("a", minutes, {"task.kind": "regression"})
    hour = [one for minute in worker.outcomes[-60:] for one in minute]
    inside = [one.quantiles["0.05"] <= one.label <= one.quantiles["0.95"] for one in hour]
    which = '{job="abers", application="abers", model="m", level="0.9"}'
    wanted = {
        f"job_application_model_level:abers_interval_coverage:rate1h{which}": float(
            np.mean(inside)
        ),
        f"job_application_model_level:abers_interval_expected_coverage:rate1h{which}": 0.9,
    }
    recorded(tmp_path, [worker], wanted)

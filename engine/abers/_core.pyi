from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

def logistics(scores: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def geometric_means(rows: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...

class Aggregation:
    def __init__(self, shrunk: int, raw_weight: float = 0.25) -> None: ...
    def run(
        self,
        kinds: NDArray[np.uint8],
        numbers: NDArray[np.int64],
        labels: NDArray[np.uint8],
        given: NDArray[np.float64],
        out: NDArray[np.float64],
    ) -> None: ...
    @property
    def experts(self) -> int: ...
    @property
    def labels(self) -> int: ...
    @property
    def lane_count(self) -> int: ...
    @property
    def lane_rows(self) -> int: ...
    @property
    def awaiting_count(self) -> int: ...
    @property
    def moment(self) -> int: ...
    def weights(self, out: NDArray[np.float64]) -> None: ...
    def losses(self, out: NDArray[np.float64]) -> None: ...
    def __sizeof__(self) -> int: ...
    @property
    def taught(self) -> int: ...
    @property
    def parameter_count(self) -> int: ...
    def moments(
        self,
        kinds: NDArray[np.uint8],
        numbers: NDArray[np.int64],
        out: NDArray[np.float64],
        known: NDArray[np.uint8],
    ) -> None: ...
    def save(
        self,
        own: NDArray[np.float64],
        exponents: NDArray[np.int64],
        numbers: NDArray[np.int64],
        moments: NDArray[np.int64],
        weights: NDArray[np.float64],
        forecasts: NDArray[np.float64],
    ) -> None: ...
    def load(
        self,
        moment: int,
        labels: int,
        taught: int,
        most: int,
        own: NDArray[np.float64],
        exponents: NDArray[np.int64],
        numbers: NDArray[np.int64],
        moments: NDArray[np.int64],
        weights: NDArray[np.float64],
        forecasts: NDArray[np.float64],
    ) -> None: ...

class ClassAggregation:
    def __init__(self, classes: int, shrunk: int, raw_weight: float = 0.25) -> None: ...
    @property
    def classes(self) -> int: ...
    def run(
        self,
        kinds: NDArray[np.uint8],
        numbers: NDArray[np.int64],
        labels: NDArray[np.int64],
        given: NDArray[np.float64],
        out: NDArray[np.float64],
    ) -> None: ...
    @property
    def experts(self) -> int: ...
    @property
    def labels(self) -> int: ...
    @property
    def lane_count(self) -> int: ...
    @property
    def lane_rows(self) -> int: ...
    @property
    def awaiting_count(self) -> int: ...
    @property
    def moment(self) -> int: ...
    def weights(self, out: NDArray[np.float64]) -> None: ...
    def losses(self, out: NDArray[np.float64]) -> None: ...
    def __sizeof__(self) -> int: ...
    @property
    def taught(self) -> int: ...
    @property
    def parameter_count(self) -> int: ...
    def moments(
        self,
        kinds: NDArray[np.uint8],
        numbers: NDArray[np.int64],
        out: NDArray[np.float64],
        known: NDArray[np.uint8],
    ) -> None: ...
    def save(
        self,
        own: NDArray[np.float64],
        exponents: NDArray[np.int64],
        numbers: NDArray[np.int64],
        moments: NDArray[np.int64],
        weights: NDArray[np.float64],
        forecasts: NDArray[np.float64],
    ) -> None: ...
    def load(
        self,
        moment: int,
        labels: int,
        taught: int,
        most: int,
        own: NDArray[np.float64],
        exponents: NDArray[np.int64],
        numbers: NDArray[np.int64],
        moments: NDArray[np.int64],
        weights: NDArray[np.float64],
        forecasts: NDArray[np.float64],
    ) -> None: ...

class DistributionPool:
    def __init__(self, experts: int, members: int, first_weight: float, width: float) -> None: ...
    @property
    def members(self) -> int: ...
    def predict(
        self,
        forecasts: NDArray[np.float64],
        number: int,
        points: NDArray[np.float64],
        cdf: NDArray[np.float64],
    ) -> int: ...
    def kept(self, number: int, out: NDArray[np.float64]) -> bool: ...
    def learn(self, forecasts: NDArray[np.float64], label: float, number: int) -> None: ...
    def expire(self, number: int) -> None: ...
    def save(
        self,
        numbers: NDArray[np.int64],
        moments: NDArray[np.int64],
        weights: NDArray[np.float64],
        kept: NDArray[np.float64],
        scores: NDArray[np.float64],
    ) -> None: ...
    def load(
        self,
        moment: int,
        labels: int,
        most: int,
        numbers: NDArray[np.int64],
        moments: NDArray[np.int64],
        weights: NDArray[np.float64],
        kept: NDArray[np.float64],
        scores: NDArray[np.float64],
    ) -> None: ...
    @property
    def experts(self) -> int: ...
    @property
    def labels(self) -> int: ...
    @property
    def lane_count(self) -> int: ...
    @property
    def lane_rows(self) -> int: ...
    @property
    def awaiting_count(self) -> int: ...
    @property
    def moment(self) -> int: ...
    def weights(self, out: NDArray[np.float64]) -> None: ...
    def losses(self, out: NDArray[np.float64]) -> None: ...
    def __sizeof__(self) -> int: ...

class PendingStore:
    def __init__(
        self,
        lateness: int,
        wait: int,
        memory: int,
        jump: int,
        max_pending: int,
        max_early: int,
        max_finished: int,
        max_bytes: int,
        assumed: float | None = None,
    ) -> None: ...
    @property
    def clock(self) -> int | None: ...
    def clocks(self) -> list[tuple[int, bool, int, int, int, list[tuple[str, int, int]]]]: ...
    def set_clocks(
        self, clocks: list[tuple[int, bool, int, int, int, list[tuple[str, int, int]]]]
    ) -> None: ...
    def restart(self, model: int) -> None: ...
    @property
    def counts(self) -> list[int]: ...
    @counts.setter
    def counts(self, arg: Sequence[int], /) -> None: ...
    def take(
        self,
        ids: list[str],
        kinds: NDArray[np.uint8],
        models: NDArray[np.uint32],
        keys: NDArray[np.uint32],
        times: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> tuple[int, list[str], list[tuple[int, str, int, int, float]], int]: ...
    def steps(
        self, columns: NDArray[np.int64], kinds: NDArray[np.uint8], values: NDArray[np.float64]
    ) -> None: ...
    def dropped(
        self, rows: NDArray[np.int64], slots: NDArray[np.int64], keys: NDArray[np.int64]
    ) -> None: ...
    def recycle(self) -> None: ...
    def capacity(self) -> int: ...
    def count(self, store: int) -> int: ...
    def entries(
        self,
        store: int,
        behind: int,
        slots: NDArray[np.int64],
        models: NDArray[np.uint32],
        keys: NDArray[np.uint32],
        times: NDArray[np.int64],
        stored: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> tuple[list[str], int]: ...
    def load(
        self,
        store: int,
        ids: list[str],
        models: NDArray[np.uint32],
        keys: NDArray[np.uint32],
        times: NDArray[np.int64],
        stored: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> None: ...
    def __sizeof__(self) -> int: ...

def added(total: float, terms: NDArray[np.float64]) -> float: ...
def add_loss_differences(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    labels: NDArray[np.float64],
    largest: float,
    sums: NDArray[np.float64],
) -> None: ...
def add_scores(
    forecasts: NDArray[np.float64],
    labels: NDArray[np.float64],
    sums: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> int: ...
def bet_on_bins(
    shares: NDArray[np.float64],
    null: NDArray[np.float64],
    prior: NDArray[np.float64],
    counts: NDArray[np.float64],
    forget: float,
    factors: NDArray[np.float64],
    *,
    capped: bool,
) -> None: ...
def first_unscored(forecasts: NDArray[np.float64], labels: NDArray[np.float64]) -> int: ...
def pooled(
    counts: NDArray[np.int64], positives: NDArray[np.int64], ends: NDArray[np.int64]
) -> int: ...

class ReorderBuffer:
    def __init__(self, width: int, least: int) -> None: ...
    @property
    def came(self) -> int: ...
    @came.setter
    def came(self, arg: int, /) -> None: ...
    @property
    def skipped(self) -> int: ...
    @skipped.setter
    def skipped(self, arg: int, /) -> None: ...
    @property
    def gap(self) -> int: ...
    @gap.setter
    def gap(self, arg: int, /) -> None: ...
    def run(
        self,
        kinds: NDArray[np.uint8],
        numbers: NDArray[np.int64],
        times: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> int: ...
    def bet(
        self,
        sets: Sequence[CalibrationSet],
        tolerance: float,
        kinds: NDArray[np.uint8],
        numbers: NDArray[np.int64],
        times: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> int: ...
    def settled(
        self,
        times: NDArray[np.int64],
        steps: NDArray[np.int64],
        gaps: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> None: ...
    def size(self) -> int: ...
    def first(self) -> int: ...
    def columns(
        self,
        numbers: NDArray[np.int64],
        times: NDArray[np.int64],
        waits: NDArray[np.uint8],
        rows: NDArray[np.float64],
    ) -> None: ...
    def load(
        self,
        numbers: NDArray[np.int64],
        times: NDArray[np.int64],
        waits: NDArray[np.uint8],
        rows: NDArray[np.float64],
    ) -> None: ...

class GroupSums:
    def __init__(self, tolerances: NDArray[np.float64]) -> None: ...
    def add(self, forecasts: NDArray[np.float64], labels: NDArray[np.float64]) -> None: ...
    def size(self) -> int: ...
    def sums(self, out: NDArray[np.float64]) -> None: ...
    def load(self, sums: NDArray[np.float64]) -> None: ...

class Tally:
    def __init__(self) -> None: ...
    def add(self, forecasts: NDArray[np.float64], labels: NDArray[np.float64]) -> None: ...
    def load(
        self, numbers: NDArray[np.int64], counts: NDArray[np.int64], positives: NDArray[np.int64]
    ) -> None: ...
    def size(self) -> int: ...
    def groups(
        self, numbers: NDArray[np.int64], counts: NDArray[np.int64], positives: NDArray[np.int64]
    ) -> None: ...

class PredictiveSet:
    def __init__(self, window: int = 0, max_age: float = 0.0, half_life: float = 0.0) -> None: ...
    @property
    def window(self) -> int: ...
    @property
    def half_life(self) -> float: ...
    @property
    def lifetime(self) -> float: ...
    @property
    def limit(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def late(self) -> int: ...
    def predict(
        self, score: float, time: float = ...
    ) -> tuple[float, float, NDArray[np.float64]]: ...
    def quantile(self, score: float, level: float, time: float = ...) -> float: ...
    def predict_many(
        self, scores: NDArray[np.float64], times: NDArray[np.float64] | None
    ) -> list[tuple[float, float, NDArray[np.float64]]]: ...
    def learn(
        self, score: float, label: float, weight: int = 1073741824, time: float = ...
    ) -> bool: ...
    def remove(self, score: float, label: float, weight: int = 1073741824) -> bool: ...
    def run(
        self,
        steps: NDArray[np.uint8],
        scores: NDArray[np.float64],
        labels: NDArray[np.float64],
        weights: NDArray[np.int64] | None,
        times: NDArray[np.float64] | None,
        levels: NDArray[np.float64],
        quantiles: NDArray[np.float64],
        held: NDArray[np.int64] | None = None,
    ) -> int: ...
    def observation_count(self) -> int: ...
    def observations(
        self,
        scores: NDArray[np.float64],
        labels: NDArray[np.float64],
        weights: NDArray[np.int64],
        times: NDArray[np.float64],
    ) -> None: ...
    def pooled_count(self) -> int: ...
    def pooled(
        self, scores: NDArray[np.float64], labels: NDArray[np.float64], weights: NDArray[np.int64]
    ) -> None: ...
    def load_pooled(
        self,
        scores: NDArray[np.float64],
        labels: NDArray[np.float64],
        weights: NDArray[np.int64],
        size: int,
    ) -> None: ...
    def load_observations(
        self,
        scores: NDArray[np.float64],
        labels: NDArray[np.float64],
        weights: NDArray[np.int64],
        times: NDArray[np.float64],
        late: int,
    ) -> None: ...
    def check(self) -> None: ...
    def __sizeof__(self) -> int: ...

def are_names(texts: list[Any], most: int) -> bool: ...
def distinct(texts: list[Any], numbers: NDArray[np.uint32], most: int) -> list[str] | None: ...

class CalibrationSet:
    def __init__(self, window: int = 0, max_age: float = 0.0, half_life: float = 0.0) -> None: ...
    @property
    def window(self) -> int: ...
    @property
    def half_life(self) -> float: ...
    @property
    def lifetime(self) -> float: ...
    @property
    def limit(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def late(self) -> int: ...
    def predict(
        self, score: float, weight: int = 1073741824, time: float = ...
    ) -> tuple[float, float]: ...
    def learn(
        self, score: float, label: int, weight: int = 1073741824, time: float = ...
    ) -> bool: ...
    def remove(self, score: float, label: int, weight: int = 1073741824) -> bool: ...
    def run(
        self,
        steps: NDArray[np.uint8],
        scores: NDArray[np.float64],
        labels: NDArray[np.uint8],
        weights: NDArray[np.int64] | None,
        times: NDArray[np.float64] | None,
        p0: NDArray[np.float64],
        p1: NDArray[np.float64],
        held: NDArray[np.int64] | None = None,
    ) -> int: ...
    def around(self, score: float) -> tuple[float, float, float, float] | None: ...
    def group_count(self) -> int: ...
    def groups(
        self,
        scores: NDArray[np.float64],
        negatives: NDArray[np.int64],
        positives: NDArray[np.int64],
    ) -> None: ...
    def block_count(self) -> int: ...
    def blocks(
        self,
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        weight: NDArray[np.int64],
        positives: NDArray[np.int64],
        value: NDArray[np.float64],
    ) -> None: ...
    def observation_count(self) -> int: ...
    def observations(
        self,
        scores: NDArray[np.float64],
        labels: NDArray[np.uint8],
        weights: NDArray[np.int64],
        times: NDArray[np.float64],
    ) -> None: ...
    def load_groups(
        self,
        scores: NDArray[np.float64],
        negatives: NDArray[np.int64],
        positives: NDArray[np.int64],
        size: int,
    ) -> None: ...
    def load_observations(
        self,
        scores: NDArray[np.float64],
        labels: NDArray[np.uint8],
        weights: NDArray[np.int64],
        times: NDArray[np.float64],
        late: int,
    ) -> None: ...
    def check(self) -> None: ...
    def takes(self, weight: int, time: float = ...) -> bool: ...
    def __sizeof__(self) -> int: ...

class Protection:
    def __init__(
        self, mixture: Aggregation, sets: Sequence[CalibrationSet], positives: int = 0
    ) -> None: ...
    @property
    def positives(self) -> int: ...
    def predict(
        self, score: float, raw: float, weight: int, time: float, number: int
    ) -> tuple[float, float, float]: ...
    def learn(
        self, score: float, raw: float, label: bool, weight: int, time: float, number: int
    ) -> bool: ...
    def expire(self, number: int) -> None: ...
    def run(
        self,
        kinds: NDArray[np.uint8],
        scores: NDArray[np.float64],
        raw: NDArray[np.float64],
        labels: NDArray[np.uint8],
        weights: NDArray[np.int64] | None,
        times: NDArray[np.float64] | None,
        numbers: NDArray[np.int64] | None,
        p0: NDArray[np.float64],
        p1: NDArray[np.float64],
        p: NDArray[np.float64],
        held: NDArray[np.int64] | None,
    ) -> int: ...

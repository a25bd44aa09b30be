"""The rows of a GP-Beta calibrator, when it is fitted, and how it is saved.

A fit is due after a fixed share of the labels then kept, and is a function of what is kept alone,
in any order, and of the seed.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from abers import validation
from abers.arrays import packed, parsed
from abers.batch._gp_maps import Maps
from abers.batch._gp_model import size, within
from abers.batch._normal import special
from abers.calibration.baselines import share
from abers.exceptions import ParameterError
from abers.forgetting import Forgetting
from abers.saveable import Saveable
from abers.serialization import pack, require, unpack
from abers.validation import count

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers.arrays import Floats

__all__ = ["GPRows", "checked"]

_MOST_STEPS = 1_000_000  # more take hours
_OPTIONS_STRUCT = struct.Struct("<QQQdQ")
_DUE = struct.Struct("<Q")
_SCALES = struct.Struct("<dd")
_COLUMNS = 3


class _Options(NamedTuple):
    """The arguments of `GPBeta`, checked."""

    window: int | None
    inducing: int
    steps: int
    refit: float
    seed: int


class GPRows(Saveable):
    """Predicted normal distributions with their labels, and the last fit to them."""

    _magic: ClassVar[bytes] = b"abersGB\x01"

    def __init__(
        self,
        window: int | None = None,
        *,
        inducing: int = 32,
        steps: int = 1_000,
        refit: float = 0.5,
        seed: int = 0,
    ) -> None:
        self._begin(window, inducing, steps, refit, seed)

    def _begin(
        self, window: int | None, inducing: int, steps: int, refit: float, seed: int
    ) -> None:
        """Check the options, and begin without labels."""
        special()
        self._options = options = _Options(
            Forgetting(window).window,
            count(inducing, "inducing", 1),
            count(steps, "steps", 1, _MOST_STEPS),
            share(refit),
            count(seed, "seed", 0),
        )
        if options.window is not None and options.window < options.inducing:
            msg = f"window={window} is below inducing={inducing}; give a window of at least so many"
            raise ParameterError(msg)
        self._held: deque[tuple[float, ...]] = deque(maxlen=options.window)
        self._due = options.inducing
        self._maps: Maps | None = None

    @property
    def window(self) -> int | None:
        """Number of labels kept at most, None without a window."""
        return self._options.window

    @property
    def inducing(self) -> int:
        """Number of inducing points."""
        return self._options.inducing

    @property
    def steps(self) -> int:
        """Steps of gradient descent a fit."""
        return self._options.steps

    @property
    def refit(self) -> float:
        """Share of the labels kept after which as many new labels make a fit due."""
        return self._options.refit

    @property
    def seed(self) -> int:
        """Seed of the fits and of the draws of predictions."""
        return self._options.seed

    def __len__(self) -> int:
        """Return the number of labels kept."""
        return len(self._held)

    def __repr__(self) -> str:
        """Name the options and the number of labels."""
        options = self._options._asdict().items()
        given = ", ".join(f"{name}={value}" for name, value in options if value is not None)
        return f"<{type(self).__name__}({given}) of {len(self)} labels>"

    def learn_one(self, mean: float, std: float, y: float) -> None:
        """Learn one label, with the distribution that was predicted for it.

        Parameters
        ----------
        mean
            Mean of the predicted normal distribution, any finite number.
        std
            Its standard deviation, positive.
        y
            The label, any finite number.

        Raises
        ------
        ScoreError, LabelError
            If the prediction or the label cannot be used; nothing is learned then.
        """
        row = (validation.score(mean), validation.spread(std), validation.real(y))
        with self._lock:
            self._keep([row])

    def learn_many(self, mean: ArrayLike, std: ArrayLike, y: ArrayLike) -> None:
        """Learn arrays of labels and of what was predicted for them, or nothing if a row is bad.

        Parameters
        ----------
        mean, std, y
            Arrays of shape (n,), as in `learn_one`.

        Raises
        ------
        ScoreError, LabelError
            If a row cannot be used; the message names the first one.
        ParameterError
            If the lengths differ.
        """
        means, stds = checked(mean, std)
        labels = validation.reals(y, len(means))
        with self._lock:
            self._keep(list(zip(means.tolist(), stds.tolist(), labels.tolist(), strict=True)))

    def _keep(self, rows: list[tuple[float, ...]]) -> None:
        """Add rows and fit if that is due, or leave all as it was if the fit fails."""
        held, due = self._held.copy(), self._due - len(rows)
        held.extend(rows)
        if due <= 0:
            columns = np.array(held, np.float64).T
            self._maps = Maps.fitted(columns, self.inducing, self.steps, self.seed)
            due = max(1, math.ceil(self.refit * len(held)))
        self._held, self._due = held, due

    def _save(self) -> bytes:
        held = sorted(self._held) if self.window is None else self._held
        rows = np.array(held, np.float64).reshape(-1, _COLUMNS)
        columns = [b"".join(packed(column)) for column in rows.T]
        options = _OPTIONS_STRUCT.pack(self.window or 0, *self._options[1:])
        pieces = [options, _DUE.pack(self._due), *columns]
        if self._maps is not None:
            middle, scale, _, flat = self._maps
            pieces += [_SCALES.pack(middle, scale), b"".join(packed(flat))]
        return pack(pieces)

    def _load(self, payload: memoryview) -> None:
        """Restore the options, the labels and the fit."""
        options, due, mean, std, y, *fit = unpack(payload)
        window, *others = _OPTIONS_STRUCT.unpack(options)
        self._begin(window or None, *others)
        means, stds = checked(_floats(mean), _floats(std))
        labels = validation.reals(_floats(y), len(means))
        held = list(zip(means.tolist(), stds.tolist(), labels.tolist(), strict=True))
        (self._due,) = _DUE.unpack(due)
        orderly = held == sorted(held) if self.window is None else len(held) <= self.window
        require(orderly and self._due, "rows")
        self._held.extend(held)
        if fit:
            scales, parameters = fit
            middle, scale = _SCALES.unpack(scales)
            flat = _floats(parameters)
            scaled = bool(np.isfinite([middle, scale]).all()) and scale > 0.0
            fits = flat.shape == (size(self.inducing),) and within(flat, self.inducing)
            require(scaled and fits, "parameters")
            self._maps = Maps(middle, scale, self.inducing, flat)


def checked(mean: ArrayLike, std: ArrayLike) -> tuple[Floats, Floats]:
    """Check arrays of predicted means and standard deviations."""
    means = validation.scores(mean)
    return means, validation.spreads(std, len(means))


def _floats(piece: bytes) -> Floats:
    ((letter, column),) = parsed(piece, 0)
    require(letter == "d", "columns")
    return column.astype(np.float64)

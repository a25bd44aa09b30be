"""What a GP-Beta calibrator holds, when it is fitted, and how it is saved.

Governing rule: as of all refitted maps, a fit is due after a fixed share of the labels then held,
and is a function of what is held alone, whatever the order it came in, and of the seed.
"""

from __future__ import annotations

import math
import struct
import threading
from collections import deque
from typing import TYPE_CHECKING, Self

import numpy as np

from abers._arrays import packed, parsed
from abers._sealed import REMEDY, seal, unseal
from abers.calibration import _checks
from abers.calibration._packing import pack, unpack
from abers.exceptions import InputError, StateError
from abers.regression._gp_fit import size
from abers.regression._gp_maps import Maps
from abers.regression._gp_model import within
from abers.regression._gp_options import Options
from abers.regression._normal import special

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abers._arrays import Floats

__all__ = ["GPRows", "checked"]

_MAGIC = b"abersGB\x01"
_DUE = struct.Struct("<Q")
_SCALES = struct.Struct("<dd")
_COLUMNS = 3


class GPRows:
    """Predicted normal distributions with their labels, and the last fit to them."""

    def __init__(
        self,
        window: int | None = None,
        *,
        inducing: int = 32,
        steps: int = 1_000,
        refit: float = 0.5,
        seed: int = 0,
    ) -> None:
        self._begin(Options.checked(window, inducing, steps, refit, seed))

    def _begin(self, options: Options) -> None:
        special()
        self._options, self._lock = options, threading.Lock()
        self._held: deque[tuple[float, ...]] = deque(maxlen=options.window)
        self._due = options.inducing
        self._maps: Maps | None = None

    # What it is

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
        """Share of the labels held after which as many new ones make a fit due."""
        return self._options.refit

    @property
    def seed(self) -> int:
        """Seed of the fits and of the draws of predictions."""
        return self._options.seed

    def __len__(self) -> int:
        """Count the labels held."""
        return len(self._held)

    def __bool__(self) -> bool:
        """Be true even when nothing is held, so that `calibrator or default` keeps it."""
        return True

    def __repr__(self) -> str:
        """Name the options and the number of labels."""
        return f"<{type(self).__name__}({self._options}) of {len(self)} labels>"

    # Learning

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
        ScoreError
            If the mean or the standard deviation cannot be used; nothing is learned then.
        LabelError
            If the label cannot be used; nothing is learned then.
        """
        row = (_checks.score(mean), _checks.spread(std), _checks.real(y))
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
        labels = _checks.reals(y, len(means))
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

    # Saving

    def to_bytes(self) -> bytes:
        """Save the calibrator: versioned, with a checksum.

        Returns
        -------
        bytes
            What `from_bytes` takes.
        """
        with self._lock:
            held = sorted(self._held) if self.window is None else self._held
            rows = np.array(held, np.float64).reshape(-1, _COLUMNS)
            columns = [b"".join(packed(column)) for column in rows.T]
            pieces = [self._options.to_bytes(), _DUE.pack(self._due), *columns]
            if self._maps is not None:
                middle, scale, _, flat = self._maps
                pieces += [_SCALES.pack(middle, scale), b"".join(packed(flat))]
        return seal(_MAGIC, pack(pieces))

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """Restore a calibrator that goes on bit for bit as the saved one would have.

        Parameters
        ----------
        blob
            What `to_bytes` gave.

        Returns
        -------
        GPBeta
            The calibrator.

        Raises
        ------
        StateError
            If the bytes are damaged, of another kind or of an unknown version.
        """
        pieces = unpack(unseal(_MAGIC, bytes(blob), f"a saved {cls.__name__}"))
        restored = cls.__new__(cls)
        try:
            restored._restore(pieces)  # noqa: SLF001 - of the same class
        except (InputError, ValueError, KeyError, struct.error) as error:
            msg = f"saved calibrator is inconsistent ({error}); {REMEDY}"
            raise StateError(msg) from None
        return restored

    def _restore(self, pieces: list[bytes]) -> None:
        options, due, mean, std, y, *fit = pieces
        self._begin(Options.from_bytes(options))
        means, stds = checked(_floats(mean), _floats(std))
        labels = _checks.reals(_floats(y), len(means))
        held = list(zip(means.tolist(), stds.tolist(), labels.tolist(), strict=True))
        (self._due,) = _DUE.unpack(due)
        orderly = held == sorted(held) if self.window is None else len(held) <= self.window
        if not orderly or not self._due:
            msg = "rows"
            raise ValueError(msg)
        self._held.extend(held)
        if fit:
            self._maps = _fit(fit, self.inducing)

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        """Pickle and copy by way of the saved form."""
        return type(self).from_bytes, (self.to_bytes(),)


def checked(mean: ArrayLike, std: ArrayLike) -> tuple[Floats, Floats]:
    """Check arrays of predicted means and standard deviations."""
    means = _checks.scores(mean)
    return means, _checks.spreads(std, len(means))


def _floats(piece: bytes) -> Floats:
    ((letter, column),) = parsed(piece, 0)
    if letter != "d":
        msg = "columns"
        raise ValueError(msg)
    return column.astype(np.float64)


def _fit(pieces: list[bytes], inducing: int) -> Maps:
    scales, parameters = pieces
    middle, scale = _SCALES.unpack(scales)
    flat = _floats(parameters)
    frame = bool(np.isfinite([middle, scale]).all()) and scale > 0.0
    if not frame or flat.shape != (size(inducing),) or not within(flat, inducing):
        msg = "parameters"
        raise ValueError(msg)
    return Maps(middle, scale, inducing, flat)

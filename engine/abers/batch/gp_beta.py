"""GP-Beta: distribution calibration by beta maps that depend on what was predicted.

A prediction is a function of the last fit, of the predicted mean and standard deviation, and of the
seed: the mean of the maps of a fixed set of draws, never the map of a mean.

The rows of a GP-Beta calibrator, when it is fitted, and how it is saved. A fit is due after a fixed
share of the labels then kept, and is a function of what is kept alone, in any order, and of the
seed.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from abers import validation
from abers.arrays import packed, parsed
from abers.batch._beta_curve import BetaCurve, BetaMixture
from abers.batch._gp_model import Maps, Normal, size, special, within
from abers.batch.continuous import CalibratedDistribution
from abers.calibration.baselines import share
from abers.exceptions import ParameterError
from abers.mathematics import Forgetting
from abers.serialization import Saveable, pack, require, unpack
from abers.validation import count

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from abers.arrays import Floats

__all__ = ["GPBeta", "GPRows", "checked"]

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
            msg = f"window={window} is below inducing={inducing}; give at least {inducing}"
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


# Predicted at a time: so few that matrix products, too small for threads, do not depend on them.
_ROWS, _VALUES = 64, 4096


class GPBeta(GPRows):
    """Calibrate normal predictive distributions by beta maps, one for each mean and spread.

    The base CDF u goes through logistic(a ln u - b ln(1 - u) + c), where ln a, ln b and c are three
    functions of the predicted mean and standard deviation. They are jointly Gaussian processes: two
    predictions that are alike have maps that are alike. A calibrated CDF is the mean of the maps of
    draws from the processes given the labels, and its density the mean of their slopes.

    Parameters
    ----------
    window
        Keep only the last `window` labels; None keeps all.
    inducing
        Number of inducing points, which represent the processes. There is no fit to fewer labels.
    steps
        Steps of stochastic gradient descent a fit.
    refit
        A fit is made when the labels learned since the last one reach this share of those that
        were kept then.
    seed
        Seed of the fits, and of the draws of predictions.

    Raises
    ------
    ParameterError
        If an option is invalid, or the window is smaller than `inducing`.
    MissingExtraError
        If scipy is not installed.

    Notes
    -----
    **Guarantee.** None. With many labels it is right if maps of this kind are right.

    **Until the first fit**, of as many labels as there are inducing points, it is the identity.

    **Cost.** A fit takes a time that hardly depends on how many labels are kept: with 32 inducing
    points about 2 ms a step. It is made inside the call to `learn_one` or `learn_many` that makes
    it due; predictions in other threads go on with the last fit meanwhile.

    **The fit** maximises a bound of the evidence by sampling, over a full-covariance normal
    distribution of the processes at the inducing points, whitened by the prior (Hensman et al.
    2015); the kernel's length, the coregionalisation matrix, the inducing points and the link
    w / gamma + delta are fitted with it. It starts at gamma = 1, delta = 0, around the identity.
    PIT values are kept 2**-53 away from 0 and 1 in it.

    **Determinism.** The same labels and seed give the same bits with one build of numpy on one
    machine.

    References
    ----------
    Song, Diethe, Kull & Flach (2019), Distribution calibration for regression, section 4; Hensman,
    Matthews & Ghahramani (2015), Scalable variational Gaussian process classification.

    Examples
    --------
    >>> import numpy as np
    >>> from abers.batch import GPBeta
    >>> rng = np.random.default_rng(0)
    >>> mean, std = np.linspace(0.0, 1.0, 400), np.ones(400)  # as predicted
    >>> y = mean + (0.2 + mean) * rng.normal(size=400)  # the labels scatter less on the left
    >>> calibrator = GPBeta(inducing=8, steps=200)
    >>> calibrator.learn_many(mean, std, y)
    >>> low, high = calibrator.distribution(0.1, 1.0), calibrator.distribution(0.9, 1.0)
    >>> bool(low.interval(0.8)[0] > -0.6), bool(high.interval(0.8)[0] < -0.2)
    (True, True)
    >>> GPBeta().distribution(1.0, 2.0)  # nothing is learned: the normal distribution itself
    <CalibratedDistribution: median 1, 80 % in [-1.563, 3.563]>
    >>> GPBeta().log_score_many([0.0, 0.0], [1.0, 2.0], [0.0, 0.0]).round(4).tolist()
    [0.9189, 1.6121]
    >>> GPBeta().maps_many([0.0], [1.0]).tolist()  # a, b and c of the identity
    [[[1.0]], [[1.0]], [[0.0]]]
    """

    def distribution(self, mean: float, std: float) -> CalibratedDistribution:
        """Calibrate a predicted normal distribution.

        Parameters
        ----------
        mean
            Its mean, any finite number.
        std
            Its standard deviation, positive.

        Returns
        -------
        CalibratedDistribution
            A continuous distribution; later labels do not change it.

        Raises
        ------
        ScoreError
            If one cannot be used.
        """
        base = Normal(validation.score(mean), validation.spread(std))
        maps = self._maps
        curves = maps and maps.at(np.array([base.mean]), np.array([base.std]), self.seed)[..., 0]
        return _mapped(base, curves)

    def cdf_many(self, mean: ArrayLike, std: ArrayLike, t: ArrayLike) -> Floats:
        """Return the calibrated CDFs of n predictions, each at numbers of its own.

        Parameters
        ----------
        mean, std
            Arrays of shape (n,), as in `distribution`.
        t
            Array of shape (n,) or (n, k), of finite numbers; labels for the PIT values.

        Returns
        -------
        numpy.ndarray
            Probabilities, of the shape of `t`.

        Raises
        ------
        ScoreError, ParameterError
            If a row cannot be used (a message about a prediction names it), or the lengths differ.
        """
        return self._each(mean, std, validation.finite(t, "t"), CalibratedDistribution.cdf)

    def log_score_many(self, mean: ArrayLike, std: ArrayLike, y: ArrayLike) -> Floats:
        """Negative log densities of n calibrated predictions at their labels, in nats.

        Parameters
        ----------
        mean, std
            Arrays of shape (n,), as in `distribution`.
        y
            Their labels, array of shape (n,) or (n, k), of finite numbers.

        Returns
        -------
        numpy.ndarray
            The scores, of the shape of `y`; smaller is better.

        Raises
        ------
        ScoreError, ParameterError
            As of `cdf_many`, or if a label is not finite.
        """
        return self._each(mean, std, validation.finite(y, "y"), CalibratedDistribution.log_score)

    def quantiles_many(self, mean: ArrayLike, std: ArrayLike, levels: ArrayLike) -> Floats:
        """Quantiles of n calibrated predictions.

        Parameters
        ----------
        mean, std
            Arrays of shape (n,), as in `distribution`.
        levels
            Array of shape (k,), in (0, 1).

        Returns
        -------
        numpy.ndarray
            The quantiles, of shape (n, k).

        Raises
        ------
        ScoreError, ParameterError
            As of `cdf_many`, or if a level is not inside (0, 1).
        """
        q = np.atleast_1d(validation.levels(levels, "level"))
        arguments = np.broadcast_to(q, (len(np.atleast_1d(mean)), len(q)))
        return self._each(mean, std, arguments, CalibratedDistribution.quantile)

    def maps_many(self, mean: ArrayLike, std: ArrayLike) -> Floats:
        """Return the beta maps of each of n predictions, to be inspected; their mean calibrates it.

        Parameters
        ----------
        mean, std
            Arrays of shape (n,), as in `distribution`.

        Returns
        -------
        numpy.ndarray
            Array of shape (3, s, n): a, b and c of s maps for each; before the first fit of one.

        Raises
        ------
        ScoreError, ParameterError
            As of `cdf_many`.
        """
        (means, stds), maps = checked(mean, std), self._maps
        if maps is None:
            return np.tile(np.array(BetaCurve())[:, np.newaxis, np.newaxis], len(means))
        found = maps.at(means, stds, self.seed)
        return np.concatenate((np.exp(found[:2]), found[2:]))

    def _each(
        self,
        mean: ArrayLike,
        std: ArrayLike,
        arguments: Floats,
        method: Callable[[CalibratedDistribution, Floats], Floats],
    ) -> Floats:
        """Call the distribution of each row with its row of `arguments`, in blocks."""
        means, stds = checked(mean, std)
        if arguments.ndim not in (1, 2) or len(arguments) != len(means):
            msg = f"{len(means)} predictions, arguments of shape {arguments.shape}; give each a row"
            raise ParameterError(msg)
        columns = arguments if arguments.ndim > 1 else arguments[:, np.newaxis]
        found, maps = np.empty(columns.shape), self._maps
        rows = min(_ROWS, max(1, _VALUES // max(1, columns.shape[1])))
        for start in range(0, len(means), rows):
            block = slice(start, start + rows)
            base = Normal(means[block, np.newaxis], stds[block, np.newaxis])
            curves = maps and maps.at(means[block], stds[block], self.seed)
            found[block] = method(_mapped(base, curves), columns[block])
        return found.reshape(arguments.shape)


def _mapped(base: Normal, curves: Floats | None) -> CalibratedDistribution:
    return CalibratedDistribution(base, BetaCurve() if curves is None else BetaMixture(curves))

"""The binary calibrators that a calibrator of several classes is made of, and their saved form.

Governing rule: one more calibrator, `_all`, learns every observation with score 0 and
label 0 before any other does. It counts, forgets, and refuses what cannot be learned;
what it has taken, all others take.
"""

from __future__ import annotations

import json
import math
import struct
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from abers._sealed import REMEDY, seal, unseal
from abers.calibration._classes import Classes, Label
from abers.calibration._packing import pack, unpack
from abers.calibration.venn_abers import VennAbers
from abers.exceptions import InputError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from abers.calibration._typing import Bytes, Floats, Integers

__all__ = ["UNSEEN", "Given", "Parts", "Steps", "Triple"]

Triple: TypeAlias = "tuple[Floats, Floats, Floats]"
UNSEEN = -1  # the number of any class that has no number yet
_CLOCK = struct.Struct("<d")


class Given(NamedTuple):
    """Weight and event time of one observation, as they were given."""

    weight: float
    time: float | None


class Steps(NamedTuple):
    """Columns, a row a step; scores have a row a class and a column a step."""

    kinds: Bytes
    scores: Floats
    labels: Integers
    weights: Floats | None
    times: Floats | None


class Parts(ABC):
    """A calibrator made of binary ones."""

    _magic: bytes
    _smallest: float  # score that is accepted

    def __init__(
        self,
        classes: Iterable[Label] | None = None,
        window: int | None = None,
        max_age: float | None = None,
        half_life: float | None = None,
        *,
        max_classes: int = 100,
    ) -> None:
        self._set(Classes(classes, max_classes), VennAbers(window, max_age, half_life))

    def _set(self, classes: Classes, everything: VennAbers) -> None:
        self._classes, self._all = classes, everything
        self._clock = -math.inf  # what the parts were last told of time, if not what `_all` was
        self._parts: dict[tuple[int, ...], VennAbers] = {}
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        for number in range(len(self._classes)):
            self._grow(number)

    def _add(self, labels: Iterable[Label]) -> None:
        for each in labels:
            self._grow(len(self._classes))
            self._classes.add([each])

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes known, in the order of their columns."""
        return self._classes.labels

    @property
    def max_classes(self) -> int:
        """The greatest number of classes."""
        return self._classes.most

    @property
    def window(self) -> int | None:
        """Number of observations kept at most, None without a window."""
        return self._all.window

    @property
    def max_age(self) -> float | None:
        """Greatest age of an observation, None without one."""
        return self._all.max_age

    @property
    def half_life(self) -> float | None:
        """Time in which a weight halves, None if weights stay."""
        return self._all.half_life

    @property
    def late(self) -> int:
        """Number of labels that came too old to be learned."""
        return self._all.late

    def __len__(self) -> int:
        """Count the observations held."""
        return len(self._all)

    def __bool__(self) -> bool:
        """Be true even when nothing is held, so that `calibrator or default` keeps it."""
        return True

    def __repr__(self) -> str:
        """Name the rule of forgetting and the numbers of classes and observations."""
        rule = repr(self._all).partition("(")[2]
        return f"<{type(self).__name__}({rule[:-1]}, {len(self._classes)} classes>"

    # What the kinds differ in; all that they are given is checked, and taken by `_all`

    @abstractmethod
    def _part(self) -> VennAbers:
        """Make an empty binary calibrator, as `_parts` holds them."""

    @abstractmethod
    def _grow(self, number: int) -> None:
        """Add to `_parts` what the class of the next number needs."""

    @abstractmethod
    def _touched(self, row: Floats, number: int) -> Iterator[tuple[VennAbers, float, int]]:
        """Give the parts that an observation of a class touches, each with its score and label."""

    @abstractmethod
    def _learn(self, row: Floats, number: int, given: Given) -> None:
        """Learn one observation."""

    @abstractmethod
    def _predict(self, row: Floats, given: Given) -> Triple:
        """Predict one observation; scores beyond those of the known classes are of unknown ones."""

    @abstractmethod
    def _run(self, steps: Steps) -> Triple:
        """Run steps; return arrays of shape (number of classes, number of predictions)."""

    # Saving

    def _may_be(self, clock: float) -> bool:
        """Tell whether a clock that is not -infinity can be that of the parts; most have none."""
        return clock == -math.inf

    def to_bytes(self) -> bytes:
        """Save the calibrator: versioned, with a checksum, the same on both backends.

        Returns
        -------
        bytes
            What `from_bytes` takes.
        """
        with self._lock:
            classes = [self._classes.closed, self.max_classes, *self.classes]
            pieces = [json.dumps(classes).encode(), _CLOCK.pack(self._clock)]
            pieces += [part.to_bytes() for part in (self._all, *self._parts.values())]
        return seal(self._magic, pack(pieces))

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """Restore a calibrator that goes on bit for bit as the saved one would have.

        Parameters
        ----------
        blob
            What `to_bytes` gave.

        Returns
        -------
        OneVsRest or OneVsOne
            The calibrator.

        Raises
        ------
        StateError
            If the bytes are damaged, of another kind or of an unknown version.
        """
        payload = unseal(cls._magic, bytes(blob), f"a saved {cls.__name__}")
        try:
            restored = cls._restored(*unpack(payload))
        except (InputError, ValueError, TypeError, struct.error) as error:
            msg = f"saved calibrator is inconsistent ({error}); {REMEDY}"
            raise StateError(msg) from None
        if restored.to_bytes() != blob:
            msg = f"saved calibrator is inconsistent (form); {REMEDY}"
            raise StateError(msg)
        return restored

    @classmethod
    def _restored(cls, classes: bytes, clock: bytes, everything: bytes, *parts: bytes) -> Self:
        closed, most, *labels = json.loads(classes)
        restored = cls.__new__(cls)
        restored._set(  # noqa: SLF001 - of the same class
            Classes.known(labels, most, closed=closed), VennAbers.from_bytes(everything)
        )
        restored._fill(clock, [VennAbers.from_bytes(part) for part in parts])  # noqa: SLF001
        return restored

    def _fill(self, clock: bytes, parts: list[VennAbers]) -> None:
        """Put what is restored where what is empty stands."""
        (self._clock,) = _CLOCK.unpack(clock)
        if not self._may_be(self._clock):
            msg = "clock"
            raise ValueError(msg)
        for key, part in zip(self._parts, parts, strict=True):
            if _options(part) != _options(self._parts[key]):
                msg = "rules of forgetting"
                raise ValueError(msg)
            self._parts[key] = part

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        """Pickle and copy by way of the saved form."""
        return type(self).from_bytes, (self.to_bytes(),)


def _options(part: VennAbers) -> tuple[Any, ...]:
    return part.window, part.max_age, part.half_life

"""The parts of a saved state, by name.

A snapshot has each part under its name, with the version of its form. So a release can add a part,
and read the states that were saved without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import msgspec

from abers.exceptions import StateError
from abers.stream.msgpack_encoder import ARRAY, encode, encode_struct, header
from abers.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from abers.arrays import Integers
    from abers.serialization import Piece
    from abers.stream.layouts import Layout

__all__ = [
    "Component",
    "SavedComponent",
    "encode_components",
    "encode_saved",
    "load_components",
    "require_readable",
]

_Missing: TypeAlias = Literal["refuse", "empty"]


class SavedComponent(msgspec.Struct, array_like=True):
    """A part as a snapshot has it."""

    version: int
    missing: _Missing  # "empty": a reader that does not know it drops it
    payload: msgspec.Raw


class Component(ABC):
    """One part of a state, which saves and loads itself.

    Attributes
    ----------
    name
        Its name in a snapshot.
    formats
        Type of the saved form of each version that it reads: the latest, which it writes, and the
        version before.
    missing
        What a snapshot without it means: it begins empty, or the snapshot is refused. A reader that
        does not know it drops it, or refuses the snapshot.
    derived
        Whether it depends on more than the events, and is no part of `Processor.state_bytes`.
    layout
        How the latest form is split by model, and joined.
    """

    name: str
    formats: ClassVar[Mapping[int, Any]]
    missing: _Missing = "refuse"
    derived: ClassVar[bool] = False
    layout: Layout

    @property
    def version(self) -> int:
        """The version that it writes."""
        return max(self.formats)

    @abstractmethod
    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the part in pieces, in canonical form; observations wait in these slots."""

    def load(self, version: int, payload: msgspec.Raw) -> None:
        """Load what was saved in a version, into an empty state; the parts before it are loaded.

        Raises
        ------
        ValueError, msgspec.MsgspecError
            If it cannot be this part.
        """
        self._load(msgspec.msgpack.decode(payload, type=self.formats[version]))

    @abstractmethod
    def _load(self, saved: Any) -> None:  # noqa: ANN401 - of a type of `formats`
        """Load the saved form."""


def encode_components(components: Iterable[Component], slots: Integers) -> Iterator[Piece]:
    """Encode components by name, as `SavedComponent`, each when it is its turn."""
    return encode_struct({one.name: _encode(one, slots) for one in components})


def encode_saved(components: Mapping[str, SavedComponent]) -> Iterator[Piece]:
    """Encode components as they were saved."""
    return encode_struct({name: _saved(one) for name, one in components.items()})


def _encode(component: Component, slots: Integers) -> Iterator[Piece]:
    yield from _head(component.version, component.missing)
    yield from component.save(slots)


def _saved(component: SavedComponent) -> Iterator[Piece]:
    yield from _head(component.version, component.missing)
    yield memoryview(component.payload)


def _head(version: int, missing: _Missing) -> Iterator[Piece]:
    yield header(ARRAY, len(SavedComponent.__struct_fields__))
    yield from encode(version)
    yield from encode(missing)


def require_readable(
    components: Sequence[Component], saved: Mapping[str, SavedComponent], writer: str
) -> None:
    """Raise a StateError if components cannot be loaded from what a version of abers wrote.

    One is missing that must be there, or one that is there is not known or of an unknown version.
    """
    remedy = f"load it with abers {writer}, which wrote it"
    known = {one.name: one for one in components}
    for name, one in saved.items():
        if name not in known and one.missing == "refuse":
            msg = f"the snapshot has {name!r}, which abers {__version__} does not know; {remedy}"
            raise StateError(msg)
        if name in known and one.version not in known[name].formats:
            msg = (
                f"the snapshot has {name!r} in version {one.version}, and abers {__version__} "
                f"reads version {' and '.join(map(str, sorted(known[name].formats)))}; {remedy}"
            )
            raise StateError(msg)
    for name, component in known.items():
        if name not in saved and component.missing == "refuse":
            msg = f"the snapshot lacks {name!r}, which abers {__version__} needs; {remedy}"
            raise StateError(msg)


def load_components(components: Iterable[Component], saved: Mapping[str, SavedComponent]) -> None:
    """Load components in their order; those that are missing begin empty."""
    for component in components:
        if (found := saved.get(component.name)) is not None:
            component.load(found.version, found.payload)

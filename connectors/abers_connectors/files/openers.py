"""Tables of the functions that open sources and sinks, by file format, suffix or URL scheme."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from abers.exceptions import ParameterError
from abers_connectors.files.formats import FORMATS, file_format, scheme_of, suffix_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Openers"]

Opener = TypeVar("Opener")


class Openers(Generic[Opener]):
    """Opening functions by file format ("csv"), further suffix (".avro") or URL scheme ("redis").

    A function may be its import path "module:name": the module is imported when a name needs it.

    Examples
    --------
    >>> openers = Openers({"csv": "builtins:print"})
    >>> openers.register("redis", len)
    >>> openers.find("redis://localhost/scores"), openers.find("scores.csv.gz")
    (<built-in function len>, <built-in function print>)
    """

    def __init__(self, openers: Mapping[str, Opener | str]) -> None:
        self._openers = dict(openers)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys."""
        return iter(self._openers)

    def register(self, key: str, opener: Opener | str) -> None:
        """Add or replace the function of a suffix such as ".avro" or a scheme such as "redis"."""
        self._openers[key] = opener

    def key(self, name: str, given: str | None = None) -> str:
        """Return the key of a path, "-" or a URL, or raise a ParameterError if it has none.

        `given` is the format of a path with a suffix that does not name it.
        """
        scheme = scheme_of(name)
        others = [key if key[0] == "." else f"{key}://" for key in self if key not in FORMATS]
        if scheme is None:
            suffix = suffix_of(name)
            return suffix if suffix in self._openers else file_format(name, given, others).format
        if scheme not in self._openers:
            known = ", ".join(one for one in others if one[0] != ".") or "none"
            msg = f"{name}: unknown URL scheme {scheme}; registered schemes: {known}"
            raise ParameterError(msg)
        return scheme

    def find(self, name: str, given: str | None = None) -> Opener:
        """Return the function that opens a name; see `key`."""
        found = self._openers[self.key(name, given)]
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = cast("Opener", getattr(import_module(module), attribute))
        return found

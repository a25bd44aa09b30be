"""The public Python names, with the parameters of whatever can be called."""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import abers

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MODULES", "described", "names"]

MODULES = [
    "abers",
    *(f"abers.{one}" for one in abers.__all__ if isinstance(getattr(abers, one), ModuleType)),
    # Modules that docs/api documents apart from their packages.
    "abers.exceptions",
    "abers.learners.gaussian",
    "abers.learners.river_adapters",
    "abers.learners.sklearn_adapters",
    "abers.regression.scores",
]
PROTOCOLS = {
    *("__call__", "__contains__", "__enter__", "__exit__"),
    *("__getitem__", "__iter__", "__len__", "__next__"),
}


def names() -> Iterator[str]:
    """Yield a line for each public name; what has two names is described at the first."""
    first: dict[int, str] = {}
    for module in MODULES:
        found = importlib.import_module(module)
        for name in sorted(found.__all__):
            path, value = f"{module}.{name}", getattr(found, name)
            if isinstance(value, ModuleType):
                continue
            if callable(value) and id(value) in first:
                yield f"{path} = {first[id(value)]}"
                continue
            first[id(value)] = path
            yield from described(path, value)


def described(path: str, value: Any) -> Iterator[str]:  # noqa: ANN401 - anything is public
    """Yield the line of a name and, of a class, those of its members."""
    if not callable(value):
        yield f"{path}: {type(value).__name__}"
        return
    if not isinstance(value, type):
        yield f"{path}{_parameters(value)}"
        return
    bases = ", ".join(_bases(value))
    yield f"{path}{_parameters(value)}" + (f" extends {bases}" if bases else "")
    for name, member in sorted(_members(value).items()):
        yield f"{path}.{name}{_kind(value, name, member)}"


def _bases(kind: type) -> list[str]:
    """Name the public classes of abers and the classes of others that a class extends."""
    own = [one for one in kind.__mro__ if _is_own(one)]
    outer = {base for one in own for base in one.__bases__} - {object, *own}
    helpers = {"abc", "typing", "collections.abc"}
    return [
        one.__name__
        for one in kind.__mro__[1:]
        if one in _classes() or (one in outer and one.__module__ not in helpers)
    ]


@cache
def _classes() -> set[object]:
    """Return the public classes of abers."""
    modules = [importlib.import_module(one) for one in MODULES]
    values = [getattr(one, name) for one in modules for name in one.__all__]
    return {one for one in values if isinstance(one, type)}


def _is_own(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "abers"


def _members(kind: type) -> dict[str, Any]:
    """Return the public members that a class has from abers, inherited ones included."""
    found: dict[str, Any] = {}
    for one in reversed([one for one in kind.__mro__ if _is_own(one)]):
        found |= dict.fromkeys(inspect.get_annotations(one))
        found |= vars(one)
    return {
        name: member
        for name, member in found.items()
        if not name.startswith("_") or name in PROTOCOLS
    }


def _kind(kind: type, name: str, member: Any) -> str:  # noqa: ANN401 - any member
    value = inspect.getattr_static(kind, name, member)
    if isinstance(value, staticmethod | classmethod):
        return f"{_parameters(getattr(kind, name))} [{type(value).__name__}]"
    if callable(value):
        return _parameters(value)
    return ""


def _parameters(value: Any) -> str:  # noqa: ANN401 - anything that can be called
    """Return the parameters: names, kinds and defaults, without types."""
    try:
        signature = inspect.signature(value)
    except ValueError:  # a class of the interpreter, such as an exception
        return ""
    shown = []
    for one in signature.parameters.values():
        default = one.default
        if default is not one.empty and (callable(default) or " at 0x" in repr(default)):
            default = _Named(getattr(default, "__qualname__", type(default).__qualname__))
        shown.append(one.replace(annotation=one.empty, default=default))
    kept = [one for one in shown if one.name != "self"]
    text = str(signature.replace(parameters=kept, return_annotation=signature.empty))
    return text.replace("(/, ", "(").replace("(/)", "()")


class _Named:
    """A default value that has no stable text, shown by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"

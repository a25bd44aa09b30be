"""Shows the settings of a processor on the API page as their declarations say them."""

import inspect
from typing import Any

import griffe

from abers.stream import Settings


class DeclaredSettings(griffe.Extension):
    """Read `Settings` with the docstring that it has when it runs, and options as bare types."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:  # noqa: ANN401 - griffe's own
        """Replace the docstring that stands in the source, and each annotation with an option."""
        if cls.path == "abers.stream.settings.Settings" and cls.docstring is not None:
            cls.docstring.value = inspect.cleandoc(Settings.__doc__ or "")
        for one in cls.attributes.values():
            found = one.annotation
            if isinstance(found, griffe.ExprSubscript) and found.canonical_name == "Annotated":
                one.annotation = found.slice.elements[0]  # type: ignore[union-attr]

"""A wrapper that calibrates scikit-learn classifiers.

scikit-learn is slow to import, so it is imported with the wrapper when that is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from abers.sklearn.calibrated_classifier import VennAbersCalibratedClassifier

__all__ = ["VennAbersCalibratedClassifier"]


def __getattr__(name: str) -> "Any":  # noqa: ANN401 - the class
    """Import the wrapper, and scikit-learn with it."""
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from abers.sklearn import calibrated_classifier  # noqa: PLC0415 - lazily, see above

    return getattr(calibrated_classifier, name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__

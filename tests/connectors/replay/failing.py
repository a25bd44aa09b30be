"""A calibrator that fails."""

from abers import VennAbers


class FailingCalibrator(VennAbers):
    """A calibrator that fails at every step."""

    def run(self, *_: object, **__: object) -> None:  # type: ignore[override]
        """Raise an error."""
        msg = "asked to fail"
        raise ZeroDivisionError(msg)

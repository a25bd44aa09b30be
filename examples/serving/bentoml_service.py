"""The model as a service of BentoML: predictions, and labels that calibrate it while it runs."""

import os
from pathlib import Path

import bentoml
import pandas as pd
from bentoml.exceptions import InvalidArgument
from calibrated_model import CalibratedModel


# --8<-- [start:example]
# One worker: each would have a calibrator of its own, which knows only the labels that came to it.
@bentoml.service(workers=1)
class Calibrated:
    """Calibrated probabilities of the model in the folder ABERS_MODEL."""

    def __init__(self) -> None:
        self.folder = Path(os.environ["ABERS_MODEL"])
        self.model = CalibratedModel.load(self.folder)

    # `async` without `await`: one request after the other, so files are never mixed.
    @bentoml.api  # type: ignore[untyped-decorator]
    async def predict(self, rows: list[dict[str, float]]) -> list[dict[str, float]]:
        """Return p0, p1 and the probability p for each row of features."""
        try:
            found = self.model.predict(pd.DataFrame(rows))
        except (KeyError, ValueError) as error:
            raise InvalidArgument(str(error)) from error
        return [dict(zip(found, row, strict=True)) for row in found.to_numpy().tolist()]

    @bentoml.api  # type: ignore[untyped-decorator]
    async def learn(self, rows: list[dict[str, float]], labels: list[int]) -> int:
        """Learn labels of rows; return the number of labels kept, once it is on the disk."""
        try:
            self.model.learn(pd.DataFrame(rows), labels)
        except (KeyError, ValueError) as error:
            raise InvalidArgument(str(error)) from error
        self.model.save_calibrator(self.folder)
        return len(self.model.calibrator)


# --8<-- [end:example]

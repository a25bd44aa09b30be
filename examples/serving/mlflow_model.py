"""The model for MLflow, which runs this file to load the model, so that nothing is pickled."""

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from calibrated_model import CalibratedModel


class MlflowModel(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """Rows of features in; p0, p1 and the probability p out."""

    def load_context(self, context: Any) -> None:  # noqa: ANN401
        """Load the two files, which MLflow has copied."""
        self.model = CalibratedModel.load(Path(context.artifacts["model"]))

    def predict(
        self,
        context: Any,  # noqa: ANN401, ARG002 - as MLflow calls it
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> pd.DataFrame:
        """Return the columns p0, p1 and p."""
        return self.model.predict(model_input)


mlflow.models.set_model(MlflowModel())

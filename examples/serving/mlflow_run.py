"""Log a calibrated model in MLflow, and predict with it in a new process.

Needs `pip install mlflow 'abers[skops]'`. It prints:

169 rows with p0, p1, p, as in this process to the bit: True
pickles in the logged model: 0
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true"}

import mlflow
import pandas as pd
from calibrated_model import CalibratedModel
from make_model import make_model

HERE = Path(__file__).parent
PREDICT = """
import json, sys, mlflow, pandas as pd
model = mlflow.pyfunc.load_model(sys.argv[1])
answers = model.predict(pd.DataFrame(json.load(sys.stdin)))
json.dump(answers.to_dict("list"), sys.stdout)
"""


# --8<-- [start:example]
def log_model(folder: Path, rows: pd.DataFrame) -> str:
    """Log the model of a folder, and return its address."""
    answers = CalibratedModel.load(folder).predict(rows)
    logged = mlflow.pyfunc.log_model(
        name="calibrated",
        python_model=str(HERE / "mlflow_model.py"),  # code instead of a pickle
        code_paths=[str(HERE / "calibrated_model.py")],
        artifacts={"model": str(folder)},
        signature=mlflow.models.infer_signature(rows, answers),
        pip_requirements=["abers[skops]", "pandas"],
    )
    return str(logged.model_uri)


# --8<-- [end:example]


def main() -> None:
    """Make a model, log it into a store of its own, and compare."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
        mlflow.create_experiment("abers", (folder / "artifacts").as_uri())
        mlflow.set_experiment("abers")
        rows, _ = make_model(folder / "model")
        log_model(folder / "model", rows)
        (logged,) = folder.glob("artifacts/**/MLmodel")
        ran = subprocess.run(
            [sys.executable, "-c", PREDICT, logged.parent],
            input=json.dumps(rows.to_dict("list")),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found = pd.DataFrame(json.loads(ran.stdout))
        expected = CalibratedModel.load(folder / "model").predict(rows)
        print(
            f"{len(found)} rows with {', '.join(found)}, as in this process to the bit:"
            f" {found.equals(expected)}"
        )
        pickles = [*logged.parent.rglob("*.pkl"), *logged.parent.rglob("*.pickle")]
        print(f"pickles in the logged model: {len(pickles)}")


if __name__ == "__main__":
    main()

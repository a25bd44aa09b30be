"""Serve a calibrated model by BentoML, teach it labels over HTTP, and start it again.

Needs `pip install bentoml 'abers[skops]' pandas`. It prints:

169 predictions as in this process to the bit: True
100 labels more, 300 in all; 69 predictions as in this process: True
after a new start: True
"""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ |= {"BENTOML_DO_NOT_TRACK": "True"}

import bentoml
import pandas as pd
from calibrated_model import CalibratedModel
from make_model import make_model

LEARNED = 100


@contextmanager
def served(folder: Path) -> Iterator[Any]:
    """Run the server of this machine alone, and return a client of it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ["ABERS_MODEL"] = str(folder)
    here = str(Path(__file__).parent)
    with (
        bentoml.serve("bentoml_service:Calibrated", host="127.0.0.1", port=port, working_dir=here),
        bentoml.SyncHTTPClient(f"http://127.0.0.1:{port}", server_ready_timeout=300) as client,
    ):
        yield client


def main() -> None:
    """Make a model, serve it, and compare with the same model in this process."""
    with tempfile.TemporaryDirectory() as place:
        data, labels = make_model(Path(place))
        here, rows = CalibratedModel.load(Path(place)), data.to_dict("records")
        with served(Path(place)) as client:
            same = pd.DataFrame(client.predict(rows=rows)).equals(here.predict(data))
            print(f"{len(rows)} predictions as in this process to the bit: {same}")
            total = client.learn(rows=rows[:LEARNED], labels=labels[:LEARNED])
            here.learn(data[:LEARNED], labels[:LEARNED])
            expected, later = here.predict(data[LEARNED:]), rows[LEARNED:]
            same = pd.DataFrame(client.predict(rows=later)).equals(expected)
            print(
                f"{LEARNED} labels more, {total} in all;"
                f" {len(later)} predictions as in this process: {same}"
            )
        with served(Path(place)) as client:
            same = pd.DataFrame(client.predict(rows=later)).equals(expected)
            print(f"after a new start: {same}")


if __name__ == "__main__":
    main()

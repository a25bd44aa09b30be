"""A client of `abers serve`: it sends a request again until it is answered, which is always safe.

Start `abers serve`, and then run `python examples/serving/serve_client.py`. It needs the standard
library alone.
"""

from __future__ import annotations

import http.client
import json
import os
import time
from typing import Any
from urllib.parse import urlsplit

AGAIN = frozenset({429, 503})
PAUSES = (0.1, 0.3, 1.0, 3.0, 10.0)  # seconds between two tries; a restart takes a few


class ServeClient:
    """Predictions and labels of `abers serve`.

    Parameters
    ----------
    url
        Address of the server.
    tokens
        Tokens by kind, "predict" and "label"; by default those of the environment.
    """

    def __init__(self, url: str, tokens: dict[str, str] | None = None) -> None:
        self._url = urlsplit(url)
        found = {
            kind: os.environ.get(f"ABERS_{kind.upper()}_TOKEN") for kind in ("predict", "label")
        }
        self._tokens = found if tokens is None else tokens

    def predict(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the prediction of each row, or its error; an id keeps its prediction."""
        return self._answered("/v1/predict", "predict", rows)

    def label(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send labels, and return the status of each; a label is learned once."""
        return self._answered("/v1/labels", "label", rows)

    def _answered(self, path: str, kind: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        body = json.dumps(rows)
        for pause in (*PAUSES, None):
            try:
                status, answer = self._sent(path, kind, body)
            except (OSError, http.client.HTTPException) as error:
                status, answer = 503, {"error": str(error)}
            if status == http.HTTPStatus.OK:
                return list(answer)
            if status not in AGAIN or pause is None:
                msg = f"{path}: {status}: {answer['error']}"
                raise RuntimeError(msg)
            time.sleep(pause)
        raise AssertionError

    def _sent(self, path: str, kind: str, body: str) -> tuple[int, Any]:
        secure = self._url.scheme == "https"
        kinds = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kinds(self._url.netloc, timeout=10)
        headers = {"content-type": "application/json"}
        if token := self._tokens.get(kind):
            headers["authorization"] = f"Bearer {token}"
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


if __name__ == "__main__":
    client = ServeClient("http://127.0.0.1:8090")
    print(client.predict([{"id": "a1", "score": 0.83}]))
    print(client.label([{"id": "a1", "label": 1}]))

"""A client of `abers serve`: it sends a request again until it is answered, which is always safe.

Start `abers serve`, and then run `python examples/serving/serve_client.py`. It needs the standard
library alone.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

AGAIN = frozenset({429, 502, 503, 504})  # a proxy answers 502 and 504 while the server restarts
PATIENCE, TIMEOUT = 60.0, 10.0  # seconds: of all tries together, and without a byte of an answer
FIRST, LONGEST = 0.1, 10.0  # seconds between two tries: at most, and doubled each time


class ServeClient:
    """Predictions and labels of `abers serve`. Threads need a client each.

    Parameters
    ----------
    url
        Address of the server. The authority of its certificate is one of the system, or in the file
        that SSL_CERT_FILE names.
    tokens
        Tokens by kind, "predict" and "label"; by default those of the environment.
    patience
        Seconds after which an error is raised instead of another try.
    """

    def __init__(
        self, url: str, tokens: dict[str, str] | None = None, patience: float = PATIENCE
    ) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        opened = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._connection, self._patience = opened(parts.netloc, timeout=TIMEOUT), patience
        named = {kind: f"ABERS_{kind.upper()}_TOKEN" for kind in ("predict", "label")}
        found = {kind: os.environ.get(name, "") for kind, name in named.items()}
        self._tokens = found if tokens is None else tokens

    def predict(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the prediction of each row, or its error; an id keeps its prediction."""
        return self._answered("/v1/predict", "predict", rows)

    def label(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send labels, and return the status of each; a label is learned once."""
        return self._answered("/v1/labels", "label", rows)

    def _answered(self, path: str, kind: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send rows until they are answered; a RuntimeError says why they are not."""
        body, pause, end = json.dumps(rows), FIRST, time.monotonic() + self._patience
        while True:
            least = 0.0
            try:
                status, least, text = self._sent(path, kind, body)
            except ssl.SSLCertVerificationError:
                raise
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()  # nobody knows what was taken, and what still comes
                status, text = 503, f"no answer ({error!r})"
            if status == http.HTTPStatus.OK:
                return list(json.loads(text))
            # Clients that wait for one server do not all come back at once.
            wait = least + random.uniform(pause / 2, pause)  # noqa: S311 - no secret
            if status not in AGAIN or time.monotonic() + wait > end:
                msg = f"{path}: {status}: {text}"
                raise RuntimeError(msg)
            time.sleep(wait)
            pause = min(2 * pause, LONGEST)

    def _sent(self, path: str, kind: str, body: str) -> tuple[int, float, str]:
        """Return status, the seconds of Retry-After, and the text; the connection stays open."""
        headers = {"content-type": "application/json"}
        if token := self._tokens.get(kind):
            headers["authorization"] = f"Bearer {token}"
        self._connection.request("POST", path, body, headers)
        response = self._connection.getresponse()
        text = response.read().decode(errors="replace")
        after = response.headers.get("retry-after", "")
        return response.status, float(after) if after.isdecimal() else 0.0, text


if __name__ == "__main__":
    client = ServeClient("http://127.0.0.1:8090")
    print(client.predict([{"id": "a1", "score": 0.83}]))
    print(client.label([{"id": "a1", "label": 1}]))

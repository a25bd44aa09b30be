"""The sections of a service in words.

Governing rule: that of `_config_words`; and no word is said of a password.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers_connectors._config_moments import counted, duration, moment

if TYPE_CHECKING:
    from abers_connectors.config import Config, Http, Kafka, Output, Security, State

__all__ = ["service_inputs", "service_outputs", "service_rest"]

_BEGINS = {"earliest": "with the earliest records", "latest": "with the records to come"}
_LOST = {
    "stop": "end the run",
    "earliest": "are passed over, up to the earliest that is left",
    "latest": "are passed over, and all others up to the end",
}


def service_inputs(kafka: Kafka) -> dict[str, str]:
    """Say which topics are read, and from whom."""
    found = {"brokers": f"{', '.join(kafka.bootstrap)}, {_security(kafka.security)}"}
    if kafka.labels is None:
        return found | {"observations": f"topic {kafka.observations}, labels among them"}
    return found | {
        "observations": f"topic {kafka.observations}, without labels",
        "labels": f"topic {kafka.labels}, merged by the time of the records",
    }


def _security(security: Security) -> str:
    way = "encrypted" if security.encrypted else "not encrypted"
    if security.encrypted and not security.check_hostname:
        way += ", by whatever name they have"
    if security.certfile is not None:
        way += f", with the certificate {security.certfile}"
    if security.by_password:
        way += f", as {security.username} by {security.mechanism}"
    return way


def service_outputs(kafka: Kafka, output: Output) -> dict[str, str]:
    """Say which topics are written."""
    found = {"predictions": f"topic {kafka.predictions}"}
    if kafka.outcomes is not None:
        found["outcomes"] = f"topic {kafka.outcomes}"
    if kafka.alerts is not None:
        found["alerts"] = f"topic {kafka.alerts}"
    most = f"more than {output.max_dead_per_1000:,} of 1,000 end the run"
    ending = "the first one ends the run" if output.on_bad_record == "stop" else most
    return found | {
        "bad records": f"topic {kafka.dead_letters}; {ending}",
        "changelog": f"topic {kafka.changelog}",
    }


def service_rest(config: Config, kafka: Kafka) -> dict[str, str]:
    """Say how a service begins, goes on and ends."""
    return {
        "application": f"{kafka.app}, instance {kafka.instance}",
        "begins": _begins(kafka),
        "lost records": f"{_LOST[kafka.lost_history]}",
        "batches": f"at most {counted(kafka.max_records, 'record')} or {kafka.max_bytes:,} bytes, "
        f"or what comes within {duration(kafka.linger)}; compression {kafka.compression}",
        "waits": f"{duration(kafka.max_idle)} for the other input, "
        f"{duration(kafka.transaction_timeout)} for a transaction; "
        f"ends itself after {duration(kafka.watchdog)} without progress",
        "state": _state(config.state),
        "health and metrics": _http(config.http),
    }


def _begins(kafka: Kafka) -> str:
    start = kafka.start
    words = _BEGINS[start] if isinstance(start, str) else f"with the records from {moment(start)}"
    words += ", or where it was"
    if kafka.publish_from is not None:
        words += f"; predictions before {moment(kafka.publish_from)} are not published"
    return words


def _state(state: State) -> str:
    if state.path is None:
        return "that of the changelog, without snapshots"
    where = "for all machines" if state.shared else "for this machine"
    return (
        f"the changelog, and snapshots in {state.path} {where}: "
        f"the last {state.keep:,}, one every {counted(state.every, 'record')}"
    )


def _http(http: Http) -> str:
    if not http.enabled:
        return "are not told"
    host = f"[{http.host}]" if ":" in http.host else http.host
    return f"http://{host}:{http.port or 'any free port'}"

"""Recording and alerting rules for Prometheus."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["alert_rules"]


def alert_rules(page: Collection[str] = ()) -> str:
    """Return the rules as YAML.

    Parameters
    ----------
    page
        Alerts of severity "page"; all others are tickets. "all" stands for all of them.

    Raises
    ------
    ParameterError
        If an alert is unknown.

    Examples
    --------
    >>> alert_rules(["AbersDown"]).count("severity: page")
    1
    """
    text = files("abers_connectors").joinpath("rules.yml").read_text("utf-8")
    first, *rest = re.split(r"(?=^ +- alert: )", text, flags=re.MULTILINE)
    alerts = {one.split("alert: ", 1)[1].split("\n", 1)[0]: one for one in rest}
    if unknown := {*page} - {*alerts, "all"}:
        msg = f"--page {min(unknown)}: no such alert; the alerts are all, {', '.join(alerts)}"
        raise ParameterError(msg)
    for name in alerts if "all" in page else page:
        alerts[name] = alerts[name].replace("severity: ticket", "severity: page")
    return first + "".join(alerts.values())

"""Reports on forecasts in arrays, for notebooks and loops: `abers.report` and `abers.monitor`."""

from abers.notebook.forecast_monitor import ForecastMonitor, monitor, report
from abers.notebook.forecast_report import ForecastReport

__all__ = ["ForecastMonitor", "ForecastReport", "monitor", "report"]

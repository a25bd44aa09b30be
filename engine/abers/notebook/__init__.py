"""Reports on forecasts in arrays, for notebooks and loops: `abers.report` and `abers.monitor`."""

from abers.notebook.forecast_monitor import ForecastMonitor, monitor
from abers.notebook.forecast_report import ForecastReport
from abers.notebook.frame_report import report

__all__ = ["ForecastMonitor", "ForecastReport", "monitor", "report"]

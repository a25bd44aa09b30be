"""A history of thousands of models on Dask, Ray and Spark."""

from abers.engines.history import process_history
from abers.engines.part_files import HistoryTotals

__all__ = ["HistoryTotals", "process_history"]

"""Benchmarks: the cost of abers and of its alternatives, measured in one run.

A figure is a ratio or a time of this run on this machine, with its spread; losses are shown as
openly as gains. `python -m benchmarks` writes docs/benchmarks.md and
docs/benchmarks_streams.md; no test passes or fails by it.
"""

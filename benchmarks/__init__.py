"""Benchmarks: what abers costs, beside what else could be used, measured in one run.

Governing rule: a figure is a ratio or a time measured in this run on this machine, with its
spread; whatever is lost is shown as openly as what is won. `python -m benchmarks` writes
docs/benchmarks.md; nothing here decides whether a test passes.
"""

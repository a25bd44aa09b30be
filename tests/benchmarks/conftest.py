"""Lets the tests import `benchmarks`, which is a part of the checkout and never installed."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

sys.path.append(str(ROOT))

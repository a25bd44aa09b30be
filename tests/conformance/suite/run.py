"""Asks a calibrator everything in binary.json, and ends with what it answered wrongly."""

import json
import sys
from fractions import Fraction
from pathlib import Path

from abers import VennAbers as Calibrator  # put the one to be tested here

suite = json.loads(Path(__file__).with_name("binary.json").read_text(encoding="utf-8"))
wrong = []
for case in suite["bags"] + suite["streams"]:
    calibrator = Calibrator(window=case.get("window"))
    steps = case.get("steps", [])
    if not steps:  # a bag: learn everything, then ask everything
        learned = zip(case["scores"], case["labels"], case["weights"], strict=True)
        asked = zip(case["queries"], case["p0"], case["p1"], strict=True)
        steps = [("learn", *row) for row in learned] + [("predict", *row) for row in asked]
    for step, score, one, other in steps:
        if step == "learn":
            calibrator.learn_one(score, one, weight=other)
        elif step == "remove":
            calibrator.remove_one(score, one, weight=other)
        else:
            p0, p1 = calibrator.predict_one(score)
            pairs = ((p0, one), (p1, other))
            if not all(abs(p - Fraction(exact)) <= 1e-12 for p, exact in pairs):  # NaN never is
                wrong.append(f"{case['name']} at {score}: {p0}, {p1}; right: {one}, {other}")
sys.exit("\n".join(wrong) or None)

"""Verdicts on parts of predictions, `abers.monitoring.verdict`."""

from __future__ import annotations

import numpy as np

from abers.monitoring import Verdict, VerdictSequence, Words
from abers.monitoring.verdict import verdict_parts


def verdict(part: str, forecast: float, ones: int, n: int = 4_000) -> Verdict:
    """Return the verdict on equal forecasts of a part, of which the first labels are 1."""
    words = Words("raw scores", f"labels {part}", part=part, parts="classes")
    sequence = VerdictSequence("raw", 1.25, words=words)
    labels = np.zeros(n)
    labels[:: n // ones] = 1.0
    sequence.update(np.full(n, forecast), labels, np.arange(n))
    return sequence.verdict()


def test_what_is_outside_is_named_and_the_rest_counted() -> None:
    """A sentence counts the parts, and names those outside with their sizes, largest gap first."""
    one = verdict("a", 0.2, 800), verdict("b", 0.4, 800), verdict("c", 0.8, 800)
    few = verdict("d", 0.2, 8, 40)
    (parts,) = verdict_parts([*one, few])
    assert [each.words.part for each in parts.outside] == ["c", "b"]
    assert parts.trustworthy == 1
    assert parts.sentence.startswith(
        "Classes of the raw scores: 1 right, 2 off, 1 undecided: "
        f"c too high: {parts.outside[0].sizes}; b too high: "
    )


def test_a_sentence_names_at_most_five() -> None:
    """With many parts outside the sentence stays short."""
    (parts,) = verdict_parts([verdict(f"c{one}", 0.8, 800) for one in range(8)])
    assert parts.sentence.count("too high: ") == 5
    assert parts.sentence.endswith("; 3 more.")


def test_a_part_is_named_in_its_own_sentence() -> None:
    """The sentence of a verdict on a class says which class, and counts its labels."""
    sentence = verdict("b", 0.4, 800).sentence
    assert sentence.startswith("The raw scores (b) are too high, since")
    assert " % (labels b): " in sentence

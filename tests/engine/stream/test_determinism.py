"""Equal events give equal bytes in every process, `abers.stream.processor`."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import blake2b

import msgspec
import pytest
from tests.engine.stream.cases import Scorer, stream

from abers.stream import Processor, Settings

HERE = "tests.engine.stream.test_determinism"
SETTINGS = Settings(label_timeout=2_000, max_pending=20, max_early=4, dedup_max_ids=60)
FORGETTING: tuple[dict[str, int], ...] = ({}, {"window": 20}, {"max_age": 900}, {"half_life": 300})


def digests() -> list[str]:
    """Digest outputs and state of streams of several models and segments."""
    found = []
    for options in FORGETTING:
        for learner in (None, Scorer()):
            settings = msgspec.structs.replace(SETTINGS, **options)
            processor = Processor(settings, learner=learner)
            outputs = processor.process_many(stream(400, every=20))
            found += [digest(msgspec.json.encode(outputs)), digest(processor.state_bytes())]
    return found


def digest(data: bytes) -> str:
    """Digest bytes."""
    return blake2b(data, digest_size=16).hexdigest()


def elsewhere(**environment: str) -> list[str]:
    """Let another process find the digests."""
    command = [sys.executable, "-c", f"from {HERE} import digests; print(*digests())"]
    done = subprocess.run(
        command, env=os.environ | environment, check=True, capture_output=True, text=True
    )
    return done.stdout.split()


@pytest.mark.once
def test_hash_seed() -> None:
    """The seed of Python's hashes decides nothing."""
    here = digests()
    assert len(set(here)) == len(here)
    assert elsewhere(PYTHONHASHSEED="1") == elsewhere(PYTHONHASHSEED="2") == here

"""What scores features where a model does not bring its scores."""

from __future__ import annotations

from abers.learners.learner import Learner

__all__ = ["Learner"]

"""Learners that a stream drives: models that score features and learn from labels.

`Learner` is their protocol, `river_adapters` makes learners of river's models, and `gaussian` has
models that predict a normal distribution. river and scikit-learn are imported only where used.
"""

from abers.learners.learner import Learner

__all__ = ["Learner"]

"""One run with unknown truth: durable ask and tell over an append-only event log in one file."""

from causalarms.study.study import Study
from causalarms.study.trials import Trial

__all__ = ["Study", "Trial"]

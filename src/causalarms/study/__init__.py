"""One run with unknown truth: durable ask and tell over an append-only event log in one file."""

from causalarms.study.records import Trial
from causalarms.study.study import Study

__all__ = ["Study", "Trial"]

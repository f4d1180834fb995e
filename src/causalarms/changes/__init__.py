"""Which mechanisms to forget."""

from causalarms.changes.alarm import Alarm
from causalarms.changes.mechanism_glr import MechanismGLR
from causalarms.changes.misfit import misfits
from causalarms.changes.no_change import NoChange
from causalarms.changes.whole_graph import WholeGraphRatio

__all__ = ["Alarm", "MechanismGLR", "NoChange", "WholeGraphRatio", "misfits"]

"""Which mechanisms to forget."""

from causalarms.changes.alarm import ANY, Alarm
from causalarms.changes.detector import Detector
from causalarms.changes.evidence import ChangeEvidence
from causalarms.changes.mechanism_glr import MechanismGLR
from causalarms.changes.misfit import misfits
from causalarms.changes.no_change import NoChange
from causalarms.changes.registry import detector_names, make_detector
from causalarms.changes.view import MODEL, PREDICTION, View
from causalarms.changes.whole_graph import WholeGraphRatio

__all__ = [
    "ANY",
    "MODEL",
    "PREDICTION",
    "Alarm",
    "ChangeEvidence",
    "Detector",
    "MechanismGLR",
    "NoChange",
    "View",
    "WholeGraphRatio",
    "detector_names",
    "make_detector",
    "misfits",
]

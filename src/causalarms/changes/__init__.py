"""Which mechanisms to forget."""

from causalarms.changes.detector import ANY, Alarm, Detector, NoChange, misfits
from causalarms.changes.evidence import ChangeEvidence
from causalarms.changes.glr import MechanismGLR, WholeGraphRatio
from causalarms.changes.registry import detector_names, make_detector
from causalarms.changes.view import MODEL, PREDICTION, View

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

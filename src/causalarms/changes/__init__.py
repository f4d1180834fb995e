"""Which mechanisms to forget."""

from causalarms.changes.detector import (
    ANY,
    MODEL,
    PREDICTION,
    Alarm,
    Detector,
    NoChange,
    View,
    misfits,
)
from causalarms.changes.evidence import ChangeEvidence
from causalarms.changes.glr import MechanismGLR, WholeGraphRatio
from causalarms.changes.registry import detector_names, make_detector

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

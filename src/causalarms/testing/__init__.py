"""What every policy, learner and detector promises, as checks that other packages can run.

Each check is given a callable without arguments that makes a fresh one, always with the same
settings, and raises AssertionError with the promise that is broken.

>>> from causalarms.changes import MechanismGLR
>>> check_detector(lambda: MechanismGLR(3, threshold=20.0))
"""

from __future__ import annotations

from causalarms.testing.parts import check_detector, check_learner
from causalarms.testing.policies import check_policy

__all__ = ["check_detector", "check_learner", "check_policy"]

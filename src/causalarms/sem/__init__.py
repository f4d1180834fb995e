"""The mathematics of a linear SEM with soft interventions (Sec. II of the paper)."""

from causalarms.sem.constraints import Constraints
from causalarms.sem.convert import (
    from_causal_learn,
    from_lingam,
    from_networkx,
    to_causal_learn,
    to_lingam,
    to_networkx,
)
from causalarms.sem.ensembles import Ensemble, Regeneration, random_sem, regenerate
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.rewards import all_interventions
from causalarms.sem.shifts import ShiftedSEM, random_shifted_sem, shifted_sem

__all__ = [
    "Constraints",
    "Ensemble",
    "LinearSEM",
    "Regeneration",
    "ShiftedSEM",
    "all_interventions",
    "from_causal_learn",
    "from_lingam",
    "from_networkx",
    "random_sem",
    "random_shifted_sem",
    "regenerate",
    "shifted_sem",
    "to_causal_learn",
    "to_lingam",
    "to_networkx",
]

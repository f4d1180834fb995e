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

__all__ = [
    "Constraints",
    "Ensemble",
    "LinearSEM",
    "Regeneration",
    "all_interventions",
    "from_causal_learn",
    "from_lingam",
    "from_networkx",
    "random_sem",
    "regenerate",
    "to_causal_learn",
    "to_lingam",
    "to_networkx",
]

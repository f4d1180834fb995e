"""The best of all interventions: arrays in, arrays out."""

from causalarms.search.best import Best, best_intervention, best_interventions
from causalarms.search.constraints import Constraints
from causalarms.search.factors import Factors

__all__ = ["Best", "Constraints", "Factors", "best_intervention", "best_interventions"]

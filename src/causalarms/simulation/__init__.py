"""Many runs with known truth: the round loop, Monte Carlo, regret and its intervals."""

from causalarms.simulation.experiment import (
    Contestant,
    Experiment,
    LearnerContestant,
    LearnerExperiment,
)
from causalarms.simulation.monte_carlo import compare_learners, monte_carlo
from causalarms.simulation.noise import NOISE_DISTRIBUTIONS
from causalarms.simulation.results import Results, read_results
from causalarms.simulation.simulate import Trace, simulate
from causalarms.simulation.summary import summarise, summarise_learners
from causalarms.simulation.world import BENDS, Change, World, switching_world

__all__ = [
    "BENDS",
    "NOISE_DISTRIBUTIONS",
    "Change",
    "Contestant",
    "Experiment",
    "LearnerContestant",
    "LearnerExperiment",
    "Results",
    "Trace",
    "World",
    "compare_learners",
    "monte_carlo",
    "read_results",
    "simulate",
    "summarise",
    "summarise_learners",
    "switching_world",
]

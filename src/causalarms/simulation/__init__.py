"""Many runs with known truth: the round loop, Monte Carlo, regret and its intervals."""

from causalarms.simulation.bends import BENDS
from causalarms.simulation.compare_learners import compare_learners, summarise_learners
from causalarms.simulation.experiment import Contestant, Experiment
from causalarms.simulation.learners import LearnerContestant, LearnerExperiment
from causalarms.simulation.monte_carlo import monte_carlo
from causalarms.simulation.noise import NOISE_LAWS
from causalarms.simulation.simulate import Trace, simulate
from causalarms.simulation.store import Results, read_results
from causalarms.simulation.summary import summarise
from causalarms.simulation.world import Change, World, switching_world

__all__ = [
    "BENDS",
    "NOISE_LAWS",
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

"""Many runs with known truth: the round loop, Monte Carlo, regret and its intervals."""

from causalarms.simulation.experiment import Contestant, Experiment
from causalarms.simulation.monte_carlo import monte_carlo
from causalarms.simulation.simulate import Trace, simulate
from causalarms.simulation.summary import summarise
from causalarms.simulation.world import Change, World, switching_world

__all__ = [
    "Change",
    "Contestant",
    "Experiment",
    "Trace",
    "World",
    "monte_carlo",
    "simulate",
    "summarise",
    "switching_world",
]

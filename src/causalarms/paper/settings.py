"""Settings of the reproduction, each with its source.

(text) is the paper, (program) the authors' published program, (ours) an assumption where neither
says; docs/reproduction.md has the measured effect of each reading. Text and program draw weights
from different distributions: every part is run under both.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from causalarms.simulation.experiment import Contestant, Experiment

MADE_BY = "causalarms reproduce"
DEFAULT_RUNS = 25
PAPER_RUNS = 100  # (text) M

# Distributions of the weights, in the order of tables
READINGS = {"uniform": "text: U(-2, 2)", "separated": "program: ±U(0.5, 2)"}
# The defaults of this package, told what the methods of the paper are told and no more
OUR_LEARNER, OUR_POLICY, OUR_POLICY_CD = "GraphPosterior", "posterior", "posterior-cd"

# (text) Sec. VI, in per cent: averages over sizes and T, at the end of a run, over a whole run
STATED = {
    "recall": {"GOLEM": 92.7, "DAGMA": 93.8, "CSL": 99.6},
    "precision": {"GOLEM": 93.5, "DAGMA": 90.9, "CSL": 96.7},
    "false_negative": {"CSL-nw": 100.0},
    "final_optimal_share": {
        "vanilla UCB": 47.2, "GOLEM-MAB": 71.0, "CSL-UCB": 79.0, "LinSEM-TS": 94.2,
    },
    "optimal_share": {
        "vanilla UCB": 7.0, "GOLEM-MAB-CD": 18.3, "LinSEM-TS": 32.6, "CSL-UCB-CD": 63.8,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What can be varied from the command line, and what the paper fixes.

    weights            distribution of the weights
    seed               everything random follows from it
    sizes              of graphs, for graph identification
    sample_sizes       rounds, for graph identification
    n_nodes            of all other parts
    horizon            rounds of the stationary bandits
    changes            rounds after which mechanisms change
    changing_horizon   rounds of the non-stationary bandits
    n_changed          mechanisms that change at once
    error_rounds       times at which the error of rewards is measured
    budgets            rounds that are tried for the sample complexity
    """

    weights: str = "separated"  # (program) sign * U(0.5, 2); (text) U(-2, 2) is "uniform"
    seed: int = 0
    sizes: tuple[int, ...] = (6, 8, 10, 12, 14)  # (ours) the smallest is the text's
    sample_sizes: tuple[int, ...] = (200, 400)  # (text)
    n_nodes: int = 10  # (text) for the bandits
    horizon: int = 1500  # (text)
    changes: tuple[int, ...] = (1000, 2000)  # (text)
    changing_horizon: int = 3000  # (ours)
    n_changed: int = 3  # (ours); drawn with replacement by the program's rule
    error_rounds: tuple[int, ...] = (100, 200, 300, 400, 500, 600, 700, 800, 900, 1000)  # (ours)
    budgets: tuple[int, ...] = (100, 200, 300, 400, 600, 900, 1200)  # (ours)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    def stationary(self) -> Experiment:
        """Sec. VI-B: vanilla UCB, GOLEM-MAB, CSL-UCB, LinSEM-TS."""
        return Experiment(
            n_nodes=self.n_nodes,
            horizon=self.horizon,
            weights=self.weights,
            seed=self.seed,
            contestants=(
                Contestant("ucb", "vanilla UCB"),
                Contestant("golem-mab", "GOLEM-MAB"),
                Contestant("csl-ucb", "CSL-UCB", AUTHORS),
                Contestant("linsem-ts", "LinSEM-TS"),
                Contestant(OUR_POLICY),
            ),
        )

    def changing(self) -> Experiment:
        """Sec. VI-C: the same with change detection; LinSEM-TS keeps the topology it was given."""
        return Experiment(
            n_nodes=self.n_nodes,
            horizon=self.changing_horizon,
            weights=self.weights,
            seed=self.seed,
            changes=self.changes,
            n_changed=self.n_changed,
            contestants=(
                Contestant("ucb", "vanilla UCB", {"window": 10}),  # (program)
                Contestant("golem-mab-cd", "GOLEM-MAB-CD"),
                Contestant("csl-ucb-cd", "CSL-UCB-CD", AUTHORS | {"detector": "authors"}),
                Contestant("linsem-ts", "LinSEM-TS"),
                Contestant(OUR_POLICY_CD),
            ),
        )


# (program) sigma handed to the bound and the detector
AUTHORS: dict[str, Any] = {"noise_std": "true"}

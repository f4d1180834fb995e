"""What one evaluation of the knowledge gradient is worth, by brute force, in small systems.

`OMP_NUM_THREADS=1 python benchmarks/value_of_a_round.py [--systems 16] [--first 50000]
[--truths 400]`
Systems of three and four nodes, told the means and the size of the noise, are played by
`posterior` for 60 rounds. After 16, 32 and 59 rounds every arm is judged: a system is drawn from
the posterior and taken as the truth, a round of the arm is simulated, the exact posterior learns
it, and the arm with the best expected reward is settled on (24 orders and all parent sets stand
for the expectation). The net value of an arm is t times what the round saves, less what it costs
next to the best on average, in units of best minus average reward. Arms are chosen by one half of
the truths and judged by the other.
"""

from __future__ import annotations

import argparse
import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console

from causalarms.models.knowledge_gradient.model import model_of
from causalarms.policies.posterior import PosteriorPolicy
from causalarms.policies.registry import make_policy
from causalarms.posterior.base import Posterior
from causalarms.rng import stream
from causalarms.sem.ensembles import random_sem
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.rewards import all_interventions, index_of, reward_tables
from shared import mean_and_error, table

FloatArray = npt.NDArray[np.float64]
ROUNDS = (16, 32, 59)
EVALUATIONS = 12
ORDERS, SETS = 24, 8  # all of three nodes, nearly all of four; all parent sets
TOLD: dict[str, Any] = {"noise_scale": 1.0, "typing_errors": "kept", "gaps": "drop"}


def expected_rewards(posterior: Posterior, reward: int, rng: np.random.Generator) -> FloatArray:
    """Of all arms, (A,)."""
    model = model_of(posterior, posterior.draw(rng, ORDERS).order, rng, SETS)
    tables = reward_tables(model.weights, model.intercept, model.orders, reward, model.regimes)
    return np.asarray(tables.mean(axis=0))


def losses(policy: PosteriorPolicy, truths: int, rng: np.random.Generator) -> FloatArray:
    """What is lost after a round of each arm, and without one in the last column, (truths, A+1)."""
    system, reward = policy._system, policy.reward
    assert system.units is not None
    posterior, moments = copy.deepcopy(system.posterior.deciding), system.rounds.moments
    rows = all_interventions(policy.n_nodes)
    draws = posterior.draw(rng, truths)
    true = reward_tables(
        draws.weights, draws.intercept, draws.order, reward, np.full(policy.n_nodes, 2)
    )
    now = int(expected_rewards(posterior, reward, rng).argmax())
    found = np.zeros((truths, len(rows) + 1))
    for d in range(truths):
        sem = LinearSEM(
            weights=draws.weights[d], noise_mean=draws.intercept[d], noise_std=draws.noise_std[d]
        )
        best = true[d].max()
        found[d, -1] = best - true[d, now]
        for arm, row in enumerate(rows):
            later = copy.deepcopy(moments)
            later.add(sem.sample(row[None], rng)[0], row)
            posterior.update(later.in_units(system.units))
            found[d, arm] = best - true[d, int(expected_rewards(posterior, reward, rng).argmax())]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=16)
    parser.add_argument("--first", type=int, default=50_000)
    parser.add_argument("--truths", type=int, default=400)
    given = parser.parse_args()
    values: dict[str, list[float]] = {}
    for seed in range(given.first, given.first + given.systems):
        n = 3 + seed % 2
        sem = random_sem(n, seed=seed)
        scale = float(np.ptp(sem.expected_reward(all_interventions(n))) / 2)
        policy = make_policy("posterior", n_nodes=n, noise_mean=sem.noise_mean, **TOLD)
        assert isinstance(policy, PosteriorPolicy)
        for t in range(1, max(ROUNDS) + 1):
            a = policy.suggest(stream(seed, "policy", t)).intervention
            policy.tell(a, sem.sample(a[None], stream(seed, "noise", t))[0])
            if t not in ROUNDS:
                continue
            rng = stream(seed, "brute force", t)
            lost = losses(policy, given.truths, rng)
            half = given.truths // 2
            mean = expected_rewards(policy._system.posterior.deciding, policy.reward, rng)
            cost = mean.max() - mean

            first, second = (
                (t * (part[:, -1].mean() - part[:, :-1].mean(axis=0)) - cost) / scale
                for part in (lost[:half], lost[half:])
            )
            chosen = [
                int(index_of(policy.suggest(stream(seed, "again", t, k)).intervention[None])[0])
                for k in range(EVALUATIONS)
            ]
            both = 0.5 * (first + second)
            for name, value in {
                "best by brute force": second[int(first.argmax())],
                "one evaluation": float(np.mean(both[chosen])),
                "its most frequent choice of 12": both[np.bincount(chosen).argmax()],
                "best on average": both[int(mean.argmax())],
            }.items():
                values.setdefault(name, []).append(float(value))
    made = table(f"net value of a round, {len(values['one evaluation'])} states", "", "value")
    for name, found in values.items():
        made.add_row(name, mean_and_error(found, digits=3))
    difference = np.subtract(values["one evaluation"], values["best on average"])
    made.add_row("one evaluation - best on average", mean_and_error(difference, digits=3))
    Console(width=100).print(made)


if __name__ == "__main__":
    main()

"""The knowledge gradient: a round is worth its reward, and what its result saves afterwards.

A candidate's outcome is sampled in draws of the posterior, a small model learns it (`model.py`),
and what the best decision then still loses is averaged over the draws (`losses.py`). Among the
first rounds (`early_round`) every round is chosen as the best of
    expected reward - rounds to come * loss per round after it.
Later (`late_round`) the intervention with the best expected reward is played, unless a test is
worth more than it costs; tests are looked for at rounds further and further apart. How many rounds
are to come is not known: a multiple of those played. Derivation and measurements are in
docs/posterior.md#knowledge-gradient, rules that did not beat it in docs/research/what-was-tried.md.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, IntArray, Interventions
from causalarms.models.knowledge_gradient.losses import Decisions, PosteriorDraws, losses_after
from causalarms.models.knowledge_gradient.model import Model, model_of
from causalarms.posterior.base import Draws, Posterior
from causalarms.posterior.missing import PosteriorMixture
from causalarms.sem.rewards import Arms, index_of, intervention_of, reward_tables

# The measured differences between most of these values are within chance
# (docs/research/what-was-tried.md#looking-ahead).
EARLY_ROUNDS = 60  # every round is judged; with 20 of them regret was the same
ORDERS = 6  # of the model; 8 orders, 7 points and 90 draws took twice the time for nothing
POINTS = 6  # parent sets per mechanism and order
EARLY_DRAWS = 48  # in which the outcome of a candidate is sampled
FIRST_DRAWS = 16  # of them judge all candidates, the others only the finalists
FINALISTS = 6
CANDIDATES = 18  # a third each by mean, by upper value and by being the best of a draw
DECISIONS = 40  # interventions that may be decided on after the outcome
DECISIONS_BY_MEAN = 10  # of them: the best ones by mean
LATE_DRAWS = 300  # contain a draw that disagrees with 95 %, if 1 % of all disagree
LATE_TABLE_CELLS = 2**22  # draws times interventions that a late round compares: 32 MiB
DISAGREEING_DRAWS = 20  # at most this many of those are used
TESTS = 10  # candidates of a late round
LATE_HORIZON = 5.0  # rounds to come per root of those played; t / 2 tested too much
PLAYS_OF_A_TEST = (1, 6)  # one may be too few to change a decision
AVERAGE_ORDERS = 8  # for the expected rewards of a round that is not judged
NEGLIGIBLE_GAIN = 1e-3  # of the spread of rewards: a smaller gain is ignored
ROUNDS_PER_GAP = 15  # a round is judged every age / this many rounds
LONGEST_GAP = 30  # rounds between judged rounds, at most


class Situation(NamedTuple):
    """What is asked: which interventions may be played, and what is being played."""

    reward: int
    regimes: IntArray  # (N,)
    arms: Arms  # A allowed ones, and what they are worth in units of the posterior's reward
    pending: Interventions  # (n, N)
    recent: Interventions  # (m, N), the last rounds told, the last one last
    age: int  # rounds played or being played since the last change


class Chosen(NamedTuple):
    """What is played, and why; in the units of the posterior."""

    intervention: npt.NDArray[np.uint8]
    mean: float
    width: float  # of the draws above the mean; nan if there are none
    saved: float = 0.0  # by what is learned, over `rounds` rounds
    rounds: int = 0
    paid: float = 0.0  # by not playing the best on average
    instead_of: npt.NDArray[np.uint8] | None = None  # the best on average, if it is not played


class AverageRewards(NamedTuple):
    """The expected reward of every intervention under the present posterior."""

    model: Model
    rewards: FloatArray  # of all interventions, costs not counted

    def net(self, asked: Situation) -> FloatArray:
        """Rewards of the allowed interventions net of their cost, (A,)."""
        return asked.arms.worth.net(asked.arms.columns(self.rewards))


class Compared(NamedTuple):
    """A allowed interventions in draws of the posterior."""

    tables: FloatArray  # (draws, A) net
    mean: FloatArray  # (A,) net
    best: IntArray  # (draws,) the arm that is best in each


def average_rewards(
    posterior: PosteriorMixture, rng: np.random.Generator, reward: int
) -> AverageRewards:
    """Expected rewards of all interventions, from a model of a few orders of every part."""
    models = []
    for part in posterior.parts:
        orders = part.draw(rng, AVERAGE_ORDERS).order
        models.append(model_of(part, orders, rng, POINTS))
    rewards = [
        reward_tables(m.weights, m.intercept, m.orders, reward, m.regimes).mean(axis=0)
        for m in models
    ]
    return AverageRewards(models[posterior.turn % len(models)], sum(rewards) / len(rewards))


def early_round(
    posterior: Posterior,
    rng: np.random.Generator,
    asked: Situation,
    quantile: float,
) -> Chosen:
    """The best of expected reward - rounds to come * loss after it.

    All candidates are judged by a few draws, and the most promising of them by all.
    """
    n = EARLY_DRAWS
    draws = posterior.draw(rng, n)
    orders = posterior.draw(rng, ORDERS).order
    model = model_of(posterior, orders, rng, POINTS)
    rewards = _net_rewards(model.weights, model.intercept, model.orders, asked)
    compared = _compare(draws, rewards.mean(axis=0), asked)
    incumbent = int(compared.mean.argmax())
    candidates = _candidates(compared, CANDIDATES)
    by_mean = np.argsort(-compared.mean, kind="stable")
    decided = _first_distinct(
        DECISIONS, by_mean[:DECISIONS_BY_MEAN], _by_frequency(compared.best), by_mean
    )
    decisions = _decisions(asked, decided)
    normals = rng.standard_normal((n, len(asked.pending) + 1, len(asked.regimes)))
    rounds = max(asked.age, 1)  # to come, as many as were played; twice as many was no better

    def losses(arms: IntArray, rows: IntArray) -> FloatArray:
        drawn = _posterior_draws(draws, rows, compared, decided, normals[rows])
        return losses_after(model, drawn, asked.pending, _rows(asked, arms), 1.0, decisions)

    first = np.arange(FIRST_DRAWS)
    loss = losses(candidates, first)
    value = compared.mean[candidates] - rounds * loss.mean(axis=0)
    # A few draws are enough to drop hopeless candidates; the most promising ones differ by less
    # than the error of a few draws, so they get all.
    # finalists stay in the order of the candidates: the best by mean comes first and wins a tie
    left = np.sort(np.argsort(-value, kind="stable")[:FINALISTS])
    loss = np.vstack([loss[:, left], losses(candidates[left], np.arange(len(first), n))])
    lost = loss.mean(axis=0)
    finalists = candidates[left]
    best = int((compared.mean[finalists] - rounds * lost).argmax())
    # What the incumbent loses without another round: only the words of the reason use it.
    now = compared.tables.max(axis=1) - compared.tables[:, incumbent]
    drawn = _posterior_draws(draws, np.arange(n), compared, decided, normals)
    saved = rounds * (_loss_so_far(model, drawn, asked, decisions, now) - float(lost[best]))
    return _chosen(asked, compared, int(finalists[best]), incumbent, saved, rounds, quantile)


def late_round(
    posterior: PosteriorMixture,
    average: AverageRewards,
    rng: np.random.Generator,
    asked: Situation,
    quantile: float,
) -> Chosen:
    """The best on average, unless a test is worth more than it costs.

    A test is for the draws that disagree: those in which another intervention is better. It is
    looked for at some rounds (`is_judged`), and after a round that played something else.
    """
    # The averages are computed once per refresh, so that a round that is not judged costs almost
    # nothing.
    model, mean = average.model, average.net(asked)
    incumbent = _incumbent(mean, asked)
    row = _rows(asked, np.array([incumbent]))[0]
    tested = len(asked.recent) > 0 and not np.array_equal(asked.recent[-1], row)
    if not tested and not is_judged(asked.age):
        return Chosen(row, asked.arms.worth.gross(float(mean[incumbent]), incumbent), float("nan"))
    n_draws = int(np.clip(LATE_TABLE_CELLS // len(mean), DISAGREEING_DRAWS, LATE_DRAWS))
    # With draws of this round's own: those of the average are shared by many rounds.
    draws = posterior.draw(rng, n_draws)
    compared = _compare(draws, mean, asked)
    incumbent = _incumbent(compared.mean, asked)
    gain = compared.tables.max(axis=1) - compared.tables[:, incumbent]
    spread = max(float(compared.mean[incumbent] - compared.mean.mean()), 0.0)
    disagree = np.flatnonzero(gain > NEGLIGIBLE_GAIN * spread)
    hold = _chosen(asked, compared, incumbent, incumbent, 0.0, 0, quantile)
    if len(disagree) == 0 or len(mean) == 1:
        return hold
    fraction = len(disagree) / n_draws  # the other draws gain nothing from a test
    rows = disagree[:DISAGREEING_DRAWS]
    theirs = compared._replace(tables=compared.tables[rows], best=compared.best[rows])
    candidates = _candidates(theirs, TESTS)
    candidates = candidates[candidates != incumbent]
    by_mean = np.argsort(-compared.mean, kind="stable")
    decided = _first_distinct(
        DECISIONS,
        np.array([incumbent]),
        _by_frequency(theirs.best),
        by_mean[:DECISIONS_BY_MEAN],
    )
    normals = rng.standard_normal((len(rows), len(asked.pending) + 1, len(asked.regimes)))
    drawn = _posterior_draws(draws, rows, compared, decided, normals)
    decisions = _decisions(asked, decided)
    lost = _loss_so_far(model, drawn, asked, decisions, gain[rows])
    # With t / 2 rounds to come it paid for tests after round 300 that changed nothing; 3 sqrt(t)
    # stayed with an intervention that loses 2 %.
    rounds = LATE_HORIZON * math.sqrt(asked.age)
    paid = compared.mean[incumbent] - compared.mean[candidates]
    best, top, saved = -1, 0.0, 0.0
    # One play may be too few to change a decision and so seem worth nothing, although several in a
    # row would pay: their price is counted with them.
    for plays in PLAYS_OF_A_TEST:
        loss = losses_after(
            model, drawn, asked.pending, _rows(asked, candidates), float(plays), decisions
        ).mean(axis=0)
        worth = rounds * fraction * (lost - loss)
        value = worth - plays * paid
        if value.max() > top:
            best, top = int(value.argmax()), float(value.max())
            saved = float(worth[best]) / plays  # one play is suggested at a time
    if best < 0:
        return hold
    return _chosen(asked, compared, int(candidates[best]), incumbent, saved, int(rounds), quantile)


def is_judged(age: int) -> bool:
    """Whether tests are looked for in this late round, by its number alone."""
    return age % int(np.clip(age // ROUNDS_PER_GAP, 1, LONGEST_GAP)) == 0


def _incumbent(mean: FloatArray, asked: Situation) -> int:
    """The best on average, or the usual one if the difference is negligible."""
    best = int(mean.argmax())
    if len(asked.recent) == 0:
        return best
    usual = _usual_arm(asked)
    if usual is None:
        return best
    # Two interventions that differ in a node with hardly any effect have rewards that differ by the
    # noise of the draws: without this the policy would flip between them.
    least = mean[best] - NEGLIGIBLE_GAIN * float(mean[best] - mean.mean())
    return usual if mean[usual] >= least else best


def _usual_arm(asked: Situation) -> int | None:
    """The intervention played most often in recent rounds; None if it is not allowed."""
    # sorted: of equally frequent ones the smallest wins, whatever their order in time
    played = Counter(sorted(index_of(asked.recent, asked.regimes).tolist()))
    index, arms = played.most_common(1)[0][0], asked.arms.indices
    at = int(np.searchsorted(arms, index))
    return at if at < len(arms) and arms[at] == index else None


def _compare(draws: Draws, mean: FloatArray, asked: Situation) -> Compared:
    """`mean` (A,) is what a model of a few orders expects."""
    tables = _net_rewards(draws.weights, draws.intercept, draws.order, asked)
    # the model averages over weights and the draws over more orders: both are noisy
    return Compared(tables, 0.5 * (mean + tables.mean(axis=0)), tables.argmax(axis=1))


def _net_rewards(
    weights: FloatArray, intercept: FloatArray, order: IntArray, asked: Situation
) -> FloatArray:
    tables = reward_tables(weights, intercept, order, asked.reward, asked.regimes)
    return asked.arms.worth.net(asked.arms.columns(tables))


def _candidates(compared: Compared, n: int) -> IntArray:
    # Three ways to be worth a try: a high mean, a high upper value, being the best in many draws.
    by_mean = np.argsort(-compared.mean, kind="stable")[: n // 3]
    rank = max(len(compared.tables) // 8, 1)  # as good as the best eighth of the draws say
    upper = np.partition(compared.tables, -rank, axis=0)[-rank]
    by_upper = np.argsort(-upper, kind="stable")[: n // 3]
    often_best = _by_frequency(compared.best)[: n // 2]
    return _first_distinct(n, by_mean[:1], by_upper, often_best, by_mean)


def _first_distinct(most: int, *lists: IntArray) -> IntArray:
    """The first `most` different arms, in the order of the lists."""
    together = np.concatenate(lists)
    _, at = np.unique(together, return_index=True)
    return together[np.sort(at)[:most]]


def _by_frequency(arms: IntArray) -> IntArray:
    found, count = np.unique(arms, return_counts=True)
    return found[np.argsort(-count, kind="stable")]


def _rows(asked: Situation, arms: IntArray) -> Interventions:
    indices = asked.arms.indices[arms]
    return np.ascontiguousarray(intervention_of(indices, len(asked.regimes), asked.regimes))


def _posterior_draws(
    draws: Draws, rows: IntArray, compared: Compared, decided: IntArray, normals: FloatArray
) -> PosteriorDraws:
    tables = compared.tables[rows]
    return PosteriorDraws(
        draws.order[rows],
        draws.weights[rows],
        draws.intercept[rows],
        draws.noise_std[rows],
        normals,
        np.ascontiguousarray(tables[:, decided]),
        tables.max(axis=1),
    )


def _decisions(asked: Situation, decided: IntArray) -> Decisions:
    rows = _rows(asked, decided)
    regimes = np.arange(int(asked.regimes.max()))
    chosen = (rows.T[:, None, :] == regimes[None, :, None]).astype(float)
    worth = asked.arms.worth.of(decided)
    return Decisions(np.ascontiguousarray(chosen), worth.keep, worth.charge, asked.reward)


def _loss_so_far(
    model: Model, draws: PosteriorDraws, asked: Situation, decisions: Decisions, now: FloatArray
) -> float:
    """Average loss once the pending results are known; `now` (D,) is the loss without them."""
    if len(asked.pending) == 0:
        return float(now.mean())
    others, last = asked.pending[:-1], asked.pending[-1:]
    return float(losses_after(model, draws, others, last, 1.0, decisions).mean())


def _chosen(
    asked: Situation,
    compared: Compared,
    arm: int,
    incumbent: int,
    saved: float,
    rounds: int,
    quantile: float,
) -> Chosen:
    mean = float(compared.mean[arm])
    gross = asked.arms.worth.gross(mean, arm)
    width = max(float(np.quantile(compared.tables[:, arm], quantile)) - mean, 0.0)
    row = _rows(asked, np.array([arm, incumbent]))
    if arm == incumbent:
        return Chosen(row[0], gross, width)
    paid = float(compared.mean[incumbent]) - mean
    return Chosen(row[0], gross, width, saved, rounds, paid, row[1])

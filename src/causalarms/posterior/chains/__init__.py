"""`SampledPosterior`: the posterior for more nodes than `ExactPosterior` can take.

Markov chains sample orders with probability proportional to the product of what all mechanisms
contribute (Friedman and Koller, 2003), from tables over a few candidate parents (Kuipers, Suter and
Moffa, 2022; Viinikka et al., 2020). Everything else is exact given the order. The target is that of
the exact posterior if all nodes are candidates, and close to it otherwise (`tables.py`).
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.checks import integer
from causalarms.errors import ModelError
from causalarms.posterior.base import Draws, OrderedGraph
from causalarms.posterior.chains import given_order
from causalarms.posterior.chains.candidates import choose_candidates
from causalarms.posterior.chains.convergence import Diagnostics, diagnose
from causalarms.posterior.chains.moves import order_by_spread, sweep_chains
from causalarms.posterior.chains.tables import EMPTY, CandidateTables, table_bytes
from causalarms.posterior.dag import LIKELY
from causalarms.posterior.prior import (
    MechanismPrior,
    check_memory,
    edge_masks,
    kernel_prior,
    regimes_of,
)
from causalarms.posterior.sharing import cells_by_regime
from causalarms.posterior.weights import PointEstimate, RandomNumbers, draw_weights, point_estimate
from causalarms.rng import Seed, generator
from causalarms.sem.regimes import existing
from causalarms.statistics.dataset import Moments

LOG2_TABLES, LOG2_TABLES_WITH_CORE = 3, 8  # a pool holds 2^this many tables of a mechanism
GROWTH_TO_CHOOSE_AGAIN = 1.2  # of a mechanism's samples since its candidates were chosen
CHOICE_ROUNDS = 5  # in which chains and candidates improve each other before orders are kept
SWEEPS_AT_ONCE = 1000  # whose random numbers are in memory at a time
START_ERROR = 2.0  # standard deviation of the errors of log variances that chains start with
STEP_ROUNDS = 10  # Gibbs steps from a draw of the tables, if nodes outside the tables matter
CHOICE_FIELDS = ("members", "n_free", "n_core", "needed", "log_odds", "vague", "tail", "linked")
LARGEST_SEED = 2**32 - 1
SEARCHED_ORDERS = 20  # the likeliest ones, in which the most probable graph is looked for


class SampledPosterior:
    """Orders of a Markov chain Monte Carlo run, given the moments of every mechanism.

    The first parameters are those of `ExactPosterior`. The others are
    seed            of the chains: the same calls give the same orders
    n_candidates    possible parents per mechanism whose sets are all summed up
    n_outside_core   the same if more are plausible and the likely ones are always in (the core):
                    one more doubles the time, and reduces an error that chains cannot show
    n_chains        each from its own start, so that `diagnostics` can compare them
    n_sweeps        per chain for the first moments, after as many that are discarded
    update_sweeps   per chain in each `update`
    n_orders        kept per chain, evenly over the sweeps

    An update continues the chains. Mechanisms with new moments are scored again, and their
    candidates are chosen again once they have 20 % more samples. `run` lengthens the chains on the
    same data. `diagnostics` compares chains. It cannot show the error of having few candidates:
    none if all nodes are candidates, small if interventions vary and mechanisms have some tens of
    samples, larger for few samples or without interventions (`benchmarks/posterior.py sampled`).
    More candidates show that. `log_evidence` and the probability of `most_probable` are nan,
    because chains do not know the sum over all orders.
    """

    def __init__(
        self,
        n_nodes: int,
        moments: Moments | None = None,
        *,
        noise_mean: npt.ArrayLike | None = None,
        noise_std: npt.ArrayLike | None = None,
        prior: MechanismPrior | None = None,
        allowed: npt.ArrayLike | None = None,
        required: npt.ArrayLike | None = None,
        memory_limit: int | None = None,
        regimes: npt.ArrayLike | None = None,
        seed: Seed = 0,
        n_candidates: int = 12,
        n_outside_core: int = 6,
        n_chains: int = 4,
        n_sweeps: int = 500,
        update_sweeps: int = 20,
        n_orders: int = 100,
    ) -> None:
        self.n_nodes = n_nodes
        self.prior = prior or MechanismPrior()
        counts = {
            "n_candidates": n_candidates,
            "n_outside_core": n_outside_core,
            "n_chains": n_chains,
            "n_sweeps": n_sweeps,
            "update_sweeps": update_sweeps,
            "n_orders": n_orders,
        }
        for name, value in counts.items():
            integer(name, value, minimum=1)
        self.regimes = regimes_of(n_nodes, moments, regimes)
        self._exist = existing(self.regimes)
        self._edge_mask = edge_masks(self.regimes, allowed, required)
        self.allowed, self.required = self._edge_mask
        self.kernel_prior = kernel_prior(self.regimes, self.prior, noise_mean, noise_std)
        self.n_candidates = max(min(n_candidates, n_nodes - 1), 1)
        self.n_chains, self.n_orders = n_chains, n_orders
        self.update_sweeps = update_sweeps
        self._outside_core = min(n_outside_core, self.n_candidates)
        pool = 1 << max(self.n_candidates + LOG2_TABLES, self._outside_core + LOG2_TABLES_WITH_CORE)
        slots = pool >> min(self._outside_core, self._fewest_free())
        shape = self._exist.shape
        self.n_bytes = table_bytes(n_nodes, pool, slots, n_chains * n_orders, shape[0])
        who = f"chains over the orders of {n_nodes} nodes with {self.n_candidates} candidates need"
        check_memory(who, self.n_bytes, memory_limit, "fewer n_candidates or n_orders need less")
        self._tables = CandidateTables(
            gram=np.full((*shape, n_nodes + 1, n_nodes + 1), np.nan),
            prior=self.kernel_prior,
            members=np.zeros((*shape, n_nodes), dtype=np.int64),
            n_free=np.zeros(shape, dtype=np.int64),
            n_core=np.zeros(shape, dtype=np.int64),
            needed=np.zeros(shape, dtype=np.int64),
            log_odds=np.zeros((*shape, n_nodes)),
            vague=np.zeros(shape, dtype=bool),
            tail=np.zeros((n_nodes, n_nodes)),
            linked=np.zeros((n_nodes, n_nodes), dtype=bool),
            tags=np.full((*shape, slots), EMPTY),
            scores=np.empty((*shape, pool)),
            within=np.empty((*shape, pool)),
        )
        self._chosen_at = np.full(shape, np.nan)  # samples when candidates were chosen
        self._widths = np.unique(np.clip([2, 8, n_nodes // 3, n_nodes], 1, n_nodes))
        self._rng = generator(seed)
        nothing = Moments(n_nodes, regimes=self.regimes)
        self._begin(nothing if moments is None else moments, n_sweeps)

    def _begin(self, moments: Moments, n_sweeps: int) -> None:
        self._tables.gram[:] = moments.gram
        errors = self._rng.standard_normal((self.n_chains, self.n_nodes)) * START_ERROR
        # The others start from errors, so that chains that agree have all found the same orders.
        if moments.counts.any():  # one chain starts at the estimate itself
            errors[0] = 0.0
        self._orders = np.array(
            [order_by_spread(self.gram, self.kernel_prior, self.required, e) for e in errors]
        )
        if (self._orders < 0).any():
            raise ModelError("no order of the nodes fits the required and excluded edges")
        # Which candidates are good depends on the order and the other way round: five rounds of
        # each.
        for _ in range(CHOICE_ROUNDS):
            self._choose(self._exist)
            self._sweep(max(n_sweeps // CHOICE_ROUNDS, 1), 1)
        self._choose(self._exist)
        self.run(n_sweeps)

    def update(self, moments: Moments) -> int:
        """Take over these moments and continue the chains; returns how many mechanisms changed."""
        changed = (moments.gram != self.gram).any(axis=(2, 3))
        if not changed.any():
            return 0
        self.gram[:] = moments.gram
        self._tables.tags[changed] = EMPTY
        samples = self.gram[:, :, -1, -1]
        growth = GROWTH_TO_CHOOSE_AGAIN
        # the second condition: a mechanism that forgot rounds after a change
        due = (samples > growth * self._chosen_at) | (samples * growth < self._chosen_at)
        if (changed & due).any():
            self._choose(changed & due)
        self.run(self.update_sweeps)
        return int(changed.sum())

    def run(self, n_sweeps: int) -> None:
        """Continue every chain; the orders of these sweeps replace those kept so far."""
        kept, acceptance = self._sweep(n_sweeps, max(n_sweeps // self.n_orders, 1))
        last = np.ascontiguousarray(kept[:, -self.n_orders :])
        self._keep(last, acceptance, int(self._rng.integers(LARGEST_SEED + 1)))

    def _keep(self, kept: IntArray, acceptance: float, step_seed: int) -> None:
        self._kept, self._acceptance, self._step_seed = kept, acceptance, step_seed
        self._edges: FloatArray | None = None
        self._edge_probability: FloatArray | None = None

    def _sweep(self, n_sweeps: int, every: int) -> tuple[IntArray, float]:
        kept, moved = [], 0.0
        at_once = every * max(SWEEPS_AT_ONCE // every, 1)
        for start in range(0, n_sweeps, at_once):
            n = min(at_once, n_sweeps - start)
            uniforms = self._rng.random((self.n_chains, n, self.n_nodes, 4))
            part = np.empty((self.n_chains, n // every, self.n_nodes), dtype=np.int64)
            moved += n * sweep_chains(
                self._tables, self._orders, uniforms, self._widths, every, part
            )
            kept.append(part)
        return np.concatenate(kept, axis=1), moved / n_sweeps

    def _choose(self, which: BoolArray) -> None:
        choose_candidates(
            self._tables,
            which,
            self._edge_mask,
            self._orders,
            self.n_candidates,
            self._outside_core,
        )
        self._chosen_at[which] = self.gram[which][:, -1, -1]

    def state(self) -> dict[str, Any]:
        """What `restore` needs to continue with the same orders and the same next draws."""
        # as text: a generator's state has integers of more than 64 bits
        text = json.dumps(self._rng.bit_generator.state).encode()
        return {
            "gram": self.gram.copy(),
            "allowed": self.allowed.copy(),
            "orders": self._orders.copy(),
            "kept": self._kept.copy(),
            "acceptance": self._acceptance,
            "step_seed": self._step_seed,
            "chosen_at": self._chosen_at.copy(),
            "rng": np.frombuffer(text, dtype=np.uint8).copy(),
            **{name: getattr(self._tables, name).copy() for name in CHOICE_FIELDS},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of a posterior made with the same settings."""
        self.gram[:] = state["gram"]
        self.allowed[:] = state["allowed"]
        self._chosen_at[:] = state["chosen_at"]
        for name in CHOICE_FIELDS:
            getattr(self._tables, name)[:] = state[name]
        self._tables.tags[:] = EMPTY
        self._orders = np.array(state["orders"])
        text = np.asarray(state["rng"], dtype=np.uint8).tobytes()
        self._rng.bit_generator.state = json.loads(text)
        self._keep(np.array(state["kept"]), state["acceptance"], state["step_seed"])

    def retire(self, regime: int, node: int) -> None:
        """Forget a mechanism that was replaced, and keep part of what it says about the order.

        Its probable parents cannot become its children. (The exact posterior keeps all that its
        samples say about the order.)
        """
        # Chains have no table over all sets of predecessors in which the evidence could be kept.
        parents = (self.edge_probability[regime, :, node] > LIKELY) & ~self.required[:, node].any(0)
        self.allowed[:, node, parents] = False
        self.gram[regime, node] = 0.0
        changed = np.zeros(self._exist.shape, dtype=bool)
        changed[regime, node] = True
        changed[:, parents] = True
        changed &= self._exist
        self._tables.tags[changed] = EMPTY
        self._choose(changed)
        self.run(self.update_sweeps)

    @property
    def gram(self) -> FloatArray:
        """The moments this is the posterior of, (R, N, N+1, N+1)."""
        return self._tables.gram

    @property
    def orders(self) -> IntArray:
        """The kept orders, (chains, orders, N)."""
        return self._kept

    @property
    def tables(self) -> None:
        """None: not all parent sets are scored."""
        return None

    @property
    def log_evidence(self) -> float:
        """nan: chains do not know the sum over all orders."""
        return float("nan")

    @property
    def edge_probability(self) -> FloatArray:
        """Mean over the kept orders of the exact probability given the order, (R, N, N)."""
        if self._edge_probability is None:
            probability = self.edges_given_orders().mean(axis=(0, 1))
            vague = np.broadcast_to(self._tables.vague[:, None, :], probability.shape)
            if vague.any():
                rng = generator(self._step_seed)
                drawn = [self.draw_parents(order, rng)[1] for order in self._flat()]
                probability[vague] = np.mean(drawn, axis=0)[vague]
            probability[self.required] = 1.0
            probability.setflags(write=False)
            self._edge_probability = probability
        return self._edge_probability

    @property
    def diagnostics(self) -> Diagnostics:
        """How well the chains agree on edges."""
        return diagnose(self.edges_given_orders(), self._acceptance)

    @property
    def free_probability(self) -> FloatArray:
        """Empty: chains know no factors."""
        return np.zeros((0, self.n_nodes))

    def probability_within(self, kept: BoolArray) -> float:
        """Probability that no edge lies outside `kept` (R, N, N), a mean over the kept orders."""
        edges = np.ascontiguousarray(kept)
        logs = [
            given_order.log_probability_within(self._tables, self._located(order), edges)
            for order in self._flat()
        ]
        return float(min(np.exp(logs).mean(), 1.0))

    def most_probable(self) -> OrderedGraph:
        """The most probable (order, G_0, G_1, ...) among kept orders; its probability is nan."""
        orders = np.unique(self._flat(), axis=0)
        weight = [given_order.log_weight(self._tables, self._located(order)) for order in orders]
        best = [
            (*given_order.best_parents_given(self._tables, self._located(order)), order)
            for order in orders[np.argsort(weight, kind="stable")[-SEARCHED_ORDERS:]]
        ]
        adjacency, _, order = max(best, key=lambda found: found[1])
        return OrderedGraph(order, adjacency, float("nan"))

    def draw(self, rng: np.random.Generator, n: int = 1) -> Draws:
        """Draws of order, parents, weights, intercepts and noise: exact given a kept order."""
        flat = self._flat()
        order = flat[rng.integers(len(flat), size=n)]
        shape = (*self._exist.shape, self.n_nodes)
        adjacency, gammas = np.empty((n, *shape), dtype=bool), np.empty((n, *shape[:2]))
        normals = np.empty((n, *shape[:2], self.n_nodes + 1))
        uniforms = np.zeros(gammas.shape)
        gamma_shapes = self.kernel_prior.noise_shape + 0.5 * self.gram[:, :, -1, -1]
        for t in range(n):  # draw by draw, so that the first ones do not depend on n
            adjacency[t] = self.draw_parents(order[t], rng)[0]
            gammas[t] = rng.standard_gamma(gamma_shapes)
            normals[t] = rng.standard_normal(normals.shape[1:])
            if len(self.kernel_prior.noise_ratios) > 1:
                uniforms[t] = rng.random(uniforms.shape[1:])
        scales = np.zeros(gammas.shape, dtype=np.int64)
        cells = cells_by_regime(self.kernel_prior.regimes, n, self.n_nodes)
        random = RandomNumbers(gammas, normals, uniforms)
        weights = draw_weights(self.gram, self.kernel_prior, adjacency, scales, cells, random)
        return Draws(order, adjacency, *weights)

    def draw_parents(
        self, order: IntArray, rng: np.random.Generator
    ) -> tuple[BoolArray, FloatArray]:
        """Parents given the order, and edge probabilities of vague mechanisms, (R, N, N) each."""
        shape = (*self._exist.shape, self.n_nodes)
        adjacency, chances = np.empty(shape, dtype=bool), np.zeros(shape)
        rounds = STEP_ROUNDS if self._tables.vague.any() else 0
        given_order.draw_parents_given(
            self._tables,
            self._located(order),
            self._edge_mask,
            given_order.Uniforms(
                rng.random(shape[:2]),
                rng.random(shape),
                rng.random((*shape[:2], rounds, self.n_nodes)),
            ),
            adjacency,
            chances,
        )
        return adjacency, chances

    def estimate(self, adjacency: BoolArray) -> PointEstimate:
        """Posterior means of weights and intercepts given the graphs (R, N, N)."""
        return point_estimate(self.gram, self.kernel_prior, adjacency)

    def _fewest_free(self) -> int:
        """Fewest possible parents of a mechanism: its tables are small, and its pool holds most."""
        return int((self.allowed & ~self.required).sum(axis=1)[self._exist].min())

    def _located(self, order: IntArray) -> given_order.Located:
        return given_order.located(self._tables, order)

    def _flat(self) -> IntArray:
        return self._kept.reshape(-1, self.n_nodes)

    def edges_given_orders(self) -> FloatArray:
        """Probabilities of edges given each kept order, from the tables, (chains, orders, R, N, N).

        `diagnostics` uses these and not draws of parents, which would add noise of their own.
        """
        if self._edges is None:
            shape = (*self._exist.shape, self.n_nodes)
            found = np.empty((len(self._flat()), *shape))
            for order, edges in zip(self._flat(), found, strict=True):
                given_order.edges_given(self._tables, self._located(order), edges)
            self._edges = found.reshape(*self._kept.shape[:2], *shape)
        return self._edges

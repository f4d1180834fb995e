"""`FailureBelief`: how likely a setting fails, learned from which trials failed. It needs no graph.

Some trials fail whatever was set: the base rate is the same for all settings. A hypothesis is a set
of at most `MAX_DECISIVE` factors: each combination of their levels may be faulty, independently of
the others, and then fails at a rate of its own, a high one as a rule. A few failures among many
results are no reason to shun a level: next to the base rate the evidence of a hypothesis is the
product over its combinations c of

    1 - f + f * B_c,    B_c = P(trials of c | own rate) / P(trials of c | base rate),

with f = `FAULTY_FRACTION`, so that only failures in excess of the base rate speak for it. All base
rates and hypotheses are averaged exactly. Names, orders and first levels of factors do not matter.

What fails nearly always is not tried any more: levels, pairs of levels and tried settings. Of
settings that are compared one by one, the probability enters what they are worth (`Worth`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import comb, prod
from typing import Any, NamedTuple

import numpy as np

from causalarms.arrays import FloatArray, IntArray, Intervention, Interventions
from causalarms.limits import MAX_FAILURE_CELLS, MAX_FAILURE_SETS, MAX_FAILURE_SETTINGS
from causalarms.search.constraints import Constraints
from causalarms.search.factors import NOT_SET
from causalarms.search.worth import Risk

MAX_DECISIVE = 3
FAULTY_FRACTION = 0.05  # of the combinations of levels of decisive factors
OWN_RATE = (1.0, 0.2)  # Beta prior of the rate at which a faulty one fails: most nearly always
# Of trials that fail whatever was set, equally likely: quantiles of Beta(1, 10), 9 % on average.
BASE_RATES = 1.0 - (1.0 - (np.arange(20) + 0.5) / 20) ** (1 / 10)
PRIOR_OF_SIZE = (0.5, 0.25, 0.15, 0.1)  # of 0, 1, ... decisive factors
NEGLIGIBLE = 1e-6  # a hypothesis less probable than this is left out
MAX_RECOMMENDED_RISK = 0.5  # what fails more often is never recommended
# What is more likely to fail is not tried any more. At one half, two failures by chance, or next to
# what really fails, would be enough, and nothing could show any more that they were.
MAX_TRIED_RISK = 0.8


class Hypothesis(NamedTuple):
    """These factors alone decide."""

    probability: float
    factors: tuple[int, ...]
    rate: FloatArray  # by the levels of these factors, the expected rate of failing


class FailureRates:
    """What is believed after some trials. Arrays of `levels` have a column per factor.

    sizes    how many levels each factor has
    levels   of the settings that were tried, (n, F)
    counts   how often each of them gave a result, and how often it failed, (n, 2)

    >>> rates = FailureRates([2, 2], np.array([[0, 0], [1, 0], [1, 1]]), np.array([[3, 0], [0, 3], \
[0, 2]]))
    >>> rates.probability(np.array([[0, 1], [1, 0], [1, NOT_SET]])).round(2).tolist()
    [0.09, 0.95, 0.95]
    """

    def __init__(self, sizes: list[int], levels: IntArray, counts: IntArray) -> None:
        from scipy.special import betaln  # only once something has failed: it takes long to import

        a, b = OWN_RATE
        base = BASE_RATES[:, None]
        levels, counts = np.asarray(levels, np.int64), np.asarray(counts, float)
        n_worked, n_failed = counts.sum(axis=0)
        at_base = n_worked * np.log1p(-BASE_RATES) + n_failed * np.log(BASE_RATES)
        found, logs = [], []
        for factors in _sets(sizes):
            shape = tuple(sizes[f] for f in factors)
            cell = np.zeros(len(levels), dtype=np.int64)
            for f in factors:
                cell = cell * sizes[f] + levels[:, f]
            # combinations that were not tried say nothing
            tried, cell = np.unique(cell, return_inverse=True)
            worked, failed = (np.bincount(cell, c) for c in counts.T)
            faulty = (
                np.log(FAULTY_FRACTION) + betaln(a + failed, b + worked) - betaln(a, b)
                - worked * np.log1p(-base) - failed * np.log(base)
            )  # fmt: skip
            either = np.logaddexp(np.log1p(-FAULTY_FRACTION), faulty)  # (base rates, combinations)
            by_base = at_base + either.sum(axis=1)
            weight = np.exp(by_base - by_base.max())
            prior = PRIOR_OF_SIZE[len(factors)] / comb(len(sizes), len(factors))
            logs.append(by_base.max() + np.log(prior * weight.sum()))
            weight /= weight.sum()
            own = (a + failed) / (a + b + failed + worked)
            untried = FAULTY_FRACTION * a / (a + b) + (1 - FAULTY_FRACTION) * weight @ BASE_RATES
            rate = np.full(prod(shape), untried)
            rate[tried] = weight @ (base + np.exp(faulty - either) * (own - base))
            found.append((factors, rate.reshape(shape)))
        weights = np.exp(np.array(logs) - max(logs))
        weights = np.where(weights >= NEGLIGIBLE * weights.sum(), weights, 0.0)
        weights /= weights.sum()
        self.hypotheses = [
            Hypothesis(float(weight), *parts)
            for weight, parts in zip(weights, found, strict=True)
            if weight > 0.0
        ]

    def probability(self, levels: IntArray) -> FloatArray:
        """How likely a trial of each row fails, (n,): averaged over levels of a factor NOT_SET."""
        rows = np.asarray(levels, dtype=np.int64)
        found = np.zeros(len(rows))
        for probability, factors, rate in self.hypotheses:
            # the last of a factor's rates is their average: NOT_SET, which is -1, leads to it
            assert NOT_SET == -1
            for axis in range(len(factors)):
                rate = np.concatenate([rate, rate.mean(axis=axis, keepdims=True)], axis=axis)
            found += probability * rate[tuple(rows[:, f] for f in factors)]
        return found

    def nearly_always(self, failed: IntArray) -> list[dict[int, int]]:
        """Combinations of levels that fail nearly always, the likeliest first.

        Levels and pairs of levels of the settings in `failed` (n, F), then these settings, if
        nothing smaller says so.
        """
        n = failed.shape[1]
        avoided: list[tuple[float, dict[int, int]]] = []
        for size in sorted({min(size, n) for size in (1, 2, n)}):
            tried = {
                tuple((f, int(row[f])) for f in factors)
                for factors in combinations(range(n), size)
                for row in failed
            }
            new = [
                group
                for group in sorted(tried)
                if not any(part.items() <= dict(group).items() for _, part in avoided)
            ]
            rows = np.full((len(new), n), NOT_SET, dtype=np.int64)
            for row, group in zip(rows, new, strict=True):
                for f, level in group:
                    row[f] = level
            avoided += [
                (float(p), dict(group))
                for p, group in zip(self.probability(rows), new, strict=True)
                if p > MAX_TRIED_RISK
            ]
        # sorted is stable: among equals, levels come before pairs
        return [group for _, group in sorted(avoided, key=lambda found: -found[0])]


def _sets(sizes: list[int]) -> list[tuple[int, ...]]:
    """All sets of up to so many factors that there are not too many of them, or of cells."""
    found: list[tuple[int, ...]] = [()]
    for size in range(1, min(MAX_DECISIVE, len(sizes)) + 1):
        if len(found) + comb(len(sizes), size) > MAX_FAILURE_SETS and size > 1:
            break
        found += [
            factors
            for factors in combinations(range(len(sizes)), size)
            if prod(sizes[f] for f in factors) <= MAX_FAILURE_CELLS
        ]
    return found


class FailureBelief:
    """What a policy knows about failing: how often each setting gave a result, or failed.

    `told` is the reward of a failed trial; nan: the lowest reward seen so far.
    """

    def __init__(self, n_nodes: int) -> None:
        self.told = np.nan
        self.lowest = np.nan
        self.n_failed = 0
        self._n_nodes = n_nodes
        # by the bytes of an intervention; those of the settings tried last come last
        self._counts: dict[bytes, tuple[int, int]] = {}
        self._known: tuple[Constraints, Constraints] | None = None  # given, and as they are now
        # given, what is avoided, and what is left: the same for many rounds
        self._avoiding: tuple[Constraints, list[dict[int, int]], Constraints] | None = None

    def learn(self, intervention: Intervention, reward: float | None) -> None:
        """A trial of this `intervention`, (N,) bytes, gave this `reward`; None: it failed."""
        key = intervention.tobytes()
        worked, failed = self._counts.pop(key, (0, 0))
        if reward is None:
            self._counts[key] = worked, failed + 1
            self.n_failed += 1
        else:
            self._counts[key] = worked + 1, failed
            if not self.lowest <= reward:  # nan is no bound
                self.lowest = reward if reward == reward else self.lowest
        if len(self._counts) > MAX_FAILURE_SETTINGS:
            del self._counts[next(iter(self._counts))]
        self._known = None

    def over(self, allowed: Constraints) -> Constraints:
        """What is `allowed`, without what mostly fails, and with what failing costs."""
        if not self.n_failed:
            return allowed
        if self._known is None or self._known[0] is not allowed:
            self._known = allowed, self._over(allowed)
        return self._known[1]

    def _over(self, allowed: Constraints) -> Constraints:
        levels, counts = allowed.levels(self._settings()), np.array(list(self._counts.values()))
        given = (levels != NOT_SET).all(axis=1)  # else by no levels of the factors
        levels, counts = levels[given], counts[given]
        rates = FailureRates(list(allowed.factors.levels), levels, counts)
        avoided = rates.nearly_always(levels[counts[:, 1] > 0])
        if self._avoiding is None or self._avoiding[:2] != (allowed, avoided):
            self._avoiding = allowed, avoided, allowed.avoiding(avoided)
        reward = self.lowest if np.isnan(self.told) else self.told
        return self._avoiding[2].at_risk(Risk(rates.probability, float(reward)))

    def failed(self) -> Interventions:
        """The settings that failed, as often as they did, (n, N)."""
        often = [failed for _, failed in self._counts.values()]
        return np.repeat(self._settings(), often, axis=0)

    def _settings(self) -> Interventions:
        found = np.frombuffer(b"".join(self._counts), dtype=np.uint8)
        return found.reshape(-1, self._n_nodes)

    def state(self) -> dict[str, Any]:
        """Copies of all that was learned."""
        counts = np.array(list(self._counts.values()), dtype=np.int64).reshape(-1, 2)
        return {
            "settings": self._settings().copy(), "counts": counts,
            "lowest": float(self.lowest), "n_failed": self.n_failed,
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where `state` was exported."""
        self.lowest, self.n_failed = float(state["lowest"]), int(state["n_failed"])
        rows = np.asarray(state["settings"], dtype=np.uint8).reshape(-1, self._n_nodes)
        counts = np.asarray(state["counts"], dtype=np.int64).reshape(-1, 2).tolist()
        self._counts = {
            row.tobytes(): (worked, failed)
            for row, (worked, failed) in zip(rows, counts, strict=True)
        }
        self._known = None

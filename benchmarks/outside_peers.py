"""Studies next to regression, Gaussian processes, Optuna and BayBE, on systems that others wrote.

`OMP_NUM_THREADS=1 python benchmarks/outside_peers.py SYSTEM ... [--seeds 20] [--first 0]
[--methods main,gp-found,...] [--trials N] [--jobs 1] [--results FILE]`
A SYSTEM is one of `outside_systems.py`, or `worlds`: all random ones. Everything needs
`pip install causalchamber bsm2-python optuna torch baybe` (torch for optuna-gp and baybe).
All methods are told the levels, the costs and which node is the reward.

main, pairs, gp        regression of the reward on main effects of the factors, on these and their
                       products, or a Gaussian process over the levels; plays the 0.9 quantile
...-ts                 Thompson sampling instead of the quantile
...-found              nodes with evidence against any response to the settings are regressors, too
...-context            nodes that are told to be context are regressors, too
optuna-tpe, optuna-gp  Optuna's samplers, which see the reward net of costs
baybe                  BayBE's Botorch recommender, which sees the same
random                 plays at random, recommends the best average
study                  `causalarms.Study`, told nothing more
study-context          told the context; study-told: told which nodes each factor acts on

Regret is net of costs, in units of best minus average of all settings. "Right": the recommendation
after the last trial is within 2 % of the range between best and worst. "Cover": 95 % intervals of
`predict` for the reward in random settings. After ± is a standard error over systems. The ratio is
of the last regret to that of the best method that is no study, with 95 % over resampled systems.
The last tables have the same of all systems played where measured quantities carry more than half
of what settings do to the reward (`System.carried`), and where they do not.

From other scripts: `play(make_system(name, seed), method, seed, trials)`, where `method` is a name
or an object with `suggest(history)` and `recommend(history)`, both giving the number of a setting.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator
from rich.console import Console

from causalarms import Study
from causalarms.errors import CausalArmsError, CausalArmsWarning
from causalarms.rng import stream
from causalarms.simulation.monte_carlo import Engine, run_units
from causalarms.simulation.results import Record, ResultStore
from outside_systems import SYSTEMS, WORLDS, System, costs, make_system, needed, settings
from shared import FloatArray, mean_and_error, ratio_interval, readable, show_progress, table

CHECKPOINTS = (15, 30, 60)
WORLD_TRIALS = 100
ALL_WORLDS = "worlds"
CLOSE = 0.02  # of the range, and right
HALF = 0.5  # of what settings do to the reward
FIRST_ROUNDS = 4
DRAWS, PLACE = 20, 3  # the quantile is the third best of 20 draws
RIDGES = (1.0, 16.0, 256.0)  # prior variances of effects, in units of the noise variance
LENGTHS = (0.3, 0.6, 1.2, 2.4, 4.8)  # of the Gaussian process; levels lie between 0 and 1
PREDICTIONS = 30
NET = "net reward"  # the column of BayBE's target


@dataclass
class History:
    """What was played, as numbers of settings, and measured."""

    played: list[int] = field(default_factory=list)
    values: list[FloatArray] = field(default_factory=list)  # (N,) each


class Method(Protocol):
    def suggest(self, history: History) -> int:
        """The setting to play next."""

    def recommend(self, history: History) -> int:
        """The setting believed to be best."""


# -- regression on the levels ----------------------------------------------------------------------


class Prior(Protocol):
    """Of the mean reward over all settings, relative to the noise variance; its mean is zero."""

    def covariance(self, rows: Any, columns: Any) -> FloatArray: ...

    def draw(self, rng: Generator) -> FloatArray: ...


@dataclass(frozen=True)
class LinearPrior:
    features: FloatArray  # (settings, columns), scaled by the prior's standard deviation

    def covariance(self, rows: Any, columns: Any) -> FloatArray:
        return self.features[rows] @ self.features[columns].T

    def draw(self, rng: Generator) -> FloatArray:
        return self.features @ rng.normal(size=self.features.shape[1])


@dataclass(frozen=True)
class ProcessPrior:
    """Product over factors of the covariance between their levels."""

    grid: Any  # (settings, factors), positions of levels
    kernels: list[FloatArray]  # (levels, levels) of each factor
    variance: float

    def covariance(self, rows: Any, columns: Any) -> FloatArray:
        found = np.full((len(self.grid[rows]), len(self.grid[columns])), self.variance)
        for place, kernel in enumerate(self.kernels):
            found *= kernel[np.ix_(self.grid[rows, place], self.grid[columns, place])]
        return found

    def draw(self, rng: Generator) -> FloatArray:
        found = rng.normal(size=[len(kernel) for kernel in self.kernels])
        for place, kernel in enumerate(self.kernels):
            root = np.linalg.cholesky(kernel + 1e-9 * np.eye(len(kernel)))
            found = np.moveaxis(np.tensordot(root, found, (1, place)), 0, place)
        return np.sqrt(self.variance) * found.ravel()


def effect_columns(system: System) -> list[FloatArray]:
    """Of each factor in all settings: line and parabola for numbers, a column per level for names.

    They are centred, and of mean square one over the levels but for the parabola.
    """
    columns = []
    grid = np.array(list(itertools.product(*(range(len(f)) for f in system.factors.values()))))
    for place, levels in enumerate(system.factors.values()):
        if isinstance(levels[0], str):
            shape = np.sqrt(len(levels)) * (np.eye(len(levels)) - 1 / len(levels))
        else:
            numbers = np.array(levels, dtype=float)
            line = (numbers - numbers.mean()) / numbers.std()
            shape = np.column_stack([line, 0.5 * (line**2 - 1)])[:, : len(levels) - 1]
        columns.append(shape[grid[:, place]])
    return columns


def main_effects(system: System) -> list[Prior]:
    features = np.hstack(effect_columns(system))
    return [LinearPrior(np.sqrt(ridge) * features) for ridge in RIDGES]


def main_effects_and_pairs(system: System) -> list[Prior]:
    columns = effect_columns(system)
    products = np.hstack(
        [
            (one[:, :, None] * other[:, None, :]).reshape(len(one), -1)
            for one, other in itertools.combinations(columns, 2)
        ]
    )
    return [
        LinearPrior(np.hstack([np.sqrt(ridge) * np.hstack(columns), np.sqrt(second) * products]))
        for ridge in RIDGES
        for second in (ridge / 64, ridge / 8, ridge)
    ]


def gaussian_process(system: System) -> list[Prior]:
    grid = np.array(list(itertools.product(*(range(len(f)) for f in system.factors.values()))))
    distances = []
    for levels in system.factors.values():
        if isinstance(levels[0], str):
            distances.append(1.0 - np.eye(len(levels)))
        else:
            numbers = np.array(levels, dtype=float) / np.ptp(np.array(levels, dtype=float))
            distances.append((numbers[:, None] - numbers) ** 2)
    return [
        ProcessPrior(grid, [np.exp(-0.5 * d / length**2) for d in distances], ridge)
        for length in LENGTHS
        for ridge in RIDGES
    ]


class Fit(NamedTuple):
    """Of a reward whose noise variance and intercept have flat (reference) priors."""

    log_evidence: float
    inverse: FloatArray  # of the covariance of the rewards, relative to the noise variance
    intercept: float
    intercept_variance: float  # relative to the noise variance
    squares: float  # what is left of the sum of squares


def fit(y: FloatArray, covariance: FloatArray) -> Fit:
    """`covariance` is of everything but noise and intercept, relative to the noise variance."""
    n = len(y)
    total = covariance + np.eye(n)
    inverse: FloatArray = np.asarray(np.linalg.inv(total), dtype=float)
    ones = inverse.sum(axis=0)
    precision = ones.sum()
    intercept = ones @ y / precision
    squares = max(float((y - intercept) @ inverse @ (y - intercept)), 1e-9)
    log_determinant = np.linalg.slogdet(total)[1] + np.log(precision)
    evidence = -0.5 * log_determinant - 0.5 * (n - 1) * np.log(squares)
    return Fit(float(evidence), inverse, float(intercept), float(1 / precision), squares)


def log_mean_exp(values: Sequence[float]) -> float:
    top = max(values)
    return float(top + np.log(np.mean(np.exp(np.array(values) - top))))


def standardised(values: FloatArray) -> FloatArray:
    return (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-12)


class Regression:
    """Bayesian regression of the reward on the levels, and on some of the other nodes.

    Scales of effects are integrated over by their evidence.
    """

    def __init__(
        self,
        system: System,
        priors: list[Prior],
        seed: int,
        *,
        covariates: str = "",
        thompson: bool = False,
    ) -> None:
        self.system, self.priors, self.covariates = system, priors, covariates
        self.thompson = thompson
        self.costs = costs(system)
        self.reward = system.nodes.index(system.reward)
        self.seed = seed
        self.main = main_effects(system)
        self.first = balanced(system, stream(seed, "first settings"))

    def suggest(self, history: History) -> int:
        if len(history.played) < len(self.first):
            return self.first[len(history.played)]
        rng = stream(self.seed, "draws", len(history.played))
        drawn = self._draws(history, 1 if self.thompson else DRAWS, rng) - self.costs
        if self.thompson:
            return int(drawn[0].argmax())
        return int(np.sort(drawn, axis=0)[-PLACE].argmax())

    def recommend(self, history: History) -> int:
        rows, y, scale, fits, _ = self._fits(history)
        mean = np.zeros(len(self.costs))
        for weight, prior, found in fits:
            left = found.inverse @ (y - found.intercept)
            mean += weight * (found.intercept + prior.covariance(slice(None), rows) @ left)
        return int((scale * mean - self.costs).argmax())

    def _draws(self, history: History, n: int, rng: Generator) -> FloatArray:
        """Of the expected rewards of all settings, (n, settings)."""
        rows, y, scale, fits, seen = self._fits(history)
        drawn = []
        for place in rng.choice(len(fits), n, p=[weight for weight, _, _ in fits]):
            _, prior, found = fits[place]
            ridge = RIDGES[place % len(RIDGES)] if seen.shape[1] else 0.0
            variance = found.squares / rng.chisquare(len(y) - 1)
            level = found.intercept + np.sqrt(variance * found.intercept_variance) * rng.normal()
            # a draw of the prior, moved by what it gets wrong (Matheron's rule)
            means = prior.draw(rng)
            noise = rng.normal(size=len(y)) + np.sqrt(ridge) * seen @ rng.normal(size=seen.shape[1])
            wrong = (y - level) / np.sqrt(variance) - means[rows] - noise
            means += prior.covariance(slice(None), rows) @ (found.inverse @ wrong)
            drawn.append(level + np.sqrt(variance) * means)
        return scale * np.array(drawn) + self._origin(history)

    def _origin(self, history: History) -> float:
        return float(np.mean([values[self.reward] for values in history.values]))

    def _fits(
        self, history: History
    ) -> tuple[list[int], FloatArray, float, list[tuple[float, Prior, Fit]], FloatArray]:
        """Settings, rewards and their unit, weighted fits, and the other nodes used, (n, k)."""
        rows, values = history.played, np.array(history.values)
        rewards = values[:, self.reward]
        y, scale = standardised(rewards), float(rewards.std() + 1e-12)
        seen = standardised(values[:, self._used(rows, values)])
        shared = seen @ seen.T
        ridges = RIDGES if seen.shape[1] else (0.0,)
        fits = [
            (prior, fit(y, own + ridge * shared))
            for prior in self.priors
            for own in [prior.covariance(rows, rows)]
            for ridge in ridges
        ]
        logs = np.array([found.log_evidence for _, found in fits])
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        weighted = [(float(w), *each) for w, each in zip(weights, fits, strict=True)]
        return rows, y, scale, weighted, seen

    def _used(self, rows: list[int], values: FloatArray) -> list[int]:
        """Nodes that are regressors."""
        if self.covariates == "context":
            return [self.system.nodes.index(name) for name in self.system.context]
        if self.covariates != "found":
            return []
        known = [prior.covariance(rows, rows) for prior in self.main]
        found = []
        for node in range(values.shape[1]):
            y = standardised(values[:, node])
            responds = log_mean_exp([fit(y, each).log_evidence for each in known])
            if node != self.reward and fit(y, 0 * known[0]).log_evidence > responds:
                found.append(node)
        return found


def balanced(system: System, rng: Generator) -> list[int]:
    """A few settings in which every factor has its levels as often as possible."""
    sizes = [len(levels) for levels in system.factors.values()]
    positions = [
        np.concatenate([rng.permutation(size) for _ in range(-(-FIRST_ROUNDS // size))])
        for size in sizes
    ]
    rows = np.array([each[:FIRST_ROUNDS] for each in positions])
    return [int(row) for row in np.ravel_multi_index(tuple(rows), sizes)]


# -- Optuna, BayBE, random play, studies -----------------------------------------------------------


class RandomPlay:
    def __init__(self, system: System, seed: int) -> None:
        self.n, self.seed = len(settings(system)), seed
        self.reward, self.costs = system.nodes.index(system.reward), costs(system)

    def suggest(self, history: History) -> int:
        return int(stream(self.seed, "random", len(history.played)).integers(self.n))

    def recommend(self, history: History) -> int:
        """The setting that was best by itself."""
        found: dict[int, list[float]] = {}
        for row, values in zip(history.played, history.values, strict=True):
            found.setdefault(row, []).append(values[self.reward] - self.costs[row])
        return max(found, key=lambda row: float(np.mean(found[row])))


class OptunaSampler:
    """Names are categories; numbers are places in their order."""

    def __init__(self, system: System, sampler: str, seed: int) -> None:
        optuna = needed("optuna", "optuna")
        if sampler == "GPSampler":
            needed("torch", "torch")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        self.study = optuna.create_study(
            direction="maximize", sampler=getattr(optuna.samplers, sampler)(seed=seed)
        )
        self.factors, self.costs = system.factors, costs(system)
        self.reward = system.nodes.index(system.reward)
        self.trial: Any = None

    def suggest(self, history: History) -> int:
        self._tell(history)
        self.trial = self.study.ask()
        return self._row(
            [
                self.trial.suggest_categorical(name, list(range(len(levels))))
                if isinstance(levels[0], str)
                else self.trial.suggest_int(name, 0, len(levels) - 1)
                for name, levels in self.factors.items()
            ]
        )

    def recommend(self, history: History) -> int:
        self._tell(history)
        best = self.study.best_trial.params
        return self._row([best[name] for name in self.factors])

    def _tell(self, history: History) -> None:
        if self.trial is not None:
            net = history.values[-1][self.reward] - self.costs[history.played[-1]]
            self.study.tell(self.trial, float(net))
            self.trial = None

    def _row(self, places: list[int]) -> int:
        return int(np.ravel_multi_index(places, [len(f) for f in self.factors.values()]))


class BayBE:
    """A Gaussian process on the levels and expected improvement, as BayBE chooses them by itself.

    It sees the reward net of costs, and a setting may be asked for again. The first settings are
    those of the regressions; the recommendation is the best posterior mean.
    """

    def __init__(self, system: System, seed: int) -> None:
        package = "baybe"  # brings torch and pandas
        needed("baybe", package)
        parameters = needed("baybe.parameters", package)
        self.torch, self.pandas = needed("torch", package), needed("pandas", package)
        self.space = needed("baybe.searchspace", package).SearchSpace.from_product(
            [
                parameters.CategoricalParameter(name, levels)
                if isinstance(levels[0], str)
                else parameters.NumericalDiscreteParameter(name, levels)
                for name, levels in system.factors.items()
            ]
        )
        self.objective = needed("baybe.targets", package).NumericalTarget(NET).to_objective()
        self.recommender = needed("baybe.recommenders", package).BotorchRecommender()
        self.settings, self.costs = settings(system), costs(system)
        self.numbers = {tuple(each.values()): row for row, each in enumerate(self.settings)}
        self.reward, self.seed = system.nodes.index(system.reward), seed
        self.first = balanced(system, stream(seed, "first settings"))

    def suggest(self, history: History) -> int:
        if len(history.played) < len(self.first):
            return self.first[len(history.played)]
        chosen = self._asked(self.recommender.recommend, history, 1)
        return self.numbers[tuple(chosen[name].iloc[0] for name in self.settings[0])]

    def recommend(self, history: History) -> int:
        surrogate = self._asked(self.recommender.get_surrogate, history)
        every = self.pandas.DataFrame(self.settings)
        return int(surrogate.posterior_stats(every, stats=["mean"]).iloc[:, 0].argmax())

    def _asked(self, question: Callable[..., Any], history: History, *first: int) -> Any:
        """What BayBE says after these trials, the same whenever it is asked."""
        self.torch.manual_seed(stream(self.seed, "baybe", len(history.played)).integers(2**31))
        told = self.pandas.DataFrame([self.settings[row] for row in history.played])
        net = [values[self.reward] for values in history.values] - self.costs[history.played]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch and of fits that were started again
            return question(*first, self.space, self.objective, told.assign(**{NET: net}))


class StudyMethod:
    """`causalarms.Study`; `told` goes to `Study.create`, `acts_on` to its factors."""

    def __init__(
        self,
        system: System,
        seed: int,
        *,
        acts_on: bool = False,
        told: dict[str, Any] | None = None,
    ) -> None:
        self.system, self.trial = system, None
        self.numbers = {tuple(each.values()): row for row, each in enumerate(settings(system))}
        factors = {
            name: {"levels": levels} | ({"acts_on": system.acts_on[name]} if acts_on else {})
            for name, levels in system.factors.items()
        }
        self.study = Study.create(
            None,
            nodes=system.nodes,
            reward=system.reward,
            factors=factors,
            costs=system.costs,  # type: ignore[arg-type]
            seed=seed,
            **(told or {}),
        )

    def suggest(self, history: History) -> int:
        self._tell(history)
        trial = self.trial = self.study.ask()
        return self._row(trial.levels)

    def recommend(self, history: History) -> int:
        self._tell(history)
        return self._row(self.study.best().levels)

    def intervals(self, history: History, rows: list[int]) -> FloatArray:
        """95 % of the expected reward in these settings, (rows, 2)."""
        self._tell(history)
        wanted = settings(self.system)
        said = self.study.predict([wanted[row] for row in rows])
        each = [one["expected"][self.system.reward] for one in said]
        return np.array([[one["low"], one["high"]] for one in each])

    def _tell(self, history: History) -> None:
        if self.trial is not None:
            self.study.tell(self.trial, history.values[-1].tolist())
            self.trial = None

    def _row(self, levels: dict[str, Any]) -> int:
        return self.numbers[tuple(levels[name] for name in self.system.factors)]


PRIORS: dict[str, Callable[[System], list[Prior]]] = {
    "main": main_effects,
    "pairs": main_effects_and_pairs,
    "gp": gaussian_process,
}
SAMPLERS = {"optuna-tpe": "TPESampler", "optuna-gp": "GPSampler"}
STUDIES = ("study", "study-context", "study-told")
REGRESSIONS = [
    f"{model}{rule}{seen}"
    for seen in ("", "-found", "-context")
    for rule in ("", "-ts")
    for model in PRIORS
]
METHODS = (*REGRESSIONS, *SAMPLERS, "baybe", "random", *STUDIES)


def make_method(name: str, system: System, seed: int) -> Method:
    if name == "random":
        return RandomPlay(system, seed)
    if name == "baybe":
        return BayBE(system, seed)
    if name in SAMPLERS:
        return OptunaSampler(system, SAMPLERS[name], seed)
    if name in STUDIES:
        told = {"context": system.context} if name == "study-context" else {}
        return StudyMethod(system, seed, acts_on=name == "study-told", told=told)
    if name not in REGRESSIONS:
        raise CausalArmsError(f"no method {name!r}; there are {', '.join(METHODS)}")
    model, *more = name.split("-")
    seen = more[-1] if more and more[-1] != "ts" else ""
    return Regression(system, PRIORS[model](system), seed, covariates=seen, thompson="ts" in more)


# -- playing ---------------------------------------------------------------------------------------


def play(system: System, method: Method | str, seed: int, trials: int = CHECKPOINTS[-1]) -> Record:
    """Losses of all trials and of the recommendation, and how long a suggestion took.

    Trial t of a seed has the same noise whatever the method.
    """
    method = make_method(method, system, seed) if isinstance(method, str) else method
    every, truth = settings(system), system.truth()
    net = truth - costs(system)
    loss = net.max() - net
    history, seconds = History(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CausalArmsWarning)  # of values far off
        for trial in range(trials):
            began = time.perf_counter()
            row = method.suggest(history)
            seconds.append(time.perf_counter() - began)
            history.played.append(row)
            history.values.append(system.measure(every[row], stream(seed, "noise", trial)))
        found: Record = {
            "losses": [float(each) for each in loss[history.played] / loss.mean()],
            "recommended_loss": float(loss[method.recommend(history)] / np.ptp(net)),
            "seconds": float(np.mean(seconds)),
        }
        if hasattr(method, "intervals"):
            n = min(PREDICTIONS, len(every))
            rows = stream(seed, "predictions").choice(len(every), n, replace=False)
            low, high = method.intervals(history, rows.tolist()).T
            found["covered"] = float(np.mean((low <= truth[rows]) & (truth[rows] <= high)))
            found["width"] = float(np.mean(high - low) / np.ptp(net))
    return found


def run(name: str, method: str, seed: int, trials: int) -> Record:
    record = {"policy": method, "repetition": seed}
    return record | play(make_system(name, seed), method, seed, trials)


# -- the table -------------------------------------------------------------------------------------


Runs = dict[tuple[str, int], dict[str, Record]]  # of all methods, by system and seed


def show(runs: Runs, title: str) -> None:
    """Methods by their last regret."""
    if not runs:
        return
    by_method = {name: [each[name] for each in runs.values()] for name in next(iter(runs.values()))}
    trials = {len(record["losses"]) for records in by_method.values() for record in records}
    points = [point for point in CHECKPOINTS if point < min(trials)]
    last = str(*trials) if len(trials) == 1 else "last"
    regrets = {
        name: np.array(
            [np.cumsum(r["losses"])[[*(point - 1 for point in points), -1]] for r in records]
        )
        for name, records in by_method.items()
    }
    ranked = sorted(regrets, key=lambda name: float(regrets[name][:, -1].mean()))
    best = next((name for name in ranked if name not in STUDIES), ranked[0])
    made = table(
        f"{title}, {len(runs)} systems", "", *(f"regret, {point}" for point in (*points, last)),
        "ratio", "95 %", "right, %", "cover, %", "width, %", "an ask",
    )  # fmt: skip
    for name in ranked:
        records, mine, reference = by_method[name], regrets[name], regrets[best][:, -1]
        low, high = ratio_interval(mine[:, -1], reference)
        made.add_row(
            name,
            *map(mean_and_error, mine.T),
            f"{mine[:, -1].mean() / reference.mean():.2f}",
            "best peer" if name == best else f"{low:.2f} - {high:.2f}",
            mean_and_error([100.0 * (r["recommended_loss"] <= CLOSE) for r in records], digits=0),
            mean_and_error([100 * r["covered"] for r in records])
            if "covered" in records[0]
            else "",
            mean_and_error([100 * r["width"] for r in records], digits=0)
            if "width" in records[0]
            else "",
            readable(float(np.mean([r["seconds"] for r in records]))),
        )
    Console(width=150).print(made)


def show_split(runs: Runs) -> None:
    """The same, where measured quantities carry more than half of what settings do, and less."""
    carried = {key: make_system(*key).carried() for key in runs}
    for words, most in ((f"carried > {HALF}", True), (f"carried <= {HALF}", False)):
        some = {key: runs[key] for key in runs if (carried[key] > HALF) == most}
        if len(some) < len(runs):
            show(some, words)
        else:
            print(f"{words} in all {len(runs)} systems, {np.mean(list(carried.values())):.2f}")


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("systems", nargs="+", choices=[*SYSTEMS, ALL_WORLDS], metavar="SYSTEM")
    parser.add_argument("--seeds", type=int, default=20, help="how many systems")
    parser.add_argument("--first", type=int, default=0, help="the first system's seed")
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by commas")
    parser.add_argument(
        "--trials", type=int, help=f"{WORLD_TRIALS} of a random world, else {CHECKPOINTS[-1]}"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--results",
        type=Path,
        help="JSON lines, one per method and system; continues from there. The name of the system "
        "is added if there are several",
    )
    given = parser.parse_args(words)
    if given.seeds < 1 or (given.trials or FIRST_ROUNDS) < FIRST_ROUNDS:
        parser.error(f"at least one seed and {FIRST_ROUNDS} trials")
    return given


def play_all(name: str, given: argparse.Namespace, results: Path | None) -> Runs:
    """All methods in all systems of one kind."""
    methods = given.methods.split(",")
    seeds = range(given.first, given.first + given.seeds)
    trials = given.trials or (WORLD_TRIALS if name in WORLDS else CHECKPOINTS[-1])
    store = ResultStore(results, {"system": name, "trials": trials})
    units = [((method, seed), (name, method, seed, trials)) for seed in seeds for method in methods]
    run_units(run, units, store=store, engine=Engine(n_jobs=given.jobs), on_result=show_progress)
    found: Runs = {}
    for record in store.in_order(methods, seeds.stop):
        if record["repetition"] in seeds:
            found.setdefault((name, record["repetition"]), {})[record["policy"]] = record
    return found


def main(words: Sequence[str] | None = None) -> None:
    given = arguments(words)
    names = [each for name in given.systems for each in (WORLDS if name == ALL_WORLDS else [name])]
    everything: Runs = {}
    try:
        for name in names:  # refuse what cannot run before the first system is played
            for method in given.methods.split(","):
                make_method(method, make_system(name, given.first), given.first)
        for name in names:
            results = given.results
            if results is not None and len(names) > 1:
                results = results.with_suffix(f".{name}.jsonl")
            found = play_all(name, given, results)
            show(found, name)
            everything |= found
        show_split(everything)
    except CausalArmsError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()

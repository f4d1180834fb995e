"""Policies by name: which parts make each, and exactly what each is told.

Third parties add names through the entry-point group `causalarms.policies`; an entry is a callable
with the signature of the functions here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any

import numpy.typing as npt

from causalarms.changes.evidence import ChangeEvidence
from causalarms.changes.mechanism_glr import MechanismGLR
from causalarms.changes.whole_graph import WholeGraphRatio
from causalarms.checks import choice, optional, share, whole
from causalarms.errors import CausalArmsError, ModelError
from causalarms.policies.base import Policy
from causalarms.policies.csl_ucb import CSLUCB
from causalarms.policies.explore_then_commit import ExploreThenCommit
from causalarms.policies.ga_lcb import GALCB
from causalarms.policies.linsem_ts import LinSEMTS
from causalarms.policies.oracle import Oracle
from causalarms.policies.posterior import Posterior
from causalarms.policies.ucb import UCB
from causalarms.policies.uniform import RandomPolicy
from causalarms.sem.regimes import all_two, regime_counts

Factory = Callable[..., Policy]

ENTRY_POINT = "causalarms.policies"
DETECTORS = ("authors", "paper")


def csl_ucb_cd(
    n_nodes: int,
    reward: int = -1,
    *,
    detector: str = "authors",
    zeta: float = 0.01,
    regimes: npt.ArrayLike | None = None,
    **settings: Any,
) -> Policy:
    """CSL-UCB with the per-mechanism detector of Sec. V (`authors` or `paper` with `zeta`)."""
    n_nodes = whole("n_nodes", n_nodes, least=1)
    choice("detector", detector, DETECTORS)
    share("zeta", zeta)
    most = int(regime_counts(regimes, n_nodes).max())
    glr = (
        MechanismGLR.authors(n_nodes, n_regimes=most)
        if detector == "authors"
        else MechanismGLR.paper(n_nodes, zeta=zeta, start_after=200, n_regimes=most)
    )
    return CSLUCB(n_nodes, reward, detector=glr, regimes=regimes, **settings)


def posterior_cd(
    n_nodes: int,
    reward: int = -1,
    *,
    false_alarms_per_1000_rounds: float = 0.1,
    outliers: bool = False,
    probes: int = 8,
    regimes: npt.ArrayLike | None = None,
    **settings: Any,
) -> Policy:
    """The posterior policy with change detection at a stated system-wide rate of false alarms."""
    n_nodes = whole("n_nodes", n_nodes, least=1)
    detector = ChangeEvidence(
        n_nodes,
        false_alarms_per_1000_rounds=false_alarms_per_1000_rounds,
        outliers=outliers,
        n_regimes=int(regime_counts(regimes, n_nodes).max()),
    )
    return Posterior(n_nodes, reward, detector=detector, probes=probes, regimes=regimes, **settings)


def golem_mab(
    n_nodes: int,
    reward: int = -1,
    *,
    horizon: int,
    noise_mean: npt.ArrayLike | None = None,
    n_explore: int = 300,
    regimes: npt.ArrayLike | None = None,
    **golem: Any,
) -> Policy:
    """GOLEM on n_explore rounds of a = 0 and of a = 1, then commit; settings go to GOLEM."""
    from causalarms.graphs.continuous.estimators import GOLEM

    learner = GOLEM(**golem)
    learner.check_settings()
    return ExploreThenCommit(
        n_nodes, reward, horizon=horizon, learner=learner, noise_mean=noise_mean,
        n_explore=n_explore, regimes=regimes,
    )  # fmt: skip


def golem_mab_cd(
    n_nodes: int,
    reward: int = -1,
    *,
    horizon: int,
    noise_mean: npt.ArrayLike | None = None,
    n_explore: int = 300,
    window: int | None = None,
    threshold: float = 20.0,
    regimes: npt.ArrayLike | None = None,
    **golem: Any,
) -> Policy:
    """GOLEM-MAB that starts over when the whole-graph likelihood ratio exceeds the threshold."""
    from causalarms.graphs.continuous.estimators import GOLEM

    learner = GOLEM(**golem)
    learner.check_settings()
    n_nodes = whole("n_nodes", n_nodes, least=1)
    window = optional(whole, "window", window, least=1) or max(20, 2 * n_nodes)
    return ExploreThenCommit(
        n_nodes, reward, horizon=horizon, learner=learner, noise_mean=noise_mean,
        n_explore=n_explore, regimes=regimes,
        detector=WholeGraphRatio(n_nodes, window=window, threshold=threshold),
    )  # fmt: skip


def dagma_mab(
    n_nodes: int,
    reward: int = -1,
    *,
    horizon: int,
    noise_mean: npt.ArrayLike | None = None,
    n_explore: int = 300,
    regimes: npt.ArrayLike | None = None,
    **dagma: Any,
) -> Policy:
    """As GOLEM-MAB, with DAGMA."""
    from causalarms.graphs.continuous.estimators import DAGMA

    learner = DAGMA(**dagma)
    learner.check_settings()
    return ExploreThenCommit(
        n_nodes, reward, horizon=horizon, learner=learner, noise_mean=noise_mean,
        n_explore=n_explore, regimes=regimes,
    )  # fmt: skip


POLICIES: dict[str, Factory] = {
    "csl-ucb": CSLUCB,
    "csl-ucb-cd": csl_ucb_cd,
    "ucb": UCB,
    "golem-mab": golem_mab,
    "golem-mab-cd": golem_mab_cd,
    "dagma-mab": dagma_mab,
    "linsem-ts": LinSEMTS,
    "ga-lcb": GALCB,
    "posterior": Posterior,
    "posterior-cd": posterior_cd,
    "random": RandomPolicy,
    "oracle": Oracle,
}


def policy_names() -> list[str]:
    """Built-in names first, then those of installed packages."""
    return list(POLICIES) + sorted(entry.name for entry in entry_points(group=ENTRY_POINT))


def policy_factory(name: str) -> Factory:
    """The callable behind a name."""
    if name in POLICIES:
        return POLICIES[name]
    for entry in entry_points(group=ENTRY_POINT):
        if entry.name == name:
            factory: Factory = entry.load()
            return factory
    near = get_close_matches(name, policy_names(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(policy_names())}"
    raise ModelError(f"unknown policy {name!r}{hint}")


def make_policy(name: str, *, n_nodes: int, reward: int = -1, **settings: Any) -> Policy:
    """Build a policy by name. `noise_mean` and `horizon` are passed on where the policy uses them.

    `regimes` says how many each node has (two); two of every node need not be understood.

    >>> make_policy("ucb", n_nodes=3, horizon=100).ask(__import__("numpy").random.default_rng(0))
    array([1, 1, 0], dtype=uint8)
    """
    factory = policy_factory(name)
    accepted = accepted_settings(factory)
    for general in ("noise_mean", "horizon"):
        if general not in accepted:
            settings.pop(general, None)
    if "regimes" in settings and "regimes" not in accepted:
        counts = regime_counts(settings["regimes"], whole("n_nodes", n_nodes, least=1))
        if all_two(counts):
            del settings["regimes"]
    for setting in settings:
        if setting not in accepted and (accepted or not _takes_anything(factory)):
            near = get_close_matches(setting, accepted, n=1)
            own = [name for name in accepted if name != "regimes"]  # all have it, as n_nodes
            hint = f"did you mean {near[0]!r}?" if near else f"it has {_listed(own)}"
            raise ModelError(f"policy {name!r} has no setting {setting!r}; {hint}")
    missing = sorted(required_settings(factory) - set(settings))
    if missing:
        raise ModelError(f"policy {name!r} must be told {', '.join(missing)}")
    try:
        return factory(n_nodes, reward, **settings)
    except CausalArmsError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(f"policy {name!r} refuses its settings: {error}") from error


def accepted_settings(factory: Factory) -> list[str]:
    """Names a factory takes, with those it passes on."""
    passes_on: dict[Factory, tuple[Factory, ...]] = {
        csl_ucb_cd: (CSLUCB,),
        posterior_cd: (Posterior,),
    }
    names: list[str] = []
    for part in (factory, *passes_on.get(factory, ())):
        for name, parameter in inspect.signature(part).parameters.items():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in names:
                names.append(name)
    if factory is posterior_cd:
        names.remove("detector")  # it makes its own
    if factory in (golem_mab, golem_mab_cd, dagma_mab):
        from causalarms.graphs.continuous.estimators import DAGMA, GOLEM

        names += (DAGMA if factory is dagma_mab else GOLEM)._get_param_names()
    return names


def required_settings(factory: Factory) -> set[str]:
    """Names a factory cannot do without."""
    part = CSLUCB if factory is csl_ucb_cd else factory
    return {
        name
        for name, parameter in inspect.signature(part).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        and parameter.default is inspect.Parameter.empty
    }


def _takes_anything(factory: Factory) -> bool:
    parameters = inspect.signature(factory).parameters.values()
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"

"""Policies by name: which parts make each, and exactly what each is told.

Other packages add names through the entry-point group `causalarms.policies`; an entry is a callable
with the signature of the functions here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy.typing as npt

from causalarms.changes.detector import Detector
from causalarms.changes.evidence import ChangeEvidence
from causalarms.changes.registry import make_detector
from causalarms.checks import fraction, integer, optional
from causalarms.graphs.registry import learner_settings
from causalarms.policies.additive import Additive
from causalarms.policies.base import Policy
from causalarms.policies.csl_ucb import CSLUCB
from causalarms.policies.explore_then_commit import LEARNER, ExploreThenCommit
from causalarms.policies.ga_lcb import GALCB
from causalarms.policies.known_graph import LinSEMQuantile, LinSEMTS
from causalarms.policies.linsem_ucb import LinSEMUCB, RobustLinSEM
from causalarms.policies.posterior import PosteriorPolicy
from causalarms.policies.simple import UCB, Oracle, RandomPolicy
from causalarms.registry import Registry, called
from causalarms.search.constraints import Constraints
from causalarms.sem.regimes import all_two, regime_counts

Factory = Callable[..., Policy]

ENTRY_POINT = "causalarms.policies"
PAPER = "paper"  # the detector that has a zeta


def csl_ucb_cd(
    n_nodes: int,
    reward: int = -1,
    *,
    detector: Detector | str = "authors",
    zeta: float = 0.01,
    regimes: npt.ArrayLike | None = None,
    **settings: Any,
) -> Policy:
    """CSL-UCB with the per-mechanism detector of Sec. V (`authors` or `paper` with `zeta`)."""
    n_nodes = integer("n_nodes", n_nodes, minimum=1)
    # Checked whatever the detector is: a wrong setting is never passed over in silence.
    fraction("zeta", zeta)
    if isinstance(detector, str) and detector == PAPER:
        most = int(regime_counts(regimes, n_nodes).max())
        detector = make_detector(PAPER, n_nodes=n_nodes, n_regimes=most, zeta=zeta)
    return CSLUCB(n_nodes, reward, detector=detector, regimes=regimes, **settings)


def posterior_cd(
    n_nodes: int,
    reward: int = -1,
    *,
    false_alarms_per_1000_rounds: float = 0.1,
    noise: str = "any",
    probes: int = 8,
    regimes: npt.ArrayLike | None = None,
    **settings: Any,
) -> Policy:
    """The posterior policy with change detection at a stated system-wide rate of false alarms."""
    n_nodes = integer("n_nodes", n_nodes, minimum=1)
    detector = ChangeEvidence(
        n_nodes,
        false_alarms_per_1000_rounds=false_alarms_per_1000_rounds,
        noise=noise,
        n_regimes=int(regime_counts(regimes, n_nodes).max()),
    )
    return PosteriorPolicy(
        n_nodes, reward, detector=detector, probes=probes, regimes=regimes, **settings
    )


def _committing_to(learner: str) -> Factory:
    """GOLEM-MAB and DAGMA-MAB: explore-then-commit with this learner, which has the settings."""

    def factory(
        n_nodes: int,
        reward: int = -1,
        *,
        horizon: int,
        noise_mean: npt.ArrayLike | None = None,
        n_explore: int = 300,
        regimes: npt.ArrayLike | None = None,
        **settings: Any,
    ) -> Policy:
        return ExploreThenCommit(
            n_nodes, reward, horizon=horizon, learner=learner, noise_mean=noise_mean,
            n_explore=n_explore, regimes=regimes, **settings,
        )  # fmt: skip

    return factory


golem_mab, dagma_mab = _committing_to("golem"), _committing_to("dagma")


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
    window = optional(integer, "window", window, minimum=1)
    detector = make_detector("whole-graph", n_nodes=n_nodes, window=window, threshold=threshold)
    return ExploreThenCommit(
        n_nodes, reward, horizon=horizon, learner="golem", noise_mean=noise_mean,
        n_explore=n_explore, regimes=regimes, detector=detector, **golem,
    )  # fmt: skip


# Ours: the regimes share one order, where the paper learns them apart.
csl_ucb_joint = partial(CSLUCB, joint=True)
csl_ucb_joint_cd = partial(csl_ucb_cd, joint=True)


class Preset(NamedTuple):
    """What a name stands for."""

    factory: Factory
    # Settings that studies write down, so that a study stays what it was if a default changes.
    defaults: Mapping[str, Any] = {}
    watching: str | None = None  # the variant that watches for changes of mechanisms
    # What a method of another paper was written from, if neither its full text nor all of its
    # published code could be compared. Every table that names the policy marks it.
    written_from: str = ""


def _defaults_of(factory: Factory, *names: str) -> dict[str, Any]:
    parameters = inspect.signature(factory).parameters
    return {name: parameters[name].default for name in names}


POSTERIOR = _defaults_of(PosteriorPolicy, "noise_scale", "gaps", "typing_errors", "decide")

PRESETS: dict[str, Preset] = {
    "csl-ucb": Preset(CSLUCB, watching="csl-ucb-cd"),
    "csl-ucb-cd": Preset(csl_ucb_cd),
    "csl-ucb-joint": Preset(csl_ucb_joint, watching="csl-ucb-joint-cd"),
    "csl-ucb-joint-cd": Preset(csl_ucb_joint_cd),
    "ucb": Preset(UCB),
    "golem-mab": Preset(golem_mab, watching="golem-mab-cd"),
    "golem-mab-cd": Preset(golem_mab_cd),
    "dagma-mab": Preset(dagma_mab),
    "explore-then-commit": Preset(ExploreThenCommit),
    "linsem-ts": Preset(LinSEMTS),
    "linsem-quantile": Preset(LinSEMQuantile),
    "linsem-ucb": Preset(LinSEMUCB, written_from="an abstract and summaries"),
    "robust-linsem": Preset(RobustLinSEM, written_from="an abstract and summaries"),
    "additive": Preset(Additive, written_from="an abstract and the published program"),
    "ga-lcb": Preset(GALCB, written_from="an abstract and settings of the published runs"),
    "posterior": Preset(PosteriorPolicy, POSTERIOR, watching="posterior-cd"),
    "posterior-cd": Preset(posterior_cd, POSTERIOR | _defaults_of(posterior_cd, "noise")),
    "random": Preset(RandomPolicy),
    "oracle": Preset(Oracle),
}
POLICIES: dict[str, Factory] = {name: preset.factory for name, preset in PRESETS.items()}
# Whom a factory hands the settings that it does not name itself: a policy, or a learner.
PASSES_ON: dict[Factory, Factory] = {
    csl_ucb_cd: CSLUCB, csl_ucb_joint_cd: CSLUCB, posterior_cd: PosteriorPolicy,
}  # fmt: skip
LEARNERS_OF: dict[Factory, Any] = {golem_mab: "golem", golem_mab_cd: "golem", dagma_mab: "dagma"}

REGISTRY = Registry("policy", ENTRY_POINT, POLICIES, Policy, given=("n_nodes", "reward"))


def policy_names() -> list[str]:
    """Built-in names first, then those of installed packages."""
    return REGISTRY.names()


def not_compared(name: Any) -> str:
    """A remark on a method that was not compared with its full text; empty for all others."""
    preset = PRESETS.get(name) if isinstance(name, str) else None
    if preset is None or not preset.written_from:
        return ""
    return f"{name} was written from {preset.written_from}, not compared with the full text"


def policy_factory(name: str | Factory) -> Factory:
    """The callable behind a name; a class or function is one already."""
    return REGISTRY.factory(name)


def make_policy(
    name: str | Factory,
    *,
    n_nodes: int,
    reward: int = -1,
    constraints: Constraints | None = None,
    **settings: Any,
) -> Policy:
    """Build a policy.

    name          one of `policy_names()`, or a class or function of your own
    n_nodes       number of nodes
    reward        number of the node to be maximised; negative numbers count from the last node
    constraints   what may be played and what it costs; None: everything, for nothing
    settings      of the policy. `noise_mean` and `horizon` are passed on if the policy uses them,
                  and so is `regimes`, how many each node has (two) if that is not two of every node

    >>> make_policy("ucb", n_nodes=3, horizon=100).ask(__import__("numpy").random.default_rng(0))
    array([1, 1, 0], dtype=uint8)
    """
    factory, name = policy_factory(name), called(name)
    accepted = accepted_settings(factory, settings)
    # A comparison tells all policies the same; some have no use for it.
    for general in ("noise_mean", "horizon"):
        if general not in accepted:
            settings.pop(general, None)
    if "regimes" in settings and "regimes" not in accepted:
        counts = regime_counts(settings["regimes"], integer("n_nodes", n_nodes, minimum=1))
        if all_two(counts):
            del settings["regimes"]
    REGISTRY.check_settings(name, factory, settings, accepted, required_settings(factory))
    policy = REGISTRY.call(name, factory, n_nodes, reward, **settings)
    return policy if constraints is None else policy.constrain(constraints)


def accepted_settings(factory: Factory, given: Mapping[str, Any] | None = None) -> list[str]:
    """Names a factory takes, with those it passes on; that may depend on what else is given."""
    names = REGISTRY.settings_of(factory)
    if factory in PASSES_ON:
        names += [name for name in REGISTRY.settings_of(PASSES_ON[factory]) if name not in names]
    if factory is posterior_cd:
        names.remove("detector")  # it makes its own
    learner = LEARNERS_OF.get(factory)
    if factory is ExploreThenCommit:
        learner = (given or {}).get("learner", LEARNER)
    if isinstance(learner, str) or callable(learner):  # else it is made already
        names += learner_settings(learner)
    return names


def required_settings(factory: Factory) -> set[str]:
    """Names a factory cannot do without."""
    return REGISTRY.required_of(PASSES_ON.get(factory, factory))

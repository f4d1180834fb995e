"""What a study was created with: nodes, reward, policy, limits. Checked in one place."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from causalarms.errors import CausalArmsError, ModelError, StudyError, shown
from causalarms.graphs.inputs import as_noise_mean
from causalarms.graphs.prior_knowledge import edge_constraints
from causalarms.policies.base import Policy
from causalarms.policies.registry import (
    accepted_settings,
    make_policy,
    policy_factory,
    policy_names,
)
from causalarms.search.constraints import Constraints
from causalarms.sem.factors import NamedFactors
from causalarms.sem.nodes import as_name, checked_name, node_index, node_names
from causalarms.sem.regimes import all_two
from causalarms.study.constraints import (
    checked_costs,
    checked_forbidden,
    checked_movable,
    checked_required,
    constraints_of,
    refuse_unreachable,
)
from causalarms.study.log import canonical
from causalarms.tables.trials import PREFIX

# -- knowledge -------------------------------------------------------------------------------------
#
# What is known of edges before a study begins: tiers, forbidden and required edges.

KNOWLEDGE_KINDS = ("tiers", "forbidden", "required")
MASKS = ("allowed", "required")  # settings of a policy that can use it

Knowledge = dict[str, list[list[str]]]


def checked_knowledge(given: Any, nodes: tuple[str, ...]) -> Knowledge:
    """By name and without empty entries; whether it contradicts itself is seen when it is used."""
    if not isinstance(given, Mapping):
        raise StudyError(f"knowledge is {', '.join(KNOWLEDGE_KINDS)} with lists of nodes, not {shown(given)}")
    for kind in given:
        if kind not in KNOWLEDGE_KINDS:
            raise StudyError(f"there is no knowledge {shown(kind)}; there are {', '.join(KNOWLEDGE_KINDS)}")
    plain: Knowledge = {}
    for kind in KNOWLEDGE_KINDS:
        groups = given.get(kind)
        groups = () if groups is None else groups
        if isinstance(groups, str) or not isinstance(groups, Sequence):
            raise StudyError(f"knowledge {kind!r} is a list of lists of nodes, not {shown(groups)}")
        for group in groups:
            if isinstance(group, str) or not isinstance(group, Sequence):
                raise StudyError(
                    f"knowledge {shown(kind)} is a list of lists of nodes, not of {shown(group)}"
                )
            if kind != "tiers" and len(group) != 2:
                raise StudyError(f"an edge is a pair [parent, child], not {shown(group)}")
        if groups:
            plain[kind] = [[nodes[node_index(node, nodes)] for node in group] for group in groups]
    return plain


def known_edges(
    knowledge: Knowledge, nodes: tuple[str, ...], named: NamedFactors
) -> dict[str, Any]:
    """`allowed` and `required`, (R, N, N) each; nothing where nothing is known.

    A node that a level sets has no parents in the regimes of that level.
    """
    set_nodes = named.set_regimes
    if not knowledge and not set_nodes.any():
        return {}
    shape = (len(set_nodes), len(nodes), len(nodes))
    masks = edge_constraints(nodes, **knowledge)  # type: ignore[arg-type]
    free = ~set_nodes[:, None, :]
    return dict(zip(MASKS, (np.broadcast_to(m, shape) & free for m in masks), strict=True))


def refuse_knowledge(policy: str) -> None:
    """StudyError where this policy has no use for what is known."""
    if not _can_use(policy):
        able = [name for name in policy_names() if _can_use(name)]
        raise StudyError(
            f"policy {shown(policy)} cannot use knowledge of edges; {', '.join(able)} can"
        )


def _can_use(policy: str) -> bool:
    return set(MASKS) <= set(accepted_settings(policy_factory(policy)))


FORMAT = 1  # of the `created` event
DIRECTIONS = ("maximize", "minimize")
BEST = "posterior"
WATCHING = "-cd"  # ends the names of policies that watch for changes
MIN_HORIZON = 500
ROUNDS_PER_NODE = 100  # csl-ucb at N = 10 settles within 1000 rounds (docs/baselines.md)


@dataclass(frozen=True)
class Settings:
    """Plain values only: this is the `created` event, changed by `settings changed` events."""

    nodes: tuple[str, ...]
    reward: str
    direction: str = "maximize"
    policy: str = "csl-ucb"
    policy_settings: dict[str, Any] = field(default_factory=dict)
    horizon: int | None = None  # rounds after which exploring should have ended
    intervenable: tuple[str, ...] | None = None  # factors that may be moved; None: every one
    max_interventions: int | None = None
    forbidden: tuple[Any, ...] = ()  # factors not to be moved together, or {factor: levels}
    costs: dict[str, Any] = field(default_factory=dict)  # of a factor or its levels, in reward
    noise_mean: Any = None  # a number, (N,) or (R, N)
    seed: int = 0
    knowledge: dict[str, Any] = field(default_factory=dict)  # of edges: tiers, forbidden, required
    factors: Any = None  # as `NamedFactors.as_list`; every study has some
    required: tuple[dict[str, Any], ...] = ()  # levels that are set together or not at all

    @property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @property
    def reward_index(self) -> int:
        return self.nodes.index(self.reward)

    @property
    def sign(self) -> float:
        """What the reward is multiplied by for the policy, which always maximises."""
        return 1.0 if self.direction == "maximize" else -1.0

    @cached_property
    def named(self) -> NamedFactors:
        """What is set, by name."""
        return NamedFactors.of(self.factors, self.nodes)

    @property
    def constrained(self) -> bool:
        """Whether there is more to keep than which factors may be moved."""
        return self.max_interventions is not None or any(
            (self.forbidden, self.required, self.costs)
        )

    @cached_property
    def constraints(self) -> Constraints:
        """What may be played."""
        return constraints_of(
            self.named,
            movable=self.intervenable,
            forbidden=self.forbidden,
            required=self.required,
            at_most=self.max_interventions,
            costs=self.costs,
        )

    @property
    def known_edges(self) -> dict[str, Any]:
        """`allowed` and `required` edges, (R, N, N) each, as learners take them; or nothing."""
        return known_edges(self.knowledge, self.nodes, self.named)

    @cached_property
    def learns_from_gaps(self) -> bool:
        """Whether the policy learns from results with missing values."""
        return self.make_policy().learns_from_gaps

    def as_dict(self) -> dict[str, Any]:
        record = dataclasses.asdict(self)
        for name in ("nodes", "intervenable"):
            record[name] = None if record[name] is None else list(record[name])
        record["forbidden"] = [
            dict(group) if isinstance(group, Mapping) else list(group) for group in self.forbidden
        ]
        record["required"] = [dict(group) for group in self.required]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Settings:
        """Checked settings from plain values; StudyError says what is wrong with them."""
        known = {f.name for f in dataclasses.fields(cls)}
        for name in record:
            if name not in known:
                raise StudyError(f"unknown setting {shown(name)}; there are {', '.join(known)}")
        try:
            return _checked(cls(**record))
        except StudyError:
            raise
        except (CausalArmsError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise StudyError(f"the settings are refused: {error}") from error
        except MemoryError as error:
            raise StudyError(
                f"a study of {len(record['nodes']):,} nodes does not fit into memory: {error}"
            ) from error

    def make_policy(self) -> Policy:
        """A policy that knows nothing yet."""
        regimes = self.named.regimes
        mean = as_noise_mean(self.noise_mean, self.nodes, int(regimes.max()))
        if mean is not None:
            mean[:, self.reward_index] *= self.sign
        policy = make_policy(
            self.policy,
            n_nodes=self.n_nodes,
            reward=self.reward_index,
            noise_mean=mean,
            horizon=self.horizon,
            **({} if all_two(regimes) else {"regimes": regimes}),
            **self.known_edges,
            **self.policy_settings,
        )
        policy.kept(self.constraints)  # refuse what it cannot keep
        return policy


def refuse_odd_names(settings: Settings) -> None:
    """Names that no screen shows, and those that a table takes for columns of factors."""
    try:
        for node in settings.nodes:
            checked_name("node", node)
        for factor in settings.named.factors:
            checked_name("factor", factor.name)
            for level in factor.levels:
                if isinstance(level, str):
                    checked_name(f"a level of factor {factor.name!r}:", level)
    except ModelError as error:
        raise StudyError(str(error)) from None
    for node in settings.nodes:
        if node.startswith(PREFIX):
            raise StudyError(
                f"node {node!r}: names that start with {PREFIX!r} are for switches; choose another"
            )


def switches(nodes: Any, intervenable: Any) -> dict[str, Any]:
    """A factor off/on per node, of these where they are named."""
    try:
        names = node_names(_names("nodes", nodes), len(nodes), as_name)
        if intervenable is None:
            return {node: {} for node in names}
        chosen = {names[node_index(node, names)] for node in _names("intervenable", intervenable)}
    except ModelError as error:
        raise StudyError(str(error)) from error
    if not chosen:
        raise StudyError("intervenable is empty: there would be nothing to try")
    return {node: {} for node in names if node in chosen}


def _names(what: str, given: Any) -> Sequence[Any]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise StudyError(f"{what} is a list of names, not {shown(given)}")
    return given


def chosen_policy(name: Any, settings: Any, *, changes: bool) -> tuple[Any, Any]:
    """The policy of a new study, and its settings: the best there is where nothing else is said.

    A study is in units of its own, so the posterior's prior is said in units it estimates, and its
    noise has a law of its own; somebody types its values, and some may be missing.
    """
    if type(changes) is not bool:
        raise StudyError(f"changes is True or False, not {shown(changes)}")
    name = BEST if name is None else name
    if changes and isinstance(name, str) and not name.endswith(WATCHING):
        if name + WATCHING not in policy_names():
            raise StudyError(
                f"policy {shown(name)} cannot watch for changes; {BEST + WATCHING!r} does"
            )
        name = name + WATCHING
    settings = {} if settings is None else settings
    if isinstance(name, str) and name in (BEST, BEST + WATCHING) and isinstance(settings, Mapping):
        settings = {
            "noise_scale": "estimate", "gaps": "learn", "typing_errors": "left out",
            "decide": "auto", **settings,
        }  # fmt: skip
        if name.endswith(WATCHING):
            settings = {"noise": "any", **settings}
    return name, settings


def _checked(given: Settings) -> Settings:
    nodes = node_names(_names("nodes", given.nodes), len(given.nodes), as_name)
    if len(nodes) < 2:
        raise StudyError("a study needs at least two nodes")
    reward = nodes[node_index(given.reward, nodes)]
    if given.direction not in DIRECTIONS:
        raise StudyError(f"direction is {' or '.join(DIRECTIONS)}, not {shown(given.direction)}")
    horizon = given.horizon
    if horizon is None:
        horizon = max(MIN_HORIZON, ROUNDS_PER_NODE * len(nodes))
    if type(horizon) is not int or not 1 <= horizon <= 10**9:
        raise StudyError(f"horizon is a number of rounds, not {shown(horizon)}")
    if type(given.seed) is not int or not 0 <= given.seed < 2**63:
        raise StudyError(f"seed is a whole number from 0 on, not {shown(given.seed)}")
    if not isinstance(given.policy, str) or given.policy == "oracle":
        raise StudyError(f"policy {shown(given.policy)} cannot run a study: it knows the truth")
    if given.factors is None:
        raise StudyError("factors are missing: say which there are, e.g. {'heat': {}}")
    named = NamedFactors.of(given.factors, nodes)
    mean = as_noise_mean(given.noise_mean, nodes, int(named.regimes.max()))
    settings = dataclasses.replace(
        given,
        nodes=nodes,
        reward=reward,
        horizon=horizon,
        policy_settings=_plain(given.policy_settings),
        factors=named.as_list(),
        intervenable=checked_movable(given.intervenable, named),
        max_interventions=_limit(given.max_interventions),
        forbidden=checked_forbidden(given.forbidden, named),
        required=checked_required(given.required, named),
        costs=checked_costs(given.costs, named),
        noise_mean=None if mean is None else mean.tolist(),
        knowledge=checked_knowledge(given.knowledge, nodes),
    )
    if settings.known_edges:
        refuse_knowledge(settings.policy)
    movable = named.names if settings.intervenable is None else settings.intervenable
    refuse_unreachable(settings.constraints, named, set(movable))
    settings.make_policy()  # refuse wrong settings of the policy now
    return settings


def _plain(settings: Any) -> dict[str, Any]:
    if not isinstance(settings, Mapping):
        raise StudyError(f"settings of a policy are names with values, not {shown(settings)}")
    plain = {
        str(name): value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in settings.items()
    }
    for name, value in plain.items():
        if name in ("noise_mean", "horizon", "n_nodes", "reward", "regimes"):
            raise StudyError(f"{name} is given to the study, not to its policy")
        if name in MASKS:
            raise StudyError(f"{name} edges are given to the study as knowledge, not to its policy")
        try:
            canonical({name: value}).encode()
        except (TypeError, ValueError, RecursionError):
            raise StudyError(
                f"setting {name!r} of the policy must be plain numbers and text to be kept in a "
                f"file, not {shown(value)}"
            ) from None
    return plain


def _limit(given: Any) -> int | None:
    if given is not None and (type(given) is not int or not 1 <= given < 2**63):
        raise StudyError(f"max_interventions is a number from 1 on, not {shown(given)}")
    return given

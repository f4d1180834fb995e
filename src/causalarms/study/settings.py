"""What a study was created with: nodes, reward, policy, limits. Checked in one place."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.errors import CausalArmsError, StudyError
from causalarms.graphs.inputs import as_noise_mean
from causalarms.policies.base import Policy
from causalarms.policies.registry import make_policy, policy_names
from causalarms.sem.nodes import node_index, node_names
from causalarms.study.events import canonical
from causalarms.study.knowledge import MASKS, checked_knowledge, known_edges, refuse_knowledge
from causalarms.tables.trials import PREFIX

DIRECTIONS = ("maximize", "minimize")
BEST = "posterior"
WATCHING = "-cd"  # ends the names of policies that watch for changes
MIN_HORIZON = 500
ROUNDS_PER_NODE = 100  # csl-ucb at N = 10 settles within 1000 rounds (docs/baselines.md)
CSL_POLICIES = ("csl-ucb", "csl-ucb-cd")
CONSTRAINED_POLICIES = (*CSL_POLICIES, "posterior", "posterior-cd")  # they score all interventions


@dataclass(frozen=True)
class Settings:
    """Plain values only: this is the `created` event, changed by `settings changed` events."""

    nodes: tuple[str, ...]
    reward: str
    direction: str = "maximize"
    policy: str = "csl-ucb"
    policy_settings: dict[str, Any] = field(default_factory=dict)
    horizon: int | None = None  # rounds after which exploring should have ended
    intervenable: tuple[str, ...] | None = None  # None: every node
    max_interventions: int | None = None
    forbidden: tuple[tuple[str, ...], ...] = ()  # sets of nodes not to be switched together
    costs: dict[str, float] = field(default_factory=dict)  # of switching a node, in reward units
    noise_mean: Any = None  # a number, (N,) or (2, N)
    seed: int = 0
    knowledge: dict[str, Any] = field(default_factory=dict)  # of edges: tiers, forbidden, required

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

    @property
    def fixed(self) -> npt.NDArray[np.bool_]:
        """Nodes that are never switched, (N,)."""
        allowed = self.nodes if self.intervenable is None else self.intervenable
        return np.array([node not in allowed for node in self.nodes])

    @property
    def constrained(self) -> bool:
        return self.max_interventions is not None or bool(self.forbidden) or bool(self.costs)

    @property
    def known_edges(self) -> dict[str, Any]:
        """`allowed` and `required` edges, (2, N, N) each, as learners take them; or nothing."""
        return known_edges(self.knowledge, self.nodes)

    def as_dict(self) -> dict[str, Any]:
        record = dataclasses.asdict(self)
        for name in ("nodes", "intervenable"):
            record[name] = None if record[name] is None else list(record[name])
        record["forbidden"] = [list(group) for group in self.forbidden]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Settings:
        """Checked settings from plain values; StudyError says what is wrong with them."""
        known = {f.name for f in dataclasses.fields(cls)}
        unknown = sorted(set(map(str, record)) - known)
        if unknown:
            raise StudyError(f"unknown setting {unknown[0]!r}; there are {', '.join(known)}")
        try:
            return _checked(cls(**record))
        except StudyError:
            raise
        except (CausalArmsError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise StudyError(f"the settings are refused: {error}") from error

    def make_policy(self) -> Policy:
        """A policy that knows nothing yet."""
        mean = as_noise_mean(self.noise_mean, self.nodes)
        if mean is not None:
            mean[:, self.reward_index] *= self.sign
        return make_policy(
            self.policy,
            n_nodes=self.n_nodes,
            reward=self.reward_index,
            noise_mean=mean,
            horizon=self.horizon,
            **self.known_edges,
            **self.policy_settings,
        )


def refuse_ambiguous(nodes: tuple[str, ...]) -> None:
    """For new studies only: older ones with such a name can still be opened."""
    for node in nodes:
        if node.startswith(PREFIX):
            raise StudyError(
                f"node {node!r}: names that start with {PREFIX!r} are for switches; choose another"
            )


def chosen_policy(name: Any, settings: Any, *, changes: bool) -> tuple[Any, Any]:
    """The policy of a new study, and its settings: the best there is where nothing else is said.

    A study is in units of its own, so the posterior's prior is said in units it estimates.
    """
    if type(changes) is not bool:
        raise StudyError(f"changes is True or False, not {changes!r}")
    name = BEST if name is None else name
    if changes and isinstance(name, str) and not name.endswith(WATCHING):
        if name + WATCHING not in policy_names():
            raise StudyError(f"policy {name!r} cannot watch for changes; {BEST + WATCHING!r} does")
        name = name + WATCHING
    settings = {} if settings is None else settings
    if name in (BEST, BEST + WATCHING) and isinstance(settings, Mapping):
        settings = {"noise_scale": "estimate", **settings}
    return name, settings


def _checked(given: Settings) -> Settings:
    if isinstance(given.nodes, str) or not isinstance(given.nodes, Sequence):
        raise StudyError(f"nodes must be a list of names, not {given.nodes!r}")
    nodes = node_names(given.nodes, len(given.nodes))
    if len(nodes) < 2:
        raise StudyError("a study needs at least two nodes")
    reward = nodes[node_index(given.reward, nodes)]
    if given.direction not in DIRECTIONS:
        raise StudyError(f"direction is {' or '.join(DIRECTIONS)}, not {given.direction!r}")
    horizon = given.horizon
    if horizon is None:
        horizon = max(MIN_HORIZON, ROUNDS_PER_NODE * len(nodes))
    if type(horizon) is not int or not 1 <= horizon <= 10**9:
        raise StudyError(f"horizon is a number of rounds, not {horizon!r}")
    if type(given.seed) is not int or not 0 <= given.seed < 2**63:
        raise StudyError(f"seed is a whole number from 0 on, not {given.seed!r}")
    if not isinstance(given.policy, str) or given.policy == "oracle":
        raise StudyError(f"policy {given.policy!r} cannot run a study: it knows the truth")
    mean = as_noise_mean(given.noise_mean, nodes)
    settings = dataclasses.replace(
        given,
        nodes=nodes,
        reward=reward,
        horizon=horizon,
        policy_settings=_plain(given.policy_settings),
        intervenable=_intervenable(given.intervenable, nodes),
        max_interventions=_limit(given.max_interventions),
        forbidden=_groups(given.forbidden, nodes),
        costs=_costs(given.costs, nodes),
        noise_mean=None if mean is None else mean.tolist(),
        knowledge=checked_knowledge(given.knowledge, nodes),
    )
    if settings.knowledge:
        refuse_knowledge(settings.policy)
    if settings.constrained and settings.policy not in CONSTRAINED_POLICIES:
        raise StudyError(
            f"policy {settings.policy!r} cannot keep to constraints or costs; "
            f"{', '.join(CONSTRAINED_POLICIES)} can (intervenable works with every policy)"
        )
    settings.make_policy()  # refuse wrong settings of the policy now
    return settings


def _plain(settings: Any) -> dict[str, Any]:
    if not isinstance(settings, Mapping):
        raise StudyError(f"settings of a policy are names with values, not {settings!r}")
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
        except (TypeError, ValueError):
            raise StudyError(
                f"setting {name!r} of the policy must be plain numbers and text to be kept in a "
                f"file, not {value!r}"
            ) from None
    return plain


def _intervenable(given: Any, nodes: tuple[str, ...]) -> tuple[str, ...] | None:
    if given is None:
        return None
    if isinstance(given, str):
        raise StudyError(f"intervenable is a list of nodes, not {given!r}")
    chosen = {nodes[node_index(node, nodes)] for node in given}
    if not chosen:
        raise StudyError("intervenable is empty: there would be nothing to try")
    return tuple(node for node in nodes if node in chosen)


def _limit(given: Any) -> int | None:
    if given is not None and (type(given) is not int or given < 1):
        raise StudyError(f"max_interventions is a number from 1 on, not {given!r}")
    return given


def _groups(given: Any, nodes: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    groups = []
    for group in given:
        if isinstance(group, str):
            raise StudyError(f"forbidden is a list of lists of nodes, not of {group!r}")
        names = tuple(nodes[node_index(node, nodes)] for node in group)
        if len(set(names)) < 2:
            raise StudyError(
                f"forbidden {list(names)}: name at least two nodes; a node that must never be "
                "switched is left out of intervenable"
            )
        groups.append(names)
    return tuple(groups)


def _costs(given: Any, nodes: tuple[str, ...]) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise StudyError(f"costs are nodes with numbers, not {given!r}")
    costs = {nodes[node_index(node, nodes)]: float(cost) for node, cost in given.items()}
    for node, cost in costs.items():
        if not np.isfinite(cost) or cost < 0:
            raise StudyError(f"the cost of switching {node!r} is {cost}, not a number from 0 on")
    return costs

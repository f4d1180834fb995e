"""What a study was created with: nodes, reward, policy, limits. Checked in one place.

Settings are plain values. Whether a policy of this name exists, and takes its settings, is asked
when it is built (`learner.py`), so that any log can be read.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from causalarms.arrays import BoolArray
from causalarms.checks import as_mapping, as_sequence, choice, integer, number, optional
from causalarms.errors import CausalArmsError, ModelError, StudyError, shown
from causalarms.graphs.inputs import as_noise_mean, edge_constraints
from causalarms.limits import MAX_HORIZON
from causalarms.search.constraints import Constraints as NumberedConstraints
from causalarms.sem.constraints import NAMES, Constraints, refuse_unreachable, retired_levels
from causalarms.sem.factors import PREFIX, NamedFactors
from causalarms.sem.regimes import as_name, checked_name, node_index, node_names
from causalarms.study.log import canonical

FORMAT = 1  # of the `created` event; that of the first release
DIRECTIONS = ("maximize", "minimize")
KNOWLEDGE_KINDS = ("tiers", "excluded", "required")
MASKS = ("allowed", "required")  # settings of a policy that can use knowledge
FROZEN = ("nodes", "reward", "direction", "seed", "factors")  # results were measured under them
CONSTRAINTS = ("max_interventions", "forbidden", "required")  # as people give them together
LIMITS = ("intervenable", *CONSTRAINTS, "costs")  # fields of `Constraints`
MIN_HORIZON = 500
MAX_SEED = 2**63 - 1
ROUNDS_PER_NODE = 100  # csl-ucb at N = 10 settles within 1000 rounds (docs/baselines.md)


@dataclass(frozen=True)
class Settings:
    """Plain values only: this is the `created` event, changed by `settings changed` events."""

    nodes: tuple[str, ...]
    reward: str
    policy: str
    direction: str = "maximize"
    policy_settings: dict[str, Any] = field(default_factory=dict)
    horizon: int | None = None  # rounds after which exploring should have ended
    intervenable: tuple[str, ...] | None = None  # factors that may be moved; None: every one
    max_interventions: int | None = None
    forbidden: tuple[Any, ...] = ()  # factors not to be moved together, or {factor: levels}
    costs: dict[str, Any] = field(default_factory=dict)  # of a factor or its levels, in reward
    noise_mean: Any = None  # a number, (N,) or (R, N)
    seed: int = 0
    knowledge: dict[str, Any] = field(default_factory=dict)  # of edges: tiers, excluded, required
    factors: Any = None  # as `NamedFactors.as_list`; every study has some
    required: tuple[dict[str, Any], ...] = ()  # levels that are set together or not at all
    context: tuple[str, ...] = ()  # nodes that no factor moves, and only context causes
    failure_reward: float | None = None  # of a failed trial; None: the lowest reward seen

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
    def constraints(self) -> NumberedConstraints:
        """What may be executed."""
        return _limits(self).over(self.named)

    def refuse_unreachable(self, retired: Collection[tuple[int, int]] = ()) -> None:
        """SettingError for a level that is never allowed; those in `retired` may be there."""
        movable = self.named.names if self.intervenable is None else self.intervenable
        refuse_unreachable(self.constraints, self.named, movable, retired)

    def changed(
        self, changes: Mapping[str, Any], new_levels: Any = None
    ) -> tuple[Settings, dict[str, Any]]:
        """These settings with `changes` and new levels of factors, and what an event says of it."""
        for name in FROZEN:
            if name in changes:
                more = "; new_levels={...} adds levels" if name == "factors" else ""
                raise StudyError(f"{name} cannot change: results were measured under it{more}")
        if new_levels is not None:
            changes = {**changes, "factors": self._with_levels(new_levels)}
        new = Settings.from_dict(self.as_dict() | dict(changes))
        refuse_odd_names(new)
        said = new.as_dict()
        return new, {name: said[name] for name in changes}

    def _with_levels(self, new: Any) -> list[dict[str, Any]]:
        """The factors with `new` levels {factor: levels}; the others keep their numbers."""
        with refusals(self.nodes):
            factors = self.named.as_list()
            for name, levels in as_mapping("new_levels", new, "{factor: levels}").items():
                entry = factors[self.named.factor(name)]
                more = as_sequence(f"new_levels of {shown(name)}", levels, "a list of levels")
                entry["levels"] = [*entry["levels"], *more]
            return factors

    @property
    def known_edges(self) -> dict[str, Any]:
        """`allowed` and `required` edges, (R, N, N) each, as learners take them; or nothing.

        A node that a level sets has no parents in the regimes of that level.
        """
        # The same knowledge in every regime, unless a level sets the node in it.
        named = self.named
        set_nodes = named.set_regimes
        if not (self.knowledge or self.context or set_nodes.any()):
            return {}
        n, every = self.n_nodes, len(named.system_nodes)
        allowed, required = (np.zeros((every, every), dtype=bool) for _ in MASKS)
        allowed[:n, :n], required[:n, :n] = (mask[:n, :n] for mask in self._known)
        # how likely factors act, chances say (`known_actions`); none moves context
        allowed[n:, :n] = [node not in self.context for node in self.nodes]
        free = ~set_nodes[:, None, :]
        return dict(zip(MASKS, (mask & free for mask in (allowed, required)), strict=True))

    @property
    def known_actions(self) -> list[BoolArray]:
        """Whether each factor that shifts nodes may act on each node, and must, (F, N) each."""
        n = self.n_nodes
        return [mask[n:, :n] for mask in self._known]

    @cached_property
    def _known(self) -> tuple[BoolArray, BoolArray]:
        """Which edges between nodes, and behind them the factors, may be, and which must be."""
        roots = self.named.root_names
        return edge_constraints(
            (*self.nodes, *roots), context=self.context, n_roots=len(roots), **self.knowledge
        )

    @cached_property
    def digest(self) -> str:
        """The same for equal settings."""
        # Names may hold characters that no file can; `encode` refuses them when they are written.
        text = canonical(self.as_dict())
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        record = dataclasses.asdict(self)
        for name in ("nodes", "intervenable", "context"):
            record[name] = None if record[name] is None else list(record[name])
        record["forbidden"] = [
            dict(group) if isinstance(group, Mapping) else list(group) for group in self.forbidden
        ]
        record["required"] = [dict(group) for group in self.required]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Settings:
        """Checked settings from plain values; StudyError says what is wrong with them."""
        known = [f.name for f in dataclasses.fields(cls)]
        for name in record:
            if name not in known:
                raise StudyError(f"unknown setting {shown(name)}; there are {', '.join(known)}")
        for name in ("nodes", "reward", "policy", "factors"):
            if record.get(name) is None:
                raise StudyError(f"{name} is missing in the settings")
        with refusals(record["nodes"]):
            return _checked(cls(**record))


@contextmanager
def refusals(nodes: Sequence[str]) -> Iterator[None]:
    """Turn errors of settings with these nodes into StudyError."""
    try:
        yield
    except StudyError:
        raise
    # Policies of other packages may check their settings in any way.
    except (CausalArmsError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise StudyError(f"the settings are refused: {error}") from error
    except MemoryError as error:
        raise StudyError(
            f"a study of {len(nodes):,} nodes does not fit into memory: {error}"
        ) from error


def refuse_odd_names(settings: Settings) -> None:
    """Refuse names that no screen can show, and names that a table reads as columns of factors."""
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


def switches(nodes: Any, reward: Any, intervenable: Any) -> dict[str, Any]:
    """A factor off/on per node: of the intervenable ones if they are named, else not the reward.

    Who wants the reward as large as possible rarely has a switch that does just that.
    """
    with refusals(nodes):
        names = node_names(as_sequence("nodes", nodes, NAMES), len(nodes), as_name)
        if intervenable is None:
            chosen = set(names)
            with suppress(ModelError):  # a reward that is no node is refused with other settings
                chosen.remove(names[node_index(reward, names)])
            return {node: {} for node in names if node in chosen}
        given = as_sequence("intervenable", intervenable, NAMES)
        chosen = {names[node_index(node, names)] for node in given}
    if not chosen:
        raise StudyError("intervenable is empty: there would be nothing to try")
    return {node: {} for node in names if node in chosen}


def checked_limits(constraints: Any) -> dict[str, Any]:
    """The `constraints` of a new study as settings."""
    with refusals(()):
        given = as_mapping("constraints", {} if constraints is None else constraints)
        for name in given:
            choice("a constraint", name, CONSTRAINTS)
    return dict(given)


def _checked(given: Settings) -> Settings:
    nodes = node_names(as_sequence("nodes", given.nodes, NAMES), len(given.nodes), as_name)
    if len(nodes) < 2:
        raise StudyError("a study needs at least two nodes: the reward, and what may cause it")
    reward = nodes[node_index(given.reward, nodes)]
    horizon = given.horizon
    if horizon is None:
        horizon = max(MIN_HORIZON, ROUNDS_PER_NODE * len(nodes))
    if not isinstance(given.policy, str) or given.policy == "oracle":
        raise StudyError(f"policy {shown(given.policy)} cannot run a study: it knows the truth")
    named = NamedFactors.of(given.factors, nodes)
    mean = as_noise_mean(given.noise_mean, nodes, int(named.regimes.max()))
    settings = dataclasses.replace(
        given,
        nodes=nodes,
        reward=reward,
        direction=choice("direction", given.direction, DIRECTIONS),
        horizon=integer("horizon", horizon, minimum=1, maximum=MAX_HORIZON),
        seed=integer("seed", given.seed, minimum=0, maximum=MAX_SEED),
        policy_settings=_plain(given.policy_settings),
        factors=named.as_list(),
        **vars(_limits(given).checked(named)),
        noise_mean=None if mean is None else mean.tolist(),
        knowledge=_checked_knowledge(given.knowledge, nodes, named.root_names),
        context=_checked_context(given.context, nodes, reward, named),
        failure_reward=optional(number, "failure_reward", given.failure_reward),
    )
    # Levels that set a node take edges away, so this is asked of the settings as a whole.
    _ = settings.known_edges  # refuses knowledge that contradicts itself
    # A level that no rule allows is a slip in the rules: better said now than never played. One
    # that a rule names alone was retired in a running study; `Study.create` refuses that, too.
    settings.refuse_unreachable(retired_levels(settings.forbidden, named))
    return settings


def _limits(given: Settings) -> Constraints:
    return Constraints(**{name: getattr(given, name) for name in LIMITS})


def _checked_context(
    given: Any, nodes: tuple[str, ...], reward: str, named: NamedFactors
) -> tuple[str, ...]:
    """By name, in the order of the nodes."""
    chosen = {nodes[node_index(node, nodes)] for node in as_sequence("context", given, NAMES)}
    if reward in chosen:
        raise StudyError(f"the reward {reward!r} is what factors are to move: it cannot be context")
    for factor in named.factors:
        for node in chosen.intersection(factor.acts_on):
            raise StudyError(
                f"factor {factor.name!r} acts on {node!r}, so that it cannot be context: "
                "context is what no factor moves"
            )
        if factor.name in chosen:
            raise StudyError(
                f"factor {factor.name!r} has the name of a node that is context, which no factor "
                "moves: give the factor another name"
            )
    return tuple(node for node in nodes if node in chosen)


def _checked_knowledge(
    given: Any, nodes: tuple[str, ...], roots: Sequence[str]
) -> dict[str, list[list[str]]]:
    """By name and without empty entries; `Settings.known_edges` sees contradictions."""
    kinds, names = ", ".join(KNOWLEDGE_KINDS), (*nodes, *roots)

    def named(node: Any) -> str:
        return names[node_index(node, names if isinstance(node, str) else nodes)]

    for kind in as_mapping("knowledge", given, f"{kinds} with lists of nodes"):
        if kind not in KNOWLEDGE_KINDS:
            raise StudyError(f"there is no knowledge {shown(kind)}; there are {kinds}")
    plain: dict[str, list[list[str]]] = {}
    for kind in KNOWLEDGE_KINDS:
        entry, given_groups = f"knowledge {kind!r}", () if given.get(kind) is None else given[kind]
        groups = as_sequence(entry, given_groups, "a list of lists of nodes")
        for group in groups:
            members = as_sequence(f"every entry of {entry}", group, "a list of nodes")
            if len(members) != 2 and kind != "tiers":
                raise StudyError(f"an edge is a pair [parent, child], not {shown(group)}")
        if groups:
            plain[kind] = [[named(node) for node in group] for group in groups]
    return plain


def _plain(settings: Any) -> dict[str, Any]:
    given = as_mapping("policy_settings", settings)
    plain = {
        str(name): value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in given.items()
    }
    for name, value in plain.items():
        if name in ("noise_mean", "horizon", "n_nodes", "reward", "regimes", "columns", "context"):
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

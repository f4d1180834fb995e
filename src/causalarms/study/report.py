"""What a study shows: the belief of its policy in the user's names and sign, and tables of trials.

`best`, `predict`, `graph`, `explain`, the page and the command line all come from here, so that all
of them show the belief that also chooses the next trial.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, IntArray, Intervention, Interventions
from causalarms.errors import ModelError, TooEarlyError
from causalarms.graphs.graph import Graph
from causalarms.limits import MAX_RATIOS
from causalarms.models.belief import (
    Belief,
    Recommendation,
    Summary,
    as_good,
    recommend,
    summary,
    working,
)
from causalarms.models.failures import MAX_RECOMMENDED_RISK
from causalarms.policies.base import Policy
from causalarms.search.constraints import Constraints
from causalarms.sem.factors import PREFIX, NamedFactors
from causalarms.sem.regimes import regime_names
from causalarms.study.effects import (
    at_level,
    graph_with_roots,
    hardly_measured,
    remarks,
    reward_effects,
    with_roots,
)
from causalarms.study.far_values import far_values
from causalarms.study.learner import learns_from_gaps
from causalarms.study.ledger import Ledger, Record
from causalarms.study.records import (
    Alarm,
    Best,
    Interval,
    MissingValues,
    Prediction,
    Rival,
    SuspectValue,
    TakenBack,
)
from causalarms.study.settings import Settings
from causalarms.tables.read import PlainTable
from causalarms.tables.write import column_of


@dataclass(frozen=True)
class Beliefs:
    """The belief after some rounds; `belief` maximises, `known` has the user's sign."""

    settings: Settings
    values: FloatArray  # (n, N), as told
    regimes: Interventions  # (n, N), as executed
    belief: Belief | None
    has_model: bool  # whether the policy ever has one
    at_risk: Constraints | None = None  # what is allowed, and how likely it fails
    contradiction: str = ""  # of what the policy learned, if it is why there is no belief
    left_out: frozenset[int] = frozenset()  # rounds that are not learned from, from 0

    @property
    def allowed(self) -> Constraints:
        """What may be played, what it costs, and how likely it fails."""
        return self.settings.constraints if self.at_risk is None else self.at_risk

    @property
    def known(self) -> Belief:
        """The belief, in the user's sign; TooEarlyError if there is none."""
        found = self._in_users_sign
        if found is None:
            raise TooEarlyError(self.why_nothing)
        return found

    @cached_property
    def _in_users_sign(self) -> Belief | None:
        if self.belief is None or self.settings.sign > 0:
            return self.belief
        factors = np.ones(len(self.settings.named.system_nodes))
        factors[self.settings.reward_index] = self.settings.sign
        return self.belief.scaled(factors)

    def given(self, context: Mapping[str, float]) -> Beliefs:
        """The same with the context as it is today, as far as that is known."""
        nodes, belief = self.settings.nodes, self.belief
        if not context or belief is None:
            return self
        every = [nodes.index(node) for node in self.settings.context]
        known = {nodes.index(node): value for node, value in context.items()}
        draws = belief.draws.given_context(every, known)
        return replace(self, belief=replace(belief, draws=draws))

    def to_maximise(self, reward: Any) -> Any:
        """A reward of the user as the policy maximises it; called again, the user's."""
        return self.settings.sign * reward

    @property
    def why_nothing(self) -> str:
        n, policy = len(self.values), self.settings.policy
        if not self.has_model:
            return f"policy {policy!r} has no model of the system; 'posterior' has one"
        if not n:
            return "no round has been told yet: nothing is known"
        if self.contradiction:
            return self.contradiction
        for node, often in hardly_measured(self):
            if node == self.settings.reward:
                return f"{node} {often}: it is too early to say what is best for it"
        return f"it is too early: after {n} round(s) policy {policy!r} has no model yet"

    def expected(self, rows: Interventions) -> Summary:
        """Expected values of all nodes, (rows, N) each."""
        return summary(self.known.expected(rows))

    def tried(self, row: Interventions) -> int:
        """How many of the rounds were of this intervention."""
        return int((self.regimes == row).all(axis=1).sum())


def believe(ledger: Ledger, policy: Policy, *, first: int | None = None) -> Beliefs:
    """What the policy believes; `first`: it has learned so many rounds of the ledger."""
    settings = ledger.settings
    records, n = ledger.learnable(policy.learns_from_gaps)[:first], settings.n_nodes
    n_system = len(settings.named.system_nodes)
    belief, contradiction = None, ""
    try:
        belief = policy.belief()
    except ModelError as error:
        # Regimes learned apart may mix into a cycle until more rounds are told. The study is asked,
        # told and served all the same.
        contradiction = str(error)
    return Beliefs(
        settings,
        np.array([r.values for r in records], dtype=float).reshape(-1, n),
        np.array([r.intervention for r in records], dtype=np.uint8).reshape(-1, n_system),
        belief,
        policy.has_model,
        policy.constraints if policy.failures.n_failed else None,
        contradiction,
        frozenset(out.round - 1 for out in policy.left_out),
    )


def graph(beliefs: Beliefs, intervention: Sequence[int] | None = None) -> Graph:
    """The likely edges; factors that shift nodes are roots.

    With an `intervention` the graph has one regime: the mechanisms in force under it.
    """
    rooted = with_roots(beliefs.known, beliefs.settings.named, intervention)
    found = graph_with_roots(rooted, beliefs.settings, intervention)
    effects = reward_effects(beliefs, found, found.weights)
    return replace(found, measures=found.measures | {"reward_effect": effects})


def edges(graph: Graph, named: NamedFactors) -> list[dict[str, Any]]:
    """The edges of a study's graph, those first that do most to the reward.

    `when` names the levels at which the child has this parent.
    """
    found = sorted(graph.edges(), key=lambda e: -abs(e["reward_effect"]))
    return [e | {"when": _when(graph, named, e["child"], e["regime"])} for e in found]


def unknown(graph: Graph, named: NamedFactors) -> list[tuple[str, str]]:
    """(node, when) of the mechanisms without data."""
    return [(node, _when(graph, named, node, regime)) for regime, node in graph.unknown()]


def _when(graph: Graph, named: NamedFactors, node: str, regime: str) -> str:
    if regime not in regime_names(graph.n_regimes):  # the levels of a setting
        return regime
    return named.regime_name(graph.nodes.index(node), graph.regime_names.index(regime))


# -- the best intervention known, and predictions of any, with their uncertainty -------------------

RIVALS = 3  # of the best that are shown
DRAWS_OF_RIVALS = 100  # by which those to look at are found among all settings
COMPARED_RIVALS = 24  # by all draws: a few draws hardly tell 1 % from 3 %
RECENT_RESULTS = 20  # by which a study is said to stay with a setting
STAYING_FRACTION = 0.75  # of these, from which on it is


def predict(beliefs: Beliefs, interventions: Sequence[Sequence[int]]) -> list[Prediction]:
    nodes, named = beliefs.settings.nodes, beliefs.settings.named
    rows = np.array(interventions, dtype=np.uint8).reshape(-1, len(named.system_nodes))
    mean, low, high = beliefs.expected(rows)
    failing = beliefs.allowed.failing(rows)
    return [
        Prediction(
            levels=named.levels(row),
            intervention=dict(zip(named.system_nodes, row, strict=True)),
            expected={
                node: Interval(*map(float, numbers))
                for node, *numbers in zip(nodes, mean[i], low[i], high[i], strict=False)
            },
            failing=None if np.isnan(failing[i]) else float(failing[i]),
        )
        for i, row in enumerate(rows.tolist())
    ]


def best(beliefs: Beliefs, *, tolerance: float = 0.0) -> Best:
    """The best intervention of the belief; without a model that of the best average."""
    if beliefs.belief is None:
        return _best_average(beliefs)
    settings = beliefs.settings
    found = recommend(beliefs.belief, settings.reward_index, beliefs.allowed, tolerance=tolerance)
    # Changing the sign of an interval exchanges its ends.
    mean, low, high = (beliefs.to_maximise(float(number)) for number in found.reward)
    basis = (
        "averaged over all graphs"
        if beliefs.belief.weighs_graphs
        else "given its one learned graph: doubts about it are not included"
    )
    return Best(
        **_named(settings, found.intervention.tolist()),
        reward=mean,
        low=min(low, high),
        high=max(low, high),
        cost=found.cost,
        probability=found.probability,
        expected_loss=found.expected_loss,
        failing=math.nan if found.failing is None else found.failing,
        basis=f"{len(beliefs.values) - len(beliefs.left_out)} rounds, {basis}",
        remarks=remarks(beliefs),
        taken_back=_taken_back(beliefs, beliefs.belief, found.intervention),
        tried_equal=_tried_equal(beliefs, beliefs.belief, found.intervention),
        **_next_to(beliefs, found.intervention, _rivals(beliefs, beliefs.belief, found)),
    )


def _named(settings: Settings, row: Sequence[int]) -> dict[str, Any]:
    """One intervention as `Best` has it: by node, by factor, and what is not at its first level."""
    return {
        "intervention": dict(zip(settings.named.system_nodes, row, strict=True)),
        "levels": settings.named.levels(row),
        "switch": settings.named.switched(row),
    }


def _best_average(beliefs: Beliefs) -> Best:
    """The executed intervention with the best average, if there is no model."""
    settings = beliefs.settings
    if beliefs.has_model or not len(beliefs.values):
        raise TooEarlyError(beliefs.why_nothing)
    arms, which = np.unique(beliefs.regimes, axis=0, return_inverse=True)
    reward = beliefs.values[:, settings.reward_index]
    counts = np.bincount(which)
    means = np.bincount(which, reward) / counts
    # What was executed is not always allowed: rounds may be imported, or rules changed since.
    allowed = beliefs.allowed
    worth, failing = allowed.worth(arms), allowed.failing(arms)
    may_be = allowed.allows(arms) & ~(failing > MAX_RECOMMENDED_RISK)
    net = np.where(may_be, worth.net(beliefs.to_maximise(means)), -np.inf)
    top = int(np.argmax(net))
    if allowed.risk is not None and not may_be[top]:
        raise TooEarlyError("every setting with a result fails more often than not so far")
    others = np.argsort(-net, kind="stable")[1 : 1 + RIVALS]
    rivals = [
        Rival(settings.named.levels(arms[k].tolist()), float(means[k]), math.nan, int(counts[k]))
        for k in others[np.isfinite(net[others])]
    ]
    error = math.nan
    if counts[top] > 1:
        spread = float(reward[which == top].std(ddof=1))
        from scipy.special import stdtrit  # scipy.stats takes half a second to import

        error = float(stdtrit(counts[top] - 1, 0.975)) * spread / np.sqrt(counts[top])
    return Best(
        **_named(settings, arms[top].tolist()),
        reward=float(means[top]),
        low=float(means[top] - error),
        high=float(means[top] + error),
        cost=float(worth.cost[top]),
        failing=float(failing[top]),
        basis=f"the average of {counts[top]} round(s): {beliefs.why_nothing}",
        **_next_to(beliefs, arms[top], rivals),
    )


def _taken_back(beliefs: Beliefs, belief: Belief, best: Intervention) -> list[TakenBack]:
    """Draw by draw, so that what is uncertain of both settings does not count."""
    settings, named = beliefs.settings, beliefs.settings.named
    levels = named.numbers_of(best.tolist())
    assert levels is not None
    moved = [at for at, level in enumerate(levels) if level]
    without = [at_level(levels, at, 0) for at in moved]
    rows = named.numbers.interventions([levels, *without]).astype(np.uint8)
    worth = beliefs.allowed.worth(rows).as_likely_to_fail(0)
    net = worth.net(belief.rewards(rows, settings.reward_index))
    mean, low, high = summary(net[:, :1] - net[:, 1:])
    allowed = settings.constraints.allows(rows)[1:]
    found = [
        TakenBack(
            factor=named.factors[at].name,
            level=named.factors[at].levels[levels[at]],
            first=named.factors[at].levels[0],
            lost=float(mean[k]),
            low=float(low[k]),
            high=float(high[k]),
            allowed=bool(allowed[k]),
        )
        for k, at in enumerate(moved)
    ]
    return sorted(found, key=lambda back: -back.lost)


def _rivals(beliefs: Beliefs, belief: Belief, best: Recommendation) -> list[Rival]:
    """Those most likely to be better; with too many settings, of those near it and those played."""
    settings, allowed, chosen = beliefs.settings, beliefs.allowed, best.intervention
    rows = np.vstack([allowed.neighbours(chosen), beliefs.regimes])
    if allowed.count(MAX_RATIOS) is not None:
        rows = allowed.interventions(MAX_RATIOS)
    rows = np.unique(rows[allowed.allows(rows)], axis=0)
    rows = working(rows[(rows != chosen).any(axis=1)], allowed)
    few = replace(belief, draws=belief.draws.first(DRAWS_OF_RIVALS))
    rows = rows[_foremost(_net(beliefs, few, chosen, rows))[:COMPARED_RIVALS]]
    found = _net(beliefs, belief, chosen, rows)
    first = _foremost(found)[:RIVALS]
    chances = (found[:, 1:] > found[:, :1]).mean(axis=0)[first]
    rows, equal = rows[first], as_good(found, 0)[1:][first]
    means = beliefs.to_maximise(belief.rewards(rows, settings.reward_index).mean(axis=0))
    levels, tried = map(settings.named.levels, rows.tolist()), map(beliefs.tried, rows)
    return list(map(Rival, levels, means.tolist(), chances.tolist(), tried, equal.tolist()))


def _net(beliefs: Beliefs, belief: Belief, chosen: Intervention, rows: Interventions) -> FloatArray:
    """Net rewards of the chosen one and of others in every draw, (draws, 1 + rows)."""
    both = np.vstack([chosen[None], rows])
    # as the best was chosen: risks that hardly differ would make a rival better in every draw
    worth = beliefs.allowed.worth(both).as_likely_to_fail(0)
    return np.asarray(worth.net(belief.rewards(both, beliefs.settings.reward_index)))


def _tried_equal(beliefs: Beliefs, belief: Belief, best: Intervention) -> int:
    """In how many rounds another setting was tried that is as good."""
    rows = beliefs.regimes[(beliefs.regimes != best).any(axis=1)]
    rows, counts = np.unique(rows, axis=0, return_counts=True)
    return int(counts[as_good(_net(beliefs, belief, best, rows), 0)[1:]].sum())


def _foremost(net: FloatArray) -> IntArray:
    """Those that are better than the first in most draws; of equals, the better on average."""
    gaps = net[:, 1:] - net[:, :1]
    return np.lexsort((-gaps.mean(axis=0), -(gaps > 0).mean(axis=0)))


def _next_to(beliefs: Beliefs, best: Interventions, rivals: list[Rival]) -> dict[str, Any]:
    """How often the best and its rivals were played, and whether it was nearly always of late."""
    recent = beliefs.regimes[-RECENT_RESULTS:]
    often = int((recent == best).all(axis=1).sum())
    stayed = ""
    if rivals and len(recent) == RECENT_RESULTS and often >= STAYING_FRACTION * RECENT_RESULTS:
        counts = [str(rival.tried) for rival in rivals]
        counts[-2:] = [" and ".join(counts[-2:])]
        ever = any(rival.tried for rival in rivals)
        times = "time" if counts == ["1"] else "times"
        tried = f"tried {', '.join(counts)} {times}" if ever else "never tried"
        beyond = " beyond that" if ever else ""
        stayed = (
            f"{often} of the last {RECENT_RESULTS} results are of this setting; its leading rivals "
            f"were {tried}, and what is known of them{beyond} comes from other settings"
        )
    return {"tried": beliefs.tried(best), "stayed": stayed, "rivals": rivals}


# -- trials and alarms as tables -------------------------------------------------------------------


def columns(ledger: Ledger, left_out: Iterable[SuspectValue] = ()) -> dict[str, list[Any]]:
    """One entry per trial; values of a node are in `column_of` it, levels in `do:FACTOR`.

    The policy does not learn from trials with values that are `left_out`.
    """
    settings, out = ledger.settings, {value.trial for value in left_out}
    gaps, trials = learns_from_gaps(settings), ledger.trials
    table: dict[str, list[Any]] = {
        "trial": [r.number for r in trials],
        "state": [r.state for r in trials],
        "worker": [r.worker for r in trials],
        "reason": [str(r.asked.get("reason", "")) for r in trials],
        "predicted": [r.asked.get("mean") for r in trials],
        "learned": [r.learnable(gaps) and r.number not in out for r in trials],
        "corrected": [r.corrected for r in trials],
    }
    levels = _levels(trials, settings.named)
    for at, factor in enumerate(settings.named.factors):
        shown: list[Any] = [0, 1] if factor.is_switch else list(factor.levels)
        table[PREFIX + factor.name] = [shown[level] for level in levels[:, at]]
    for i, node in enumerate(settings.nodes):
        table[column_of(node)] = [None if r.values is None else r.values[i] for r in trials]
    table["asked_at"] = [r.asked_at for r in trials]
    table["done_at"] = [r.done_at for r in trials]
    table["remark"] = [r.reason for r in trials]
    far: dict[int, list[str]] = {}
    for found in far_values(ledger):
        far.setdefault(found.trial, []).append(found.node)
    table["far"] = [";".join(far.get(r.number, ())) for r in trials]
    table["not_as_asked"] = [";".join(not_as_asked(r, settings.named)) for r in trials]
    return table


def missing_values(ledger: Ledger) -> MissingValues:
    gaps = [r for r in ledger.with_values() if r.n_missing]
    return MissingValues(
        values=sum(r.n_missing for r in gaps),
        trials=len(gaps),
        learned=len(gaps) if gaps and learns_from_gaps(ledger.settings) else 0,
    )


def _levels(trials: Sequence[Record], named: NamedFactors) -> npt.NDArray[np.int16]:
    """Which level each factor was at, (trials, factors)."""
    rows = np.array([r.intervention for r in trials], dtype=np.int64)
    return named.numbers.levels_of(rows.reshape(len(trials), len(named.system_nodes)))


def not_as_asked(record: Record, named: NamedFactors) -> list[str]:
    """Factors that were set to another level than the trial asked for."""
    if record.asked_intervention == record.intervention:
        return []
    asked, executed = named.levels(record.asked_intervention), named.levels(record.intervention)
    return [name for name in named.names if asked[name] != executed[name]]


def frame(ledger: Ledger, left_out: Iterable[SuspectValue] = ()) -> Any:
    """A pandas frame if pandas is installed, else polars, else a `PlainTable`."""
    table = columns(ledger, left_out)
    for library in ("pandas", "polars"):
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue
        return module.DataFrame(table)
    return PlainTable(table)


def alarms(ledger: Ledger, policy: Policy) -> list[Alarm]:
    """The policy's alarms with the trial that raised each."""
    named, learned, found = ledger.settings.named, ledger.learnable(policy.learns_from_gaps), []
    for number, alarm in enumerate(policy.alarms):
        # A detector that watches the whole graph names no node.
        regime = "all" if alarm.node < 0 else named.regime_name(alarm.node, alarm.regime)
        node = "all" if alarm.node < 0 else named.nodes[alarm.node]
        trial, since = learned[alarm.round - 1].number, _after(learned, alarm.change_point)
        checks = policy.checks_left if number == len(policy.alarms) - 1 else 0
        where = "the system" if alarm.node < 0 else node
        where += f" ({regime})" if alarm.node >= 0 and named.regimes[alarm.node] > 1 else ""
        text = f"{where} seems to have changed"
        text += "" if since is None else f" after trial {since}"
        found.append(
            Alarm(
                alarm=number,
                trial=trial,
                regime=regime,
                node=node,
                changed_after=since,
                statistic=float(alarm.statistic),
                threshold=float(alarm.threshold),
                acknowledged=number in ledger.acknowledged,
                note=ledger.acknowledged.get(number, ""),
                checks_left=checks,
                text=f"{text}, noticed at trial {trial}{checks_in_words(checks)}",
            )
        )
    return found


def checks_in_words(count: int) -> str:
    """
    >>> checks_in_words(1)
    '; the next result is of a check trial: it is random on purpose, to find what else changed'
    """
    if not count:
        return ""
    if count == 1:
        whose = "result is of a check trial: it is"
    else:
        whose = f"{count} results are of check trials: they are"
    return f"; the next {whose} random on purpose, to find what else changed"


def _after(learned: list[Record], point: int) -> int | None:
    """The trial of the last round before the estimated change."""
    return learned[point - 1].number if 0 < point <= len(learned) else None

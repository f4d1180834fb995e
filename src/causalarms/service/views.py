"""What is believed, as the page shows it: computed in the background, once per state of the log."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from causalarms.arrays import BoolArray, FloatArray
from causalarms.errors import CausalArmsError, TooEarlyError
from causalarms.graphs.graph import Graph
from causalarms.models.belief import edge_weights
from causalarms.pictures.layout import layered_layout
from causalarms.service import records
from causalarms.study import Study, report
from causalarms.study.effects import Rooted, effects, graph_with_roots, reward_effects, with_roots
from causalarms.study.explain import model_checks
from causalarms.study.far_values import WINDOW, as_learned, far_values
from causalarms.study.ledger import Ledger, Record
from causalarms.study.records import Alarm, Certainty, SuspectValue
from causalarms.study.report import Beliefs
from causalarms.study.settings import Settings

if TYPE_CHECKING:
    from causalarms.service.live import LogSnapshot

BUCKETS = 500  # of the reward chart
SET = "set"  # the one regime of a factor that is a root of the graph
NODE_WIDTH = 0.26  # of the height of a drawing on the page
VERSION = version("causalarms")

Far = dict[int, list[SuspectValue]]  # by trial


class Views(NamedTuple):
    """Everything shown of one snapshot of the log."""

    as_of: int
    beliefs: Beliefs
    best: records.Best
    graph: records.Graph
    effects: records.Effects
    alarms: list[Alarm]
    watches: bool
    rewards: records.Rewards
    ledger: Ledger
    far: Far  # of the snapshot before until `FarValues` has run, which takes longer
    left_out: list[SuspectValue]
    problem: str


def compute_views(study: Study, layout: Layout, far: Far) -> Views:
    """Learn what is new and compute everything: 0.2 to 1 s at 10,000 rounds."""
    with study.learning():
        ledger = study.ledger()
        as_of = study.seen
        beliefs = study.beliefs()
        # All inside one turn: nobody else may teach the policy between two of these answers.
        alarms = study.alarm_records()
        left_out, watches, problem = study.left_out(), study.watches, study.problem or ""
    best = best_view(beliefs, as_of)
    return Views(
        as_of=as_of,
        beliefs=beliefs,
        best=best,
        graph=graph_view(beliefs, layout, as_of),
        effects=effects_view(beliefs, as_of),
        alarms=alarms,
        watches=watches,
        rewards=rewards_view(ledger, alarms, best, as_of),
        ledger=ledger,
        far=far,
        left_out=left_out,
        problem=problem,
    )


def best_view(beliefs: Beliefs, as_of: int) -> records.Best:
    try:
        found = report.best(beliefs)
    except TooEarlyError as error:
        return records.Best(as_of=as_of, why=str(error))
    return records.Best(
        as_of=as_of,
        found=records.BestLevels(found.levels, found.switch, found.intervention),
        **{name: getattr(found, name) for name in Certainty.__struct_fields__},
    )


def graph_view(beliefs: Beliefs, layout: Layout, as_of: int) -> records.Graph:
    """Every edge with a probability above zero; the request says which to show."""
    named = beliefs.settings.named
    nodes = (*named.nodes, *named.root_names)
    kinds = [_kind(node, i, beliefs.settings) for i, node in enumerate(nodes)]
    roots = [i for i, kind in enumerate(kinds) if kind != "measured"]
    try:
        rooted = with_roots(beliefs.known, named)
    except TooEarlyError as error:
        layout.place(np.zeros((len(nodes), len(nodes)), dtype=bool), roots)
        drawn = _nodes(beliefs, layout, kinds, [[] for _ in nodes])
        return records.Graph(as_of, str(error), False, [], drawn, [], None, layout.number)
    graph = graph_with_roots(rooted, beliefs.settings)
    # One layout for all regimes, so that panels can be compared.
    layout.place(np.asarray(graph.adjacency.any(axis=0)), roots)
    known = [graph.known[: int(count), i].tolist() for i, count in enumerate(graph.counts)]
    return records.Graph(
        as_of=as_of,
        why="",
        weighs_graphs=beliefs.known.weighs_graphs,
        regimes=list(graph.regime_names),
        nodes=_nodes(beliefs, layout, kinds, known),
        edges=_edges(beliefs, graph, rooted),
        order=None if graph.order is None else list(graph.order),
        layout=layout.number,
    )


def setting_view(
    whole: records.Graph, beliefs: Beliefs, intervention: Sequence[int]
) -> records.Graph:
    """The graph of one setting: the regime in force, and every node where it was."""
    if whole.why:
        return whole
    named = beliefs.settings.named
    rooted = with_roots(beliefs.known, named, intervention)
    graph = graph_with_roots(rooted, beliefs.settings, intervention)
    return msgspec.structs.replace(
        whole,
        regimes=list(graph.regime_names),
        nodes=[
            msgspec.structs.replace(
                node,
                regimes=[SET if node.kind == "factor" else named.regime_name(i, intervention[i])],
                known=[bool(graph.known[0, i])],
            )
            for i, node in enumerate(whole.nodes)
        ],
        edges=_edges(beliefs, graph, rooted, intervention),
        order=None if graph.order is None else list(graph.order),
    )


def _edges(
    beliefs: Beliefs, graph: Graph, rooted: Rooted, intervention: Sequence[int] | None = None
) -> list[records.Edge]:
    named, nodes = beliefs.settings.named, graph.nodes
    probability = np.where(graph.exists[:, None, :], rooted.belief.edge_probability, 0.0)
    weights = edge_weights(rooted.belief.draws, rooted.parts).mean
    effects = reward_effects(beliefs, graph, weights)
    return [
        records.Edge(
            regime=regime,
            when=named.regime_name(child, regime)
            if intervention is None
            else graph.regime_names[0],
            parent=nodes[parent],
            child=nodes[child],
            probability=float(probability[regime, parent, child]),
            weight=float(weights[regime, parent, child]),
            standard_error=float(graph.measures["standard_error"][regime, parent, child]),
            reward_effect=float(effects[regime, parent, child]),
            likely=bool(graph.adjacency[regime, parent, child]),
        )
        for regime, parent, child in np.argwhere(probability > 0).tolist()
    ]


def effects_view(beliefs: Beliefs, as_of: int) -> records.Effects:
    try:
        return records.Effects(as_of, "", effects(beliefs))
    except TooEarlyError as error:
        return records.Effects(as_of, str(error), [])


def shown_graph(whole: records.Graph, above: float) -> records.Graph:
    """The graph with the likely edges, and those at least so probable."""
    shown = [edge for edge in whole.edges if edge.likely or edge.probability >= above]
    return msgspec.structs.replace(whole, edges=shown)


def _kind(name: str, at: int, settings: Settings) -> records.NodeKind:
    if at >= settings.n_nodes:
        return "factor"
    return "context" if name in settings.context else "measured"


def _nodes(
    beliefs: Beliefs, layout: Layout, kinds: list[records.NodeKind], known: list[list[bool]]
) -> list[records.GraphNode]:
    """`known` says per node and regime whether there is data."""
    named, roots = beliefs.settings.named, beliefs.settings.named.root_names
    regimes = [
        [named.regime_name(i, regime) for regime in range(int(count))]
        for i, count in enumerate(named.regimes[: named.n_measured])
    ]
    regimes += [[SET] for _ in roots]
    return [
        records.GraphNode(node, kinds[i], x, y, regimes[i], known[i])
        for i, (node, (x, y)) in enumerate(
            zip((*named.nodes, *roots), layout.positions.tolist(), strict=True)
        )
    ]


def rewards_view(
    ledger: Ledger, alarms: list[Alarm], best: records.Best, as_of: int
) -> records.Rewards:
    """Results in the order they came in, in at most `BUCKETS` runs of equal length."""
    settings = ledger.settings
    at = settings.reward_index
    told = [r for r in ledger.with_values() if r.values is not None and r.values[at] is not None]
    # A page of 10,000 results must load in under 2 s: at most `BUCKETS` points are sent.
    size = max(1, math.ceil(len(told) / BUCKETS))
    place = {r.number: i + 1 for i, r in enumerate(told)}
    return records.Rewards(
        as_of=as_of,
        reward=settings.reward,
        buckets=[
            _bucket(told[begin : begin + size], begin, at) for begin in range(0, len(told), size)
        ],
        alarms=[
            records.MarkedAlarm(a.alarm, place[a.trial], a.trial, a.node, a.acknowledged)
            for a in alarms
            if a.trial in place
        ],
        best_mean=best.reward,
        best_low=best.low,
        best_high=best.high,
    )


def _bucket(results: list[Record], begin: int, at: int) -> records.Bucket:
    rewards = [r.values[at] for r in results if r.values is not None]
    numbers = [x for x in rewards if x is not None]
    predicted = [r.asked["mean"] for r in results if "mean" in r.asked]
    return records.Bucket(
        first_round=begin + 1,
        last_round=begin + len(results),
        first_trial=results[0].number,
        last_trial=results[-1].number,
        results=len(results),
        mean=sum(numbers) / len(numbers),
        low=min(numbers),
        high=max(numbers),
        predicted=sum(predicted) / len(predicted) if predicted else None,
    )


def checks_view(views: Views) -> records.Checks:
    """The slowest view: computed after the others."""
    answer = records.Checks(views.as_of, "", [], views.left_out, views.problem)
    try:
        answer.checks = model_checks(views.beliefs)
    except TooEarlyError as error:
        answer.why = str(error)
    except (CausalArmsError, ArithmeticError, np.linalg.LinAlgError) as error:
        answer.why = f"the model cannot be tested: {error}"
    return answer


# -- the study and its trials, in a live service and in a report -----------------------------------


def study_summary(
    name: str, snapshot: LogSnapshot, views: Views, caller: records.Caller, now: str
) -> records.StudySummary:
    settings, ledger = snapshot.settings, snapshot.ledger
    movable = settings.named.names if settings.intervenable is None else settings.intervenable
    return records.StudySummary(
        name=name,
        nodes=list(settings.nodes),
        reward=settings.reward,
        direction=settings.direction,  # type: ignore[arg-type]
        factors=[
            records.Factor(f.name, list(f.levels), list(f.acts_on), f.is_switch, f.name in movable)
            for f in settings.named.factors
        ],
        context=list(settings.context),
        policy=settings.policy,
        watches=views.watches,
        counts=snapshot.counts,
        trials=len(ledger.trials),
        results=len(ledger.order),
        head=snapshot.number,
        learned_head=snapshot.learned,
        as_of=views.as_of,
        first_hash=snapshot.first_hash,
        created=snapshot.first.at,
        now=now,
        caller=caller,
        far_values=as_learned(
            (far for found in views.far.values() for far in found), views.left_out
        ),
        missing=report.missing_values(ledger).words,
        version=VERSION,
    )


def trial_row(snapshot: LogSnapshot, views: Views, record: Record) -> records.TrialRow:
    named = snapshot.settings.named
    otherwise = bool(report.not_as_asked(record, named))
    return records.TrialRow(
        trial=record.number,
        state=record.state,
        worker=record.worker,
        levels=named.levels(record.intervention),
        switch=named.switched(record.intervention),
        asked_levels=named.levels(record.asked_intervention) if otherwise else None,
        before=snapshot.ledger.before(record),
        values=values_of(snapshot, record),
        predicted=record.asked.get("mean"),
        reason=str(record.asked.get("reason", "")),
        why=str(record.asked.get("why", "")),
        remark=record.reason,
        corrected=record.corrected,
        notes=snapshot.notes_of[record.number],
        asked_at=record.asked_at,
        done_at=record.done_at,
        far=[far.node for far in views.far.get(record.number, ())],
    )


def values_of(snapshot: LogSnapshot, record: Record) -> records.Values | None:
    if record.values is None:
        return None
    return dict(zip(snapshot.settings.nodes, record.values, strict=True))


# -- what is kept from one computation to the next -------------------------------------------------


class FarValues:
    """Far values by trial, kept up to date: only results near the new ones are judged again."""

    def __init__(self) -> None:
        self._found: Far = {}
        self._seen = 0  # results
        self._revision = 0

    def of(self, ledger: Ledger) -> Far:
        if (ledger.revision, len(ledger.order)) == (self._revision, self._seen):
            return self._found
        # A value is judged by the results around it, so only the last window can change.
        all_again = ledger.revision != self._revision or self._seen <= 2 * WINDOW
        begin = 0 if all_again else self._seen - WINDOW
        numbers = ledger.order[begin:]
        found = {} if all_again else dict(self._found)
        for number in numbers:
            found.pop(number, None)
        for far in far_values(ledger, numbers):
            found.setdefault(far.trial, []).append(far)
        self._found, self._seen, self._revision = found, len(ledger.order), ledger.revision
        return found


class Layout:
    """Positions of the nodes; they move only for an edge that was not there before.

    A picture that jumps at every round cannot be read.
    """

    def __init__(self) -> None:
        self._union: BoolArray | None = None
        self.positions: FloatArray = np.zeros((0, 2))
        self.number = 0

    def place(self, union: BoolArray, roots: Sequence[int] = ()) -> None:
        """Positions (N, 2) for these edges (N, N); `number` changes if they move.

        `roots` have no causes, whatever is learned.
        """
        old = self._union
        if old is not None and old.shape == union.shape and not (union & ~old).any():
            return
        self._union = union.copy()
        self.positions = layered_layout(union, node_width=NODE_WIDTH, roots=roots)
        # A checksum, not a counter: after a restart the same edges give the same number.
        self.number = zlib.crc32(np.packbits(union).tobytes())

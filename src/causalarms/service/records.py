"""Requests of the API, and answers that only the service gives, as types: they check and document.

What a study shows elsewhere, too, is declared in `study/records.py`. `as_of` is the newest event
that an answer takes in; if it is below `learned_head` of the study, a newer answer is being
computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from causalarms.limits import MAX_PENDING_TRIALS
from causalarms.sem.factor import Level
from causalarms.service.tokens import Role
from causalarms.study.records import (
    Alarm,
    Before,
    Certainty,
    Check,
    Effect,
    Note,
    Number,
    Numbers,
    Prediction,
    State,
    SuspectValue,
)
from causalarms.study.records import Trial as SuggestedTrial

Values = dict[str, float | None]  # node -> what was measured
NodeKind = Literal["measured", "context", "factor"]  # factors that shift nodes are roots

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\S")]
Remark = Annotated[str, Meta(max_length=10_000)]
Token = Annotated[str, Meta(min_length=1, max_length=200)]


class Factor(Struct):
    """What a person sets; its first level is the natural one. A switch is off or on."""

    name: str
    levels: list[Level]
    acts_on: list[str]  # empty: to be learned
    is_switch: bool
    movable: bool  # whether this study ever moves it


class Caller(Struct):
    """Who asks, by token: read looks, worker asks and tells under its name, operator does all."""

    role: Role
    name: str  # of the token; "" without one
    token_needed: bool


class StudySummary(Struct):
    name: str  # of the file, without its ending
    nodes: list[str]
    reward: str
    direction: Literal["maximize", "minimize"]
    factors: list[Factor]
    context: list[str]  # nodes that no factor moves, and that only context causes
    policy: str
    watches: bool  # whether changes of mechanisms are looked for
    counts: dict[str, int]  # by state of the trial
    trials: int
    results: int
    head: int  # number of the newest event
    learned_head: int  # the newest event that changes what is believed
    as_of: int  # of the views (best, graph, alarms, rewards, checks)
    first_hash: str  # of event 1: another one is another study
    created: str
    now: str  # the server's clock, for ages
    caller: Caller
    far_values: list[SuspectValue]
    missing: str  # what was not measured, in words; "" if all was
    version: str


class BestLevels(Struct):
    levels: dict[str, Level]
    switch: list[str]  # factors that are not at their first level
    intervention: dict[str, int]  # node -> regime


class Best(Certainty, frozen=True, kw_only=True):
    as_of: int
    found: BestLevels | None = None  # none: too early, and `why` says so
    why: str = ""


class GraphNode(Struct):
    name: str
    kind: NodeKind
    x: float  # from 0 (causes, left) to 1
    y: float
    regimes: list[str]  # what each regime of this node is called
    known: list[bool]  # whether there is data, per regime


class Edge(Numbers, frozen=True):
    regime: int  # of the child: a panel of the picture
    when: str  # the levels of this regime, in words
    parent: str
    child: str
    probability: Number
    weight: Number
    standard_error: Number
    reward_effect: Number  # what it does to the reward over the range of the parent that was seen
    likely: bool  # whether it belongs to the graph that is shown by default


class Graph(Struct):
    """One panel per regime, the same positions in each."""

    as_of: int
    why: str  # why there is none yet, or ""
    weighs_graphs: bool  # whether probabilities include doubts about the graph
    regimes: list[str]  # names of the panels
    nodes: list[GraphNode]
    edges: list[Edge]
    order: list[str] | None  # of the likely edges, causes first
    layout: int  # another number: other positions


class Effects(Struct):
    as_of: int
    why: str  # why there are none yet, or ""
    effects: list[Effect]  # one per factor


class Alarms(Struct):
    as_of: int
    watches: bool
    alarms: list[Alarm]


class ExecutedTrial(Struct, kw_only=True):
    """What both the table of trials and the history of one trial show of it."""

    trial: int
    state: State
    worker: str
    levels: dict[str, Level]  # as executed
    switch: list[str]
    asked_levels: dict[str, Level] | None  # if executed otherwise than asked
    before: Before | None  # the trial it follows, if there is one
    values: Values | None
    predicted: float | None
    reason: str  # explore, exploit, or "" of rounds nobody asked for
    why: str  # why this one, in words
    remark: str  # said when it failed, was abandoned or corrected; the source of imported rounds
    corrected: bool
    asked_at: str
    done_at: str


class TrialRow(ExecutedTrial, kw_only=True):
    """One line of the table of trials."""

    notes: int
    far: list[str]  # nodes whose value lies far outside the others


class Trials(Struct):
    trials: list[TrialRow]
    next: int | None  # give it as `after` for the rest; none: that was all
    head: int


class Notes(Struct):
    notes: list[Note]
    next: int | None
    head: int


class Correction(Struct):
    """What a result was before it was corrected."""

    event: int
    at: str
    values: Values | None  # as they were before; none: a withdrawn result
    levels: dict[str, Level]
    reason: str  # why it was corrected


class Trial(ExecutedTrial, kw_only=True):
    intervention: dict[str, int]  # node -> regime
    predicted_width: float | None
    age_seconds: float | None  # of a pending trial
    corrections: list[Correction]
    notes: list[Note]
    far: list[SuspectValue]


class Event(Struct):
    """An event of the log, chained to the one before it by its hash."""

    hash: str
    number: int
    kind: str
    at: str
    data: dict[str, Any]


class Events(Struct):
    events: list[Event]
    next: int | None
    head: int
    head_hash: str  # of the newest event
    first_hash: str


class Bucket(Struct):
    """Results that follow each other, as told; `round` counts results from 1."""

    first_round: int
    last_round: int
    first_trial: int
    last_trial: int
    results: int
    mean: float | None
    low: float | None  # the smallest and the largest
    high: float | None
    predicted: float | None  # mean of what was predicted when these were asked


class MarkedAlarm(Struct):
    alarm: int
    round: int
    trial: int
    node: str
    acknowledged: bool


class Rewards(Struct):
    as_of: int
    reward: str
    buckets: list[Bucket]  # at most 500
    alarms: list[MarkedAlarm]
    best_mean: float | None
    best_low: float | None
    best_high: float | None


class Checks(Struct):
    """Does the model fit? And what is not learned from."""

    as_of: int
    why: str  # why there are none yet, or ""
    checks: list[Check]
    left_out: list[SuspectValue]
    problem: str  # why the policy could not learn from the last round, or ""


class PredictionRequest(Struct, forbid_unknown_fields=True):
    """Factors that are not named stay at their first level."""

    interventions: Annotated[list[dict[str, Level]], Meta(min_length=1, max_length=1000)]
    context: Mapping[str, float | None] | None = None


class Predictions(Struct):
    as_of: int
    predictions: list[Prediction]


class AskRequest(Struct, forbid_unknown_fields=True):
    worker: Name
    # the study refuses more than the maximum in words that name the worker
    n: Annotated[int, Meta(ge=1, extra_json_schema={"maximum": MAX_PENDING_TRIALS})] = 1
    context: Mapping[str, float | None] | None = None  # today's values of nodes that are context


class AskedTrial(SuggestedTrial, frozen=True):
    # Not in the library's record: the same log gives equal trials at any time.
    asked_at: str


class Asked(Struct):
    """The pending trials of the worker: those of before first, then new ones."""

    trials: list[AskedTrial]
    alarms: list[Alarm]  # that nobody has acknowledged
    head: int


class Result(Struct, forbid_unknown_fields=True):
    """`values` for told (null: not measured), `reason` for failed and abandoned."""

    state: Literal["told", "failed", "abandoned"]
    values: Values | None = None
    reason: Remark = ""
    executed: dict[str, Level] | None = None  # if set otherwise than asked


class Done(Struct):
    """What is now in the log; `warnings` are for the person who told it."""

    trial: int | None
    state: str
    head: int
    warnings: list[str]
    repeated: bool = False  # whether it had been told before, just so


class CorrectionRequest(Struct, forbid_unknown_fields=True):
    values: Values | None  # null: withdraw the result
    reason: Remark = ""
    executed: dict[str, Level] | None = None


class NoteRequest(Struct, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=10_000, pattern=r"\S")]
    trial: Annotated[int, Meta(ge=0)] | None = None


class PastRound(Struct, forbid_unknown_fields=True):
    values: Values
    levels: dict[str, Level] = field(default_factory=dict)


class RoundsRequest(Struct, forbid_unknown_fields=True):
    """Rounds that nobody asked for."""

    rounds: Annotated[list[PastRound], Meta(min_length=1, max_length=100_000)]
    source: Remark = ""


class AcknowledgementRequest(Struct, forbid_unknown_fields=True):
    note: Remark = ""


class SessionRequest(Struct, forbid_unknown_fields=True):
    token: Token


class Health(Struct):
    ok: bool
    head: int
    version: str


class Problem(Struct, omit_defaults=True):
    """RFC 9457; `detail` is the sentence that the library says, too."""

    type: str  # urn:causalarms:closed-trial, ...
    title: str
    status: int
    detail: str
    trial: int | None = None
    node: str | None = None
    state: str | None = None
    alarm: int | None = None

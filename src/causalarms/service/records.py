"""Every request and answer of the API, as types: they check, encode and document it.

Numbers that nobody can know (nan) are null. `as_of` is the newest event that an answer takes in;
if it is below `learned_head` of the study, a newer answer is being computed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from causalarms.limits import MAX_PENDING_TRIALS
from causalarms.service.tokens import Role

Level = str | int | float

State = Literal["asked", "told", "failed", "abandoned", "imported", "lost"]
Numbers = dict[str, float | None]

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\S")]
Remark = Annotated[str, Meta(max_length=10_000)]
Token = Annotated[str, Meta(min_length=1, max_length=200)]


class Factor(Struct):
    """What a person sets; its first level is the natural one. A switch is off or on."""

    name: str
    levels: list[Level]
    acts_on: list[str]
    is_switch: bool
    movable: bool  # whether this study ever moves it


class Caller(Struct):
    """Who asks, by token: read looks, worker asks and tells under its name, operator does all."""

    role: Role
    name: str  # of the token; "" without one
    token_needed: bool


class FarValue(Struct):
    """A value far outside all others of its node; perhaps a typing error."""

    trial: int
    node: str
    value: float
    low: float
    high: float


class StudySummary(Struct):
    name: str  # of the file, without its ending
    nodes: list[str]
    reward: str
    direction: Literal["maximize", "minimize"]
    factors: list[Factor]
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
    far_values: list[FarValue]
    missing: str  # what was not measured, in words; "" if all was
    version: str


class BestLevels(Struct):
    levels: dict[str, Level]
    switch: list[str]  # factors that are not at their first level
    intervention: dict[str, int]  # node -> regime


class Gain(Struct):
    """What one more factor adds to those before it, in the order that gains most first."""

    factor: str
    level: Level
    gain: float | None  # of the expected reward
    reward: float | None  # with this factor and those before it
    low: float | None
    high: float | None


class Best(Struct):
    as_of: int
    found: BestLevels | None = None  # none: too early, and `why` says so
    why: str = ""
    reward: float | None = None
    low: float | None = None  # 95 % interval of the expected reward
    high: float | None = None
    cost: float | None = None
    probability: float | None = None  # that no allowed intervention is better
    expected_loss: float | None = None  # per round, if one stopped now
    basis: str = ""
    natural: float | None = None  # expected reward with every factor at its first level
    natural_low: float | None = None
    natural_high: float | None = None
    gains: list[Gain] = field(default_factory=list)


class GraphNode(Struct):
    name: str
    x: float  # from 0 (causes, left) to 1
    y: float
    regimes: list[str]  # what each regime of this node is called
    known: list[bool]  # whether there is data, per regime


class Edge(Struct):
    regime: int  # of the child: a panel of the picture
    when: str  # the levels of this regime, in words
    parent: str
    child: str
    probability: float | None
    weight: float | None
    standard_error: float | None
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


class Alarm(Struct):
    alarm: int
    trial: int
    regime: str
    node: str
    changed_after: int | None
    statistic: float | None
    threshold: float | None
    acknowledged: bool
    note: str


class Alarms(Struct):
    as_of: int
    watches: bool
    alarms: list[Alarm]


class TrialRow(Struct):
    """One line of the table of trials."""

    trial: int
    state: State
    worker: str
    levels: dict[str, Level]  # as played
    switch: list[str]
    asked_levels: dict[str, Level] | None  # where played otherwise than asked
    values: Numbers | None
    predicted: float | None
    reason: str  # explore, exploit, or "" of rounds nobody asked for
    remark: str  # said when it failed, was abandoned or corrected; the source of imported rounds
    corrected: bool
    notes: int
    asked_at: str
    done_at: str
    far: list[str]  # nodes whose value lies far outside the others


class Trials(Struct):
    trials: list[TrialRow]
    next: int | None  # give it as `after` for the rest; none: that was all
    head: int


class Note(Struct):
    event: int
    at: str
    trial: int | None
    text: str


class Notes(Struct):
    notes: list[Note]
    next: int | None
    head: int


class Correction(Struct):
    """What a result was before it was corrected."""

    event: int
    at: str
    values: Numbers | None  # as they were before; none: a withdrawn result
    levels: dict[str, Level]
    reason: str  # why it was corrected


class Trial(Struct):
    trial: int
    state: State
    worker: str
    levels: dict[str, Level]
    switch: list[str]
    intervention: dict[str, int]  # node -> regime
    asked_levels: dict[str, Level] | None
    values: Numbers | None
    predicted: float | None
    predicted_width: float | None
    reason: str
    why: str  # why this one, in words
    remark: str
    asked_at: str
    done_at: str
    age_seconds: float | None  # of a pending trial
    corrected: bool
    corrections: list[Correction]
    notes: list[Note]
    far: list[FarValue]


class Interval(Struct):
    mean: float | None
    low: float | None
    high: float | None


class Samples(Struct):
    node: str
    regime: str
    rounds: int


class CarryingEdge(Struct):
    parent: str
    child: str
    regime: str
    weight: float | None
    carries: float | None  # of the expected reward


class DoubtfulMechanism(Struct):
    node: str
    regime: str
    share_of_uncertainty: float | None


class RunnerUp(Struct):
    switch: list[str]
    mean: float | None


class Uncertainty(Struct):
    before: float | None
    after: float | None


class Explanation(Struct, omit_defaults=True):
    trial: int
    state: State
    switch: list[str]
    played: list[str]
    levels: dict[str, Level]
    reason: str
    rounds_known: int
    values_missing: int
    predicted_by_policy: float | None
    bound_of_policy: float | None
    samples: list[Samples]
    text: str
    expected: Interval | None = None
    uncertainty: Uncertainty | None = None
    edges: list[CarryingEdge] = field(default_factory=list)
    mechanisms: list[DoubtfulMechanism] = field(default_factory=list)
    runner_up: RunnerUp | None = None


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


class Check(Struct):
    node: str
    regime: str
    rounds: int
    verdict: str  # in plain words
    doubtful: bool


class LeftOut(Struct):
    trial: int
    node: str
    value: float
    message: str


class Checks(Struct):
    """Does the model fit? And what is not learned from."""

    as_of: int
    why: str  # why there are none yet, or ""
    checks: list[Check]
    left_out: list[LeftOut]
    problem: str  # why the policy could not learn from the last round, or ""


class PredictionRequest(Struct, forbid_unknown_fields=True):
    """Factors that are not named stay at their first level."""

    interventions: Annotated[list[dict[str, Level]], Meta(min_length=1, max_length=1000)]


class Prediction(Struct):
    levels: dict[str, Level]
    intervention: dict[str, int]
    expected: dict[str, Interval]  # of every node


class Predictions(Struct):
    as_of: int
    predictions: list[Prediction]


class AskRequest(Struct, forbid_unknown_fields=True):
    worker: Name
    # the study refuses more than the maximum in words that name the worker
    n: Annotated[int, Meta(ge=1, extra_json_schema={"maximum": MAX_PENDING_TRIALS})] = 1


class AskedTrial(Struct):
    trial: int
    worker: str
    levels: dict[str, Level]
    switch: list[str]
    intervention: dict[str, int]
    reason: str
    why: str
    predicted: float | None
    asked_at: str


class Asked(Struct):
    """The pending trials of the worker: those of before first, then new ones."""

    trials: list[AskedTrial]
    head: int


class Result(Struct, forbid_unknown_fields=True):
    """`values` for told (null: not measured), `reason` for failed and abandoned."""

    state: Literal["told", "failed", "abandoned"]
    values: dict[str, float | None] | None = None
    reason: Remark = ""
    played: dict[str, Level] | None = None  # where set otherwise than asked


class Done(Struct):
    """What is now in the log; `warnings` are for the person who told it."""

    trial: int | None
    state: str
    head: int
    warnings: list[str]
    repeated: bool = False  # whether it had been told before, just so


class CorrectionRequest(Struct, forbid_unknown_fields=True):
    values: dict[str, float | None] | None  # null: withdraw the result
    reason: Remark = ""
    played: dict[str, Level] | None = None


class NoteRequest(Struct, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=10_000, pattern=r"\S")]
    trial: Annotated[int, Meta(ge=0)] | None = None


class Observation(Struct, forbid_unknown_fields=True):
    values: dict[str, float | None]
    levels: dict[str, Level] = field(default_factory=dict)


class ObservationsRequest(Struct, forbid_unknown_fields=True):
    """Rounds that nobody asked for."""

    observations: Annotated[list[Observation], Meta(min_length=1, max_length=100_000)]
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

"""The policy of a study: what it is after the log so far.

Only this module builds a policy. Reading, checking and copying a log needs none, so a study whose
policy is not installed is whole; it only cannot suggest or believe anything.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from causalarms.arrays import Interventions
from causalarms.errors import CausalArmsError, StudyError, shown
from causalarms.graphs.inputs import as_noise_mean
from causalarms.policies.base import EXPLOIT, EXPLORE, Policy, Reason, Suggestion
from causalarms.policies.registry import (
    PRESETS,
    accepted_settings,
    make_policy,
    policy_factory,
    policy_names,
)
from causalarms.policies.simple import nearest_allowed
from causalarms.posterior.roots import chances_of, factor_columns
from causalarms.rng import stream
from causalarms.sem.regimes import all_two
from causalarms.study.cache import CachedState, made_by
from causalarms.study.effects import least_certain_effect
from causalarms.study.ledger import Ledger, Record
from causalarms.study.settings import MASKS, Settings, refusals

KEEP_AFTER_SECONDS = 0.2  # of learning that reopening would have to repeat
KEEP_AFTER_ROUNDS = 500
DRAWS_OF_A_REASON = 100  # enough to rank spreads; below a millisecond
MAX_REMEMBERED = 100  # settings whose policy's traits are known

DEFAULT_POLICY = "posterior"
LARGEST_FLOAT = sys.float_info.max
NOTHING: Mapping[str, Any] = MappingProxyType({})
UNKNOWN_REVISION = -1  # of a policy that must learn the log again from its beginning


class MissingPolicyError(StudyError):
    """The policy of a study is not installed here."""


class Problem(NamedTuple):
    """A round the policy could not learn from, and why."""

    trial: int
    message: str


class StudyPolicy:
    """The policy of a study, brought up to the log when somebody needs to know what it believes.

    `problem`: why the round that was learned last could not be used, if it could not.
    """

    def __init__(self, settings: Settings, revision: int = 0) -> None:
        self.problem: Problem | None = None  # of the round learned last
        self._revision = revision
        self._followed = 0  # how many of the trials that ended are dealt with
        self._spent = 0.0  # seconds of learning since the state was kept
        self._unsaved = 0  # rounds since then
        self._start_over(settings, revision)

    def follow(self, ledger: Ledger, until: float = float("inf")) -> Policy:
        """The policy after all results of the ledger, or after those learned `until` then."""
        # A correction or other settings: what was learned before them does not hold any more.
        if ledger.revision != self._revision:
            self._start_over(ledger.settings, ledger.revision)
        began = time.perf_counter()
        for number in ledger.ended[self._followed :]:
            try:
                self._take(ledger.trials[number])
                self._followed += 1
            except BaseException:  # Ctrl+C too: the policy may hold half a round
                self._revision = UNKNOWN_REVISION
                raise
            if time.perf_counter() > until:
                break
        self._spent += time.perf_counter() - began
        return self.policy

    def behind(self, ledger: Ledger) -> int:
        """How many results and failures `follow` has to deal with."""
        followed = self._followed if ledger.revision == self._revision else 0
        return len(ledger.ended) - followed

    def after(self, ledger: Ledger, rounds: int) -> Policy:
        """The policy after the first so many rounds it learns from, and failures among them."""
        for number in ledger.ended:
            if not rounds:
                break
            # Rounds are counted as the policy counts them: without those it cannot learn from.
            rounds -= self._take(ledger.trials[number])
        return self.policy

    def _take(self, record: Record) -> bool:
        """A trial that ended; whether there was a result to learn from."""
        if record.failed:
            self.policy.fail(executed(record))
            return False
        learnable = record.learnable(self.policy.learns_from_gaps)
        if learnable:
            self._learn(record)
        return learnable

    def choose(
        self, trial: int, pending: Sequence[Interventions], context: Mapping[str, float] = NOTHING
    ) -> Suggestion:
        """What to play in a new trial; the same for every process that asks, however often."""
        # A stream per trial, not one that goes on: a replay may start at any event.
        rng = stream(self.settings.seed, "policy", trial)
        given: dict[str, Any] = {}
        if context:
            if not self.policy.uses_context:
                raise self._odd("cannot use values of the context; 'posterior' can")
            nodes = self.settings.nodes
            given["context"] = {nodes.index(name): x for name, x in context.items()}
        suggestion = self.policy.suggest(rng, pending=pending, **given)
        self._refuse_odd(suggestion)
        allowed = self.policy.constraints
        if allowed.risk is None or allowed.allows(suggestion.intervention[None])[0]:
            return suggestion
        # a plan of its own, or one made before: what mostly fails is not asked
        nearest = nearest_allowed(suggestion.intervention, allowed, rng)
        return Suggestion(nearest, EXPLORE, why=Reason("does not fail"))

    def _refuse_odd(self, given: Any) -> None:
        """Policies of other packages may err, and an invalid event must never reach the log."""
        if not isinstance(given, Suggestion):
            raise self._odd(f"must suggest a Suggestion, got {shown(given)}")
        row, named, allowed = given.intervention, self.settings.named, self.settings.constraints
        if not (
            isinstance(row, np.ndarray)
            and row.dtype.kind in "ui"  # True is not a regime
            and row.shape == (len(named.system_nodes),)
            and named.numbers_of(row.tolist()) is not None
            and (allowed.free or allowed.allows(row[None])[0])
        ):
            raise self._odd(f"suggests {shown(row)}, which is not an allowed regime of every node")
        if given.reason not in (EXPLORE, EXPLOIT):
            raise self._odd(f"must explore or exploit, not {shown(given.reason)}")
        for value in (given.mean, given.width):
            too_large = isinstance(value, int) and abs(value) > LARGEST_FLOAT
            if isinstance(value, bool) or not isinstance(value, Real) or too_large:
                raise self._odd(f"predicts {shown(value)}; nan says that nothing is known")
        if given.why is not None and not isinstance(given.why, Reason):
            raise self._odd(f"must give a Reason for why, got {shown(given.why)}")

    def _odd(self, what: str) -> StudyError:
        return StudyError(f"policy {shown(self.settings.policy)} {what}. Nothing was written")

    def propose(
        self,
        ledger: Ledger,
        workers: Sequence[str],
        until: float,
        contexts: Mapping[str, Mapping[str, float]] = NOTHING,
    ) -> list[dict[str, Any]]:
        """The data of new trials' events: at least one, and no further one after `until`.

        `contexts` say, by worker, which values are known before the trial, by node.
        """
        pending, chosen = self.pending(ledger), list[dict[str, Any]]()
        for number, worker in enumerate(workers, start=len(ledger.trials)):
            if chosen and time.perf_counter() > until:
                break
            context = contexts.get(worker, NOTHING)
            suggestion = self.choose(number, pending, context)
            # The next one takes it into account, as if another worker had asked before.
            pending.append(suggestion.intervention)
            data: dict[str, Any] = {
                "trial": number,
                "worker": worker,
                "intervention": suggestion.intervention.tolist(),
                "reason": suggestion.reason,
                "learned": self.policy.n_told,
            }
            if context:
                data["context"] = dict(context)
            if suggestion.why is not None:
                data["why"] = "; ".join(
                    [
                        suggestion.why.in_words(self.settings.named.moved_by),
                        *self._least_certain(suggestion.intervention),
                    ]
                )
            mean = self.settings.sign * float(suggestion.mean)
            for name, value in (("mean", mean), ("width", float(suggestion.width))):
                if isfinite(value):  # exploring policies predict nothing, and JSON has no nan
                    data[name] = value
            if self.problem is not None:
                data["problem"] = f"trial {self.problem.trial}: {self.problem.message}"
            chosen.append(data)
        return chosen

    def _least_certain(self, intervention: Interventions) -> list[str]:
        """What a suggestion says of factors that shift nodes; nothing before there is a belief."""
        named = self.settings.named
        belief = self.policy.belief(draws=DRAWS_OF_A_REASON) if named.shifting else None
        if belief is None:
            return []
        found = least_certain_effect(belief, named, intervention, self.settings.reward_index)
        return [f"least certain is {found}"] if found else []

    def pending(self, ledger: Ledger) -> list[Interventions]:
        """Interventions without a result, oldest first."""
        return [executed(ledger.trials[number]) for number in ledger.pending]

    @property
    def made_for(self) -> str:
        """What a cached state must have been made for to be used here."""
        return f"{self.settings.policy} {self.settings.digest} {made_by()}"

    @property
    def worth_keeping(self) -> bool:
        """Whether learning again would take long enough to keep the state."""
        return self._spent > KEEP_AFTER_SECONDS or self._unsaved >= KEEP_AFTER_ROUNDS

    def state(self, event: int, hash_: bytes) -> CachedState:
        """What the cache keeps: all that is known after this event, the last that was followed."""
        self._spent, self._unsaved = 0.0, 0
        problem = None if self.problem is None else list(self.problem)
        return CachedState(
            self.made_for, event, hash_.hex(), self._followed, problem, self.policy.state()
        )

    def resume(self, cached: CachedState) -> None:
        """Go on from a state that fits the log; learn the log again if the policy refuses it."""
        try:
            self.policy.restore(cached.state)
        except Exception:  # a policy of another package may have changed its state
            self._start_over(self.settings, self._revision)
            return
        self._followed = cached.followed
        self.problem = None if cached.problem is None else Problem(*cached.problem)

    def _start_over(self, settings: Settings, revision: int) -> None:
        self.settings = settings
        self.policy = policy_of(settings)
        self.problem = None
        self._revision = revision
        self._followed = 0

    def _learn(self, record: Record) -> None:
        values = np.array(record.values, dtype=float)
        # Policies maximise; what a study minimises is learned with its sign changed.
        values[self.settings.reward_index] *= self.settings.sign
        # What factors that shift nodes were set to stands behind what was measured.
        values = np.append(values, self.settings.named.values(record.intervention))
        self._unsaved += 1
        self.problem = None
        try:
            # Odd values may overflow; the policy answers with an error, not with a warning.
            with np.errstate(all="ignore"):
                self.policy.tell(executed(record), values, made=record.number)
        except (CausalArmsError, ArithmeticError, np.linalg.LinAlgError) as error:
            # The round is in the log and in the policy's data: it goes on without a new fit.
            self.problem = Problem(record.number, _by_name(str(error), self.settings))


def chosen_policy(name: Any, settings: Any, *, changes: bool) -> tuple[Any, Any]:
    """The policy of a new study, and its settings: the best there is unless another is named.

    If mechanisms may change (`changes`), the variant of the policy that watches for it is taken.
    The defaults of the policy are written down: the study stays what it is if they change.
    """
    if type(changes) is not bool:
        raise StudyError(f"changes is True or False, not {shown(changes)}")
    name = DEFAULT_POLICY if name is None else name
    known = isinstance(name, str) and name in PRESETS
    if known and changes:
        name = PRESETS[name].watching or name
    settings = {} if settings is None else settings
    if known and isinstance(settings, Mapping):
        settings = {**PRESETS[name].defaults, **settings}
    return name, settings


def can_shift(policy: Any, noise_mean: Any) -> bool:
    """Whether factors shift nodes unless something else is said: the policy must know what to do.

    Means of the noise are those of regimes, so that who tells them speaks of a mechanism per level.
    """
    if noise_mean is not None or not isinstance(policy, str):
        return False
    # an unknown policy is refused where settings are checked
    known = policy in PRESETS or policy in policy_names()
    return known and _accepts(policy, "columns")


def policy_of(settings: Settings) -> Policy:
    """A policy that knows nothing yet; StudyError if these settings cannot run."""
    name = settings.policy
    # Built-in names first: looking for those of other packages reads the metadata of all of them.
    if name not in PRESETS and name not in policy_names():
        raise MissingPolicyError(
            f"policy {shown(name)} of this study is not installed here. Install the package that "
            "has it, or go on with another: study.change_settings(policy='posterior', "
            "policy_settings={}). The log is whole: history, export, verify and backup work "
            "without it"
        )
    try:
        with refusals(settings.nodes):
            return _untaught(settings)
    except StudyError as error:
        raise StudyError(_by_name(str(error), settings)) from error


def _by_name(message: str, settings: Settings) -> str:
    """Policies number their nodes, also those of other packages; people know their names."""
    names = {f"'x{number}'": repr(node) for number, node in enumerate(settings.nodes)}
    return re.sub(r"'x\d+'", lambda found: names.get(found[0], found[0]), message)


def refuse_what_cannot_run(settings: Settings, *, changes: bool = False) -> StudyPolicy:
    """Build the learner of settings that are not yet in a log, or raise before anything is written.

    `changes`: the policy must watch for changes of mechanisms.
    """
    with refusals(settings.nodes):
        policy_factory(settings.policy)  # says which names are near
    learner = StudyPolicy(settings)
    if changes and not learner.policy.watches:
        raise StudyError(
            f"policy {shown(settings.policy)} cannot watch for changes; 'posterior-cd' does"
        )
    return learner


def learns_from_gaps(settings: Settings) -> bool:
    """Whether the policy learns from results with missing values; one that is missing does not."""
    return _traits_of(settings)[0]


def watches(settings: Settings) -> bool:
    """Whether the policy looks for changes of mechanisms; one that is missing does not."""
    return _traits_of(settings)[1]


def _traits_of(settings: Settings) -> tuple[bool, bool]:
    if settings.digest not in _traits:
        try:
            policy = policy_of(settings)
        except StudyError:
            return False, False
        if len(_traits) >= MAX_REMEMBERED:
            _traits.clear()
        _traits[settings.digest] = policy.learns_from_gaps, policy.watches
    return _traits[settings.digest]


_traits: dict[str, tuple[bool, bool]] = {}  # by digest: building a policy may take a second


def executed(record: Record) -> Interventions:
    return np.array(record.intervention, dtype=np.uint8)


def _untaught(settings: Settings) -> Policy:
    known = settings.known_edges
    if known and not _uses_knowledge(settings.policy):
        able = [name for name in policy_names() if _uses_knowledge(name)]
        what = "context" if settings.context else "knowledge of edges"
        raise StudyError(
            f"policy {shown(settings.policy)} cannot use {what}; {', '.join(able)} can"
        )
    named = settings.named
    regimes, columns = named.regimes, dict[str, Any]()
    if named.shifting:
        names = ", ".join(named.factors[at].name for at in named.shifting)
        if not _accepts(settings.policy, "columns"):
            raise StudyError(
                f"policy {shown(settings.policy)} cannot learn which nodes a factor acts on, and "
                f"nobody told it of {names}: say acts_on, or take policy='posterior'"
            )
        if settings.noise_mean is not None:
            raise StudyError(
                f"noise_mean and factors that shift nodes ({names}) do not go together: leave it "
                "out, it is learned"
            )
        may, must = settings.known_actions
        chances = np.where(must, 1.0, np.where(may, chances_of(named, settings.context), 0.0))
        columns = {"columns": factor_columns(named, chances, reward=settings.reward_index)}
    if settings.context and _accepts(settings.policy, "context"):
        columns["context"] = [settings.nodes.index(node) for node in settings.context]
    mean = as_noise_mean(settings.noise_mean, settings.nodes, int(regimes.max()))
    if mean is not None:
        mean[:, settings.reward_index] *= settings.sign
    policy = make_policy(
        settings.policy,
        n_nodes=len(named.system_nodes),
        reward=settings.reward_index,
        noise_mean=mean,
        horizon=settings.horizon,
        constraints=settings.constraints,
        **({} if all_two(regimes) else {"regimes": regimes}),
        **known,
        **columns,
        **settings.policy_settings,
    )
    if settings.failure_reward is not None:
        policy.failures.told = settings.sign * settings.failure_reward
    return policy


def _uses_knowledge(policy: str) -> bool:
    return _accepts(policy, *MASKS)


def _accepts(policy: str, *names: str) -> bool:
    return set(names) <= set(accepted_settings(policy_factory(policy)))

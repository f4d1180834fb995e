"""What every policy promises."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from causalarms.errors import CausalArmsError, DataError, SettingError
from causalarms.policies.base import EXPLOIT, EXPLORE, Policy, Reason, Suggestion
from causalarms.rng import stream
from causalarms.search.constraints import Constraints
from causalarms.sem.ensembles import random_sem
from causalarms.simulation.world import switching_world
from causalarms.testing.promises import (
    Round,
    assert_plain_copy,
    assert_same_state,
    copied,
    keep,
    stored,
    under_two_random_states,
)

N_ROUNDS = 300
CHANGE = 220  # of the world, so that detectors have something to find
FEW = 30  # rounds that are gone on with after a state was restored
NOISE_ONLY = 80  # times two rounds of nothing but noise
DRAWS = 5
FAILURES = 8  # and five times as many as there were rounds


@dataclass(frozen=True)
class PolicyCase:
    """A policy and what it was told."""

    make: Callable[[], Policy]
    history: Sequence[Round]

    def told(self, n_rounds: int) -> Policy:
        """A fresh policy that knows the first rounds."""
        policy = self.make()
        for a, x in self.history[:n_rounds]:
            policy.tell(a, x)
        return policy

    def moments(self, *fractions: float) -> list[int]:
        """Numbers of rounds, by their fraction of all."""
        return sorted({round(fraction * len(self.history)) for fraction in fractions})


def check_policy(
    factory: Callable[[], Policy],
    *,
    history: Sequence[Round] | None = None,
    n_rounds: int = N_ROUNDS,
) -> None:
    """AssertionError if a policy breaks a promise that every policy gives.

    factory    makes a fresh policy, always with the same settings
    history    rounds (intervention, values) to learn from; by default `n_rounds` of its own choice
               in a random linear system that changes after 220 of them
    n_rounds   how many it plays without a `history`
    """
    name = type(factory()).__name__
    played: list[Round] = list(history or ())

    def play(make: Callable[[], Policy]) -> None:
        played.extend(own_history(make, n_rounds))

    if history is None:
        keep({"it can be asked and told, round after round": play}, factory, name)
    keep(POLICY_PROMISES, PolicyCase(factory, played), name)


def own_history(factory: Callable[[], Policy], n_rounds: int) -> list[Round]:
    """What a policy plays and sees, every seventh round being somebody else's choice."""
    policy, noise = factory(), stream(1, "noise")
    sem = random_sem(policy.n_nodes, seed=5, regimes=policy.regimes)
    world = switching_world(sem, [CHANGE], np.random.default_rng(1))
    rounds = []
    for t in range(n_rounds):
        rng = stream(1, "policy", t)
        # Results of others come in between: a policy must learn from what it did not ask.
        mine = t % 7 != 3
        a = policy.ask(rng) if mine else rng.integers(0, policy.regimes).astype(np.uint8)
        x = world.play(t + 1, a, noise)
        policy.tell(a, x)
        rounds.append((a, x))
    return rounds


def same_suggestion(one: Suggestion, other: Suggestion) -> None:
    """All of it is equal; nan is equal to itself."""
    np.testing.assert_array_equal(one.intervention, other.intervention)
    assert one.reason == other.reason, f"{one.reason!r} is not {other.reason!r}"
    np.testing.assert_array_equal((one.mean, one.width), (other.mean, other.width))
    assert one.why == other.why, f"{one.why} is not {other.why}"


def _rng(key: int = 0) -> np.random.Generator:
    return np.random.default_rng([99, key])


def _asking_changes_nothing(case: PolicyCase) -> None:
    policy = case.make()
    moments = case.moments(0, 1 / 300, 62 / 300, 130 / 300, 215 / 300)
    for t, (a, x) in enumerate(case.history):
        if t in moments:
            before = copied(policy.state())
            first, second = policy.suggest(_rng(t)), policy.suggest(_rng(t))
            # Other numbers in between: what they draw must leave no trace either.
            policy.suggest(_rng(t + 1))
            same_suggestion(first, second)
            np.testing.assert_array_equal(policy.ask(_rng(t)), first.intervention)
            with suppress(CausalArmsError):  # of a graph with a cycle nothing is believed
                policy.belief(draws=DRAWS)
            assert_same_state(policy.state(), before)
        policy.tell(a, x)


def _asking_with_pending_changes_nothing(case: PolicyCase) -> None:
    for n_rounds in case.moments(0, 0.4, 1):
        policy = case.told(n_rounds)
        before = copied(policy.state())
        pending = [a for a, _ in case.history[:2]]
        first, second = (policy.suggest(_rng(), pending=pending) for _ in range(2))
        same_suggestion(first, second)
        _in_range(policy, first)
        for suggestion in policy.suggest_batch(_rng(), 2):
            _in_range(policy, suggestion)
        assert_same_state(policy.state(), before)


def some_constraints(policy: Policy) -> Constraints:
    """At most two nodes leave regime 0, the first two not together, and one of them costs."""
    costs = [[0.0, *[0.5 * (node == 0)] * (count - 1)] for node, count in enumerate(policy.regimes)]
    switches = [node for node, count in enumerate(policy.regimes.tolist()) if count > 1][:2]
    together = [dict.fromkeys(switches, 1)] if len(switches) == 2 else []
    return Constraints(policy.regimes, forbidden=together, at_most=2, cost=costs)


def _keeps_constraints(case: PolicyCase) -> None:
    for n_rounds in case.moments(0, 5 / 300, 62 / 300, 130 / 300, 225 / 300, 1):
        policy = case.told(n_rounds)
        allowed, before = some_constraints(policy), copied(policy.state())
        if not policy.keeps_constraints:
            try:
                policy.constrain(allowed)
            except SettingError:
                continue
            raise AssertionError("keeps_constraints is False, but constraints are not refused")
        batch = policy.constrain(allowed).suggest_batch(_rng(), 3)
        for key in range(4):
            batch.append(policy.suggest(_rng(key)))
        for suggestion in batch:
            _in_range(policy, suggestion)
            assert allowed.allows(suggestion.intervention[None])[0], (
                f"after {n_rounds} rounds it suggests {suggestion.intervention.tolist()}"
            )
        # Constraints are given, not learned: asking under them changes no state.
        same_suggestion(batch[-1], policy.suggest(_rng(3)))
        assert_same_state(policy.state(), before)


def _does_not_ask_what_mostly_fails(case: PolicyCase) -> None:
    for n_rounds in case.moments(0, 5 / 300, 62 / 300, 1):
        policy, numbers = case.told(n_rounds), _rng()
        node = int(np.flatnonzero(policy.regimes > 1)[0])
        for _ in range(5 * n_rounds + FAILURES):
            tried = numbers.integers(0, policy.regimes)
            tried[node] = 1
            policy.fail(tried)
            assert policy.n_told == n_rounds, "a round that failed was counted as one that was told"
        for a, x in case.history[:FAILURES]:  # without it, rounds give results
            policy.tell([0 if i == node else regime for i, regime in enumerate(a)], x)
        new = case.make()
        new.restore(stored(policy.state()))
        for key in range(4):
            found = policy.suggest(_rng(key))
            _in_range(policy, found)
            same_suggestion(new.suggest(_rng(key)), found)
            # a plan of its own is changed where it is asked for (`study/learner.py`)
            assert found.intervention[node] != 1 or not policy.keeps_constraints, (
                f"after {n_rounds} rounds it suggests {found.intervention.tolist()}, and every "
                f"round with node {node} in regime 1 has failed"
            )


def _in_range(policy: Policy, suggestion: Suggestion) -> None:
    a = suggestion.intervention
    assert a.shape == (policy.n_nodes,), f"an intervention has shape {a.shape}"
    assert a.dtype == np.uint8, f"an intervention holds {a.dtype}, not uint8"
    assert (a < policy.regimes).all(), f"{a.tolist()} are not regimes of nodes that have so many"


def _suggestions_say_what_why_and_what_to_expect(case: PolicyCase) -> None:
    for n_rounds in case.moments(0, 1 / 300, 62 / 300, 130 / 300, 215 / 300, 1):
        policy = case.told(n_rounds)
        suggestion = policy.suggest(_rng())
        _in_range(policy, suggestion)
        assert suggestion.reason in (EXPLORE, EXPLOIT), f"the reason is {suggestion.reason!r}"
        assert isinstance(suggestion.mean, float), "the mean is not a float"
        assert isinstance(suggestion.width, float), "the width is not a float"
        assert isinstance(suggestion.why, Reason | None), "why is neither a Reason nor None"
        if suggestion.reason == EXPLOIT:
            assert np.isfinite(suggestion.mean), "exploits without a mean that it expects"
        if np.isfinite(suggestion.width):
            assert suggestion.width >= 0, f"the width is {suggestion.width}"


def bad_rounds(policy: Policy) -> list[tuple[object, object, str]]:
    """Interventions and values that cannot be learned from, and what the refusal says."""
    n, last = policy.n_nodes, policy.n_nodes - 1
    natural, fine = [0] * n, [1.0] * n
    beyond = int(policy.regimes[last])
    missing: list[tuple[object, object, str]] = [
        (natural, [*fine[:last], np.nan], f"node {last} is nan")
    ]
    return ([] if policy.learns_from_gaps else missing) + [
        (natural, [*fine[:last], -np.inf], f"node {last} is -inf"),
        (natural, [*fine, 1.0], rf"observation has shape \({n},\), not \({n + 1},\)"),
        (natural, [fine], "observation has shape"),
        (natural, "x", "observation is a number per node"),
        ([*natural[:last], beyond], fine, f"node 'x{last}': regime {beyond}"),
        ([*natural, 0], fine, rf"interventions must have shape \(n, {n}\)"),
        (["0"] * n, fine, "must be numbers,? 0"),
    ]


def _bad_rounds_leave_no_trace(case: PolicyCase) -> None:
    policy = case.told(5)
    before = copied(policy.state())
    for intervention, values, message in bad_rounds(policy):
        what = f"intervention {intervention} with values {values}"
        refusal = ""
        try:
            policy.tell(intervention, values)  # type: ignore[arg-type]
        except DataError as error:
            refusal = str(error)
        assert refusal, f"{what} is not refused by a DataError"
        assert re.search(message, refusal), f"{what} is refused by {refusal!r}"
        assert_same_state(policy.state(), before)


def _learns_from_what_it_did_not_ask(case: PolicyCase) -> None:
    policy, numbers = case.make(), _rng()
    n = policy.n_nodes
    for t in range(NOISE_ONLY):
        policy.tell(numbers.integers(0, policy.regimes), numbers.normal(size=n))
        # As bools: a table of switches holds them, and they are regimes, too.
        every = np.minimum(np.full(n, t % 2), policy.regimes - 1).astype(bool)
        policy.tell(every, numbers.normal(size=n))
    assert policy.n_told == 2 * NOISE_ONLY, f"{policy.n_told} of {2 * NOISE_ONLY} were learned from"
    _in_range(policy, policy.suggest(_rng()))


def _copies_what_it_is_told(case: PolicyCase) -> None:
    mine, other = case.make(), case.make()
    for a, x in case.history[:90]:
        given_a, given_x = a.copy(), x.copy()
        mine.tell(given_a, given_x)
        np.testing.assert_array_equal(given_x, x)
        np.testing.assert_array_equal(given_a, a)
        # A caller may use its arrays again: a policy that kept them would now learn this.
        given_a[:], given_x[:] = 0, 1e9
        other.tell(a, x)
    assert_same_state(mine.state(), other.state())


def _replay_equals_live(case: PolicyCase) -> None:
    for n_rounds in case.moments(40 / 300, 0.5, 1):
        one, other = case.told(n_rounds), case.told(n_rounds)
        assert_same_state(one.state(), other.state())
        same_suggestion(one.suggest(_rng()), other.suggest(_rng()))


def _restored_goes_on(case: PolicyCase) -> None:
    for n_rounds in case.moments(0, 25 / 300, 100 / 300, 230 / 300, 260 / 300):
        old, new = case.told(n_rounds), case.make()
        new.restore(stored(old.state()))
        _continue_together(case, old, new, n_rounds)


def _restoring_replaces_all(case: PolicyCase) -> None:
    (n_rounds,) = case.moments(60 / 300)
    # The new one knows more than the old: whatever it keeps of that shows.
    old, new = case.told(n_rounds), case.told(len(case.history))
    new.restore(stored(old.state()))
    _continue_together(case, old, new, n_rounds)


def _continue_together(case: PolicyCase, old: Policy, new: Policy, n_rounds: int) -> None:
    assert_same_state(new.state(), old.state())
    for t, (a, x) in enumerate(case.history[n_rounds : n_rounds + FEW]):
        same_suggestion(new.suggest(_rng(t)), old.suggest(_rng(t)))
        old.tell(a, x)
        new.tell(a, x)
    assert_same_state(new.state(), old.state())
    assert new.alarms == old.alarms, f"alarms {new.alarms} are not {old.alarms}"
    np.testing.assert_array_equal(new.adjacency, old.adjacency)


def _states_are_plain_copies(case: PolicyCase) -> None:
    (n_rounds,) = case.moments(250 / 300)
    policy = case.told(n_rounds)
    assert_plain_copy(
        policy.state, (partial(policy.tell, a, x) for a, x in case.history[n_rounds:])
    )


def _draws_from_rng_only(case: PolicyCase) -> None:
    def asked() -> list[list[int]]:
        policy, choices = case.make(), []
        for t, (a, x) in enumerate(case.history[:130]):
            choices.append(policy.ask(_rng(t)).tolist())
            policy.tell(a, x)
        return choices

    one, other = under_two_random_states(asked)
    assert one == other, "suggestions depend on the global random state"


POLICY_PROMISES: dict[str, Callable[[PolicyCase], None]] = {
    "asking twice gives the same and changes nothing": _asking_changes_nothing,
    "a suggestion keeps to the regimes, says why and what to expect": (
        _suggestions_say_what_why_and_what_to_expect
    ),
    "asking while interventions are pending changes nothing": _asking_with_pending_changes_nothing,
    "what is not allowed is never suggested": _keeps_constraints,
    "what mostly fails is not suggested": _does_not_ask_what_mostly_fails,
    "what cannot be learned from is refused and leaves no trace": _bad_rounds_leave_no_trace,
    "interventions nobody asked for are welcome": _learns_from_what_it_did_not_ask,
    "what was told stays the caller's": _copies_what_it_is_told,
    "replaying a history gives the same state and the same next ask": _replay_equals_live,
    "a restored policy goes on as the old one": _restored_goes_on,
    "restoring replaces all that was known": _restoring_replaces_all,
    "a state is plain arrays and scalars and a copy": _states_are_plain_copies,
    "draws come from the rng that is given and from nowhere else": _draws_from_rng_only,
}

"""The policy of a study: always the replay of its log, sometimes helped by a snapshot."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from causalarms.errors import CausalArmsError
from causalarms.policies.base import Policy
from causalarms.rng import stream
from causalarms.study.limits import Bits, Choice, Limits
from causalarms.study.settings import Settings
from causalarms.study.state_codec import pack, unpack
from causalarms.study.store import Snapshot
from causalarms.study.trials import Ledger, Record

SNAPSHOT_AFTER_SECONDS = 0.2  # of learning that reopening would have to repeat
SNAPSHOT_AFTER_ROUNDS = 500
OWN = "study."  # prefix of what a snapshot holds besides the policy's state


class Problem(NamedTuple):
    """A round the policy could not learn from, and why."""

    trial: int
    message: str


class Learner:
    """Feeds told rounds to the policy when somebody needs to know what it thinks."""

    def __init__(self, settings: Settings) -> None:
        self.problem: Problem | None = None  # of the round learned last
        self._spent = 0.0  # seconds of learning since the last snapshot
        self._unsaved = 0  # rounds since the last snapshot
        self._followed = 0  # how many of the ledger's results are dealt with
        self._start_over(settings, 0)

    def follow(self, ledger: Ledger) -> Policy:
        """The policy after all results of the ledger."""
        assert ledger.settings is not None
        if ledger.revision != self._revision:
            self._start_over(ledger.settings, ledger.revision)
        if len(ledger.order) == self._followed:
            return self.policy
        began = time.perf_counter()
        for number in ledger.order[self._followed :]:
            record = ledger.trials[number]
            if self.limits.learnable(record):
                self._learn(record)
        self._followed = len(ledger.order)
        self._spent += time.perf_counter() - began
        return self.policy

    def choose(self, trial: int, pending: Sequence[Bits]) -> Choice:
        """What to play in a new trial; the same whoever asks and however often."""
        rng = stream(self.settings.seed, "policy", trial)
        return self.limits.choose(self.policy, rng, pending)

    def pending(self, ledger: Ledger) -> list[Bits]:
        """Interventions without a result, as the policy will be told them, oldest first."""
        return [self.limits.as_told(ledger.trials[number]) for number in ledger.pending]

    @property
    def wants_snapshot(self) -> bool:
        return self._spent > SNAPSHOT_AFTER_SECONDS or self._unsaved >= SNAPSHOT_AFTER_ROUNDS

    def snapshot(self, number: int, hash_: bytes) -> Snapshot | None:
        """The state after event `number`; None where the policy's cannot be kept."""
        own = {
            "version": version("causalarms"),
            "revision": self._revision,
            "followed": self._followed,
            "problem": list(self.problem) if self.problem else None,
        }
        self._spent, self._unsaved = 0.0, 0
        try:
            state = pack(self.policy.state() | {OWN + name: v for name, v in own.items()})
        except (CausalArmsError, TypeError, ValueError):
            return None
        return Snapshot(number, hash_, state, _digest(state, hash_))

    def restore(self, snapshot: Snapshot, ledger: Ledger, hash_: bytes | None) -> bool:
        """Start from a snapshot if it fits the log, whose event at its number has this hash."""
        if hash_ != snapshot.hash or _digest(snapshot.state, snapshot.hash) != snapshot.digest:
            return False
        assert ledger.settings is not None
        try:
            state = unpack(snapshot.state)
            own = {n.removeprefix(OWN): state.pop(n) for n in list(state) if n.startswith(OWN)}
            if own["version"] != version("causalarms") or own["revision"] != ledger.revision:
                return False
            self._start_over(ledger.settings, ledger.revision)
            self.policy.restore(state)
            self._followed = int(own["followed"])
            self.problem = Problem(*own["problem"]) if own["problem"] else None
        except (CausalArmsError, LookupError, TypeError, ValueError, AttributeError):
            self._start_over(ledger.settings, ledger.revision)
            return False
        return True

    def _start_over(self, settings: Settings, revision: int) -> None:
        self.settings = settings
        self.limits = Limits(settings)
        self.policy = settings.make_policy()
        self.problem = None
        self._revision = revision
        self._followed = 0

    def _learn(self, record: Record) -> None:
        told = self.limits.as_told(record)
        values = np.array(record.values, dtype=float)
        values[self.settings.reward_index] *= self.settings.sign
        self._unsaved += 1
        self.problem = None
        try:
            with np.errstate(all="ignore"):
                self.policy.tell(told, values)
        except (CausalArmsError, ArithmeticError, np.linalg.LinAlgError) as error:
            # the round is in the log and in the policy's data; the policy goes on without a new fit
            self.problem = Problem(record.number, self._by_name(str(error)))

    def _by_name(self, message: str) -> str:
        """Policies number their nodes; people know their names."""
        nodes = self.settings.nodes
        return re.sub(r"'x(\d+)'", lambda found: repr(nodes[int(found[1])]), message)


def _digest(state: bytes, hash_: bytes) -> bytes:
    return hashlib.sha256(hash_ + state).digest()

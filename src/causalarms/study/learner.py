"""The policy of a study: always the replay of its log, sometimes helped by a snapshot."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from causalarms.errors import CausalArmsError, DataError
from causalarms.policies.base import Policy, Suggestion
from causalarms.rng import stream
from causalarms.study.limits import Bits, Limits
from causalarms.study.settings import Settings
from causalarms.study.state_codec import pack, unpack
from causalarms.study.store import Snapshot
from causalarms.study.trials import Ledger, Record

SNAPSHOT_AFTER_SECONDS = 0.2  # of learning that reopening would have to repeat
SNAPSHOT_AFTER_ROUNDS = 500
OWN = "study."  # prefix of what a snapshot holds besides the policy's state
OWN_NAMES = ("version", "revision", "followed", "problem")
MESSAGE_LENGTH = 300  # compiled code may answer with pages


class Problem(NamedTuple):
    """A round the policy could not learn from, and why."""

    trial: int
    message: str


class Learner:
    """Feeds told rounds to the policy when somebody needs to know what it thinks."""

    def __init__(self, settings: Settings) -> None:
        self.problem: Problem | None = None  # of the round learned last
        self.snapshot_ignored: str | None = None  # what is wrong with the one that was found
        self.snapshot_outdated: str | None = None  # why one that was right is of no use now
        self._spent = 0.0  # seconds of learning since the last snapshot
        self._unsaved = 0  # rounds since the last snapshot
        self._followed = 0  # how many of the ledger's results are dealt with
        self._start_over(settings, 0)

    def follow(self, ledger: Ledger, until: float = float("inf")) -> Policy:
        """The policy after all results of the ledger, or after those learned `until` then."""
        assert ledger.settings is not None
        if ledger.revision != self._revision:
            self._start_over(ledger.settings, ledger.revision)
        if len(ledger.order) == self._followed:
            return self.policy
        try:
            self._catch_up(ledger, until)
        except Exception as error:
            if not self._restored:
                raise
            self._ignore_snapshot(error, ledger)  # a state no rounds can follow
            self._catch_up(ledger, until)
        return self.policy

    def behind(self, ledger: Ledger) -> int:
        """How many results `follow` has to deal with."""
        followed = self._followed if ledger.revision == self._revision else 0
        return len(ledger.order) - followed

    def _catch_up(self, ledger: Ledger, until: float) -> None:
        began = time.perf_counter()
        for number in ledger.order[self._followed :]:
            record = ledger.trials[number]
            if self.limits.learnable(record):
                self._learn(record)
            self._followed += 1
            if time.perf_counter() > until:
                break
        self._spent += time.perf_counter() - began

    def after(self, ledger: Ledger, rounds: int) -> Policy:
        """The policy after the first so many rounds it learns from."""
        records = [ledger.trials[number] for number in ledger.order]
        for record in [r for r in records if self.limits.learnable(r)][:rounds]:
            self._learn(record)
        return self.policy

    def choose(self, trial: int, pending: Sequence[Bits]) -> Suggestion:
        """What to play in a new trial; the same whoever asks and however often."""
        rng = stream(self.settings.seed, "policy", trial)
        return self.limits.choose(self.policy, rng, pending)

    def pending(self, ledger: Ledger) -> list[Bits]:
        """Interventions without a result, oldest first."""
        return [played(ledger.trials[number]) for number in ledger.pending]

    @property
    def wants_snapshot(self) -> bool:
        return self._spent > SNAPSHOT_AFTER_SECONDS or self._unsaved >= SNAPSHOT_AFTER_ROUNDS

    def snapshot(self, number: int, hash_: bytes) -> Snapshot | None:
        """The state after event `number`; None where the policy's cannot be kept."""
        self._spent, self._unsaved = 0.0, 0
        try:
            state = pack(self.state())
        except (CausalArmsError, TypeError, ValueError):
            return None
        return Snapshot(number, hash_, state, _digest(state, hash_))

    def state(self) -> dict[str, Any]:
        """All that a snapshot holds."""
        own = {
            "version": made_by(),
            "revision": self._revision,
            "followed": self._followed,
            "problem": list(self.problem) if self.problem else None,
        }
        return self.policy.state() | {OWN + name: value for name, value in own.items()}

    def restore(self, snapshot: Snapshot, ledger: Ledger, hash_: bytes | None) -> bool:
        """Start from a snapshot if it fits the log, whose event at its number has this hash.

        Otherwise say why not, and learn the log from its beginning.
        """
        assert ledger.settings is not None
        self._start_over(ledger.settings, ledger.revision)
        try:
            if hash_ != snapshot.hash:
                raise DataError(f"event {snapshot.number} of the log is not the one it was made at")
            if _digest(snapshot.state, snapshot.hash) != snapshot.digest:
                raise DataError("its content does not fit its digest")
            state = unpack(snapshot.state)
            own = {name: state.pop(OWN + name) for name in OWN_NAMES}
            self.snapshot_outdated = _outdated(own, ledger)
            if self.snapshot_outdated is None:
                self._take(state, own, ledger)
        except Exception as error:  # whatever compiled code may say to what is in it
            self._ignore_snapshot(error, ledger)
        return self._restored

    def _ignore_snapshot(self, error: Exception, ledger: Ledger) -> None:
        assert ledger.settings is not None
        self._start_over(ledger.settings, ledger.revision)
        kind = "" if isinstance(error, DataError) else f"{type(error).__name__}: "
        self.snapshot_ignored = f"{kind}{error}"[:MESSAGE_LENGTH]

    def _take(self, state: dict[str, Any], own: dict[str, Any], ledger: Ledger) -> None:
        """Become what a snapshot holds; any exception where it cannot be."""
        followed = own["followed"]
        if type(followed) is not int or not 0 <= followed <= len(ledger.order):
            raise DataError(f"the log has no {followed!r:.40} results")
        learned = [n for n in ledger.order[:followed] if self.limits.learnable(ledger.trials[n])]
        self.problem = _problem(own["problem"], learned[-1] if learned else None)
        with np.errstate(all="ignore"):
            self.policy.restore(state)
            self.policy.suggest(stream(self.settings.seed, "probe"))  # what is computed when asked
        self._followed, self._restored = followed, True

    def _start_over(self, settings: Settings, revision: int) -> None:
        self.settings = settings
        self.limits = Limits(settings)
        self.policy = settings.make_policy()
        self.problem = None
        self._revision = revision
        self._followed = 0
        self._restored = False  # from a snapshot

    def _learn(self, record: Record) -> None:
        values = np.array(record.values, dtype=float)
        values[self.settings.reward_index] *= self.settings.sign
        self._unsaved += 1
        self.problem = None
        try:
            with np.errstate(all="ignore"):
                self.policy.tell(played(record), values, made=record.number)
        except (CausalArmsError, ArithmeticError, np.linalg.LinAlgError) as error:
            # the round is in the log and in the policy's data; the policy goes on without a new fit
            self.problem = Problem(record.number, self.by_name(str(error)))

    def by_name(self, message: str) -> str:
        """Policies number their nodes; people know their names."""
        nodes = self.settings.nodes
        return re.sub(r"'x(\d+)'", lambda found: repr(nodes[int(found[1])]), message)


def played(record: Record) -> Bits:
    return np.array(record.intervention, dtype=np.uint8)


@cache
def made_by() -> str:
    """Whose numbers a state holds: others may round the last digit otherwise."""
    packages = " ".join(f"{name} {version(name)}" for name in ("causalarms", "numpy", "numba"))
    return f"{packages} {import_module('llvmlite.binding').get_host_cpu_name()}"


def _outdated(own: dict[str, Any], ledger: Ledger) -> str | None:
    if own["version"] != made_by():
        return f"it was made by {own['version']!r:.80}, this is {made_by()!r}"
    if own["revision"] != ledger.revision:
        return "a result or a setting was changed since"
    return None


def _problem(given: Any, trial: int | None) -> Problem | None:
    if given is None:
        return None
    number, message = given
    if number != trial or type(number) is not int or not isinstance(message, str):
        raise DataError(f"trial {number!r:.40} was not the one learned last")
    return Problem(number, message)


def _digest(state: bytes, hash_: bytes) -> bytes:
    return hashlib.sha256(hash_ + state).digest()

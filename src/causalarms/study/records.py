"""What a study shows, as records: the library returns them, `--json` and the service encode them.

They are declared here and nowhere else, so that a number has one name behind every door. What
nobody can know is nan in Python and null in JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, field

from causalarms.sem.factor import Level

# The schema of the API says more than type checkers need: that nan is null, and which states exist.
if TYPE_CHECKING:
    Number = float
    State = str
else:
    Number = float | None
    State = Literal["asked", "told", "failed", "abandoned", "imported", "withdrawn", "lost"]


class StudyRecord(Struct, frozen=True):
    def as_dict(self) -> dict[str, Any]:
        """Plain values by the names they have in JSON."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class Numbers(StudyRecord, frozen=True):
    """A record none of whose fields is ever None in Python: null in JSON was nan.

    Every nan is the one object `math.nan`: two records that know equally much are equal.
    """

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            # nan equals no nan, but fields that are the same object count as equal
            if value is None or (isinstance(value, float) and math.isnan(value)):
                msgspec.structs.force_setattr(self, name, math.nan)


class Before(StudyRecord, frozen=True):
    """The trial that was carried out before another one, and the levels it was executed at."""

    number: int  # not `trial`: programs find the number of a trial by that name
    worker: str
    levels: dict[str, Level]


def in_words(
    levels: Mapping[str, Level], before: Before | None = None, follows: tuple[int, str] = (0, "")
) -> str:
    """The level of every factor, those first that change from the trial `before`.

    `follows` is the number and the worker of the trial itself: who else's trial it is compared
    with, and whether there were others since, must be seen.

    >>> before = Before(11, "rig 1", {"oven": 180, "pump": "on", "catalyst": "A"})
    >>> in_words({"oven": 180, "pump": "off", "catalyst": "C"}, before, (12, "rig 1"))
    'pump on -> off, catalyst A -> C; as in trial 11: oven 180'
    >>> in_words({"oven": 180, "pump": "off"})
    'oven 180, pump off'
    """
    if before is None:
        return ", ".join(f"{name} {level}" for name, level in levels.items())
    was = before.levels
    changed = [f"{n} {was[n]} -> {level}" for n, level in levels.items() if was[n] != level]
    same = [f"{name} {level}" for name, level in levels.items() if was[name] == level]
    of = "" if follows == (before.number + 1, before.worker) else f" of {before.worker}"
    kept = f"as in trial {before.number}{of}: {', '.join(same)}"
    return "; ".join([", ".join(changed)] * bool(changed) + [kept] * bool(same))


class Trial(StudyRecord, frozen=True):
    """An intervention to carry out; tell what was measured under its `number`."""

    number: int = field(name="trial")
    intervention: dict[str, int]  # node -> regime, 0 natural
    worker: str
    reason: str  # "explore" or "exploit"
    predicted: float | None  # reward, if the policy predicts one
    levels: dict[str, Level]  # factor -> level
    switch: list[str]  # factors that are not at their first level
    why: str  # why this one, in words
    before: Before | None  # the trial it follows, if there is one

    def __int__(self) -> int:
        return self.number

    @property
    def words(self) -> str:
        """The level of every factor, those first that change from the trial before."""
        return in_words(self.levels, self.before, (self.number, self.worker))


class Interval(Numbers, frozen=True):
    mean: Number
    low: Number  # 95 %
    high: Number


class Effect(StudyRecord, frozen=True):
    """What a factor does, compared with its first level."""

    factor: str
    acts_on: dict[str, float]  # node -> probability that the factor acts on it itself
    # node -> probability that its levels also change how the node answers its causes; empty if that
    # is not learned
    free: dict[str, float]
    reward: dict[str, Interval]  # level -> what it adds to the reward, all in all
    direct: dict[str, Interval]  # level -> the part that no measured node carries


class Remark(StudyRecord, frozen=True):
    """Something that the results say against what the study was told, or that it was not told."""

    node: str
    factor: str  # that also seems to act on the node; "" of a node that may be context
    probability: float
    text: str


class Prediction(StudyRecord, frozen=True):
    levels: dict[str, Level]
    intervention: dict[str, int]
    expected: dict[str, Interval]  # of every node
    failing: float | None = None  # probability that a trial fails; None: nothing has failed yet


class TakenBack(Numbers, frozen=True):
    """What is lost per round, net of costs, if one factor of the best returns to its first level.

    All others stay as they are in the best intervention.
    """

    factor: str
    level: Level  # in the best intervention
    first: Level
    lost: Number  # of the reward; below 0 it would be gained
    low: Number  # 95 %
    high: Number
    allowed: bool  # whether the constraints allow what is left


class Rival(Numbers, frozen=True):
    """A setting that may be better than the best."""

    levels: dict[str, Level]
    reward: Number  # expected, before costs
    better: Number  # probability that it is better than the best, net of costs
    tried: int  # rounds so far
    equal: bool = False  # the results cannot tell it from the best


class Certainty(StudyRecord, frozen=True):
    """What the best intervention gives, and how sure that is."""

    reward: Number = math.nan
    low: Number = math.nan  # 95 % interval of the expected reward
    high: Number = math.nan
    cost: Number = math.nan
    probability: Number = math.nan  # that no allowed intervention is better, net of costs
    expected_loss: Number = math.nan  # net reward per round forgone by playing it for ever
    failing: Number = math.nan  # probability that a trial of it fails; nan: nothing has failed yet
    basis: str = ""  # from what it is known
    remarks: list[Remark] = field(default_factory=list)
    tried: int = 0  # rounds of the best intervention so far
    tried_equal: int = 0  # rounds of others that are as good, as far as the results tell
    stayed: str = ""  # if it was played nearly always of late: how much its rivals were, in words
    rivals: list[Rival] = field(default_factory=list)  # the leading ones
    taken_back: list[TakenBack] = field(default_factory=list)  # the largest loss first


class Best(Certainty, Numbers, frozen=True, kw_only=True):
    """The best intervention known so far. What nobody can know is nan."""

    intervention: dict[str, int]  # node -> regime
    levels: dict[str, Level]  # factor -> level
    switch: list[str]  # factors that are not at their first level

    @property
    def words(self) -> str:
        """The level of every factor."""
        return in_words(self.levels)


class Alarm(StudyRecord, frozen=True):
    """A mechanism that the policy believes to have changed."""

    alarm: int
    trial: int  # that raised it
    regime: str
    node: str
    changed_after: int | None  # the trial of the last round before the estimated change
    statistic: Number
    threshold: Number
    acknowledged: bool
    note: str
    checks_left: int  # random trials to come that look for others that changed with it
    text: str  # all of this in words


class SuspectValue(Numbers, frozen=True):
    """A value that may be a typing error, and what to do about it."""

    trial: int
    node: str
    value: float
    low: Number  # range of the other results, if the value is far outside of it
    high: Number
    learned: bool  # whether the policy learns from its trial
    why: str
    command: str  # that corrects it
    message: str


class MissingValues(StudyRecord, frozen=True):
    """How many values were not measured, in how many trials, and how many of these are learned."""

    values: int
    trials: int
    learned: int

    @property
    def words(self) -> str:
        """
        >>> MissingValues(values=3, trials=2, learned=2).words
        '3 values of 2 trials were not measured; the others of these trials are learned from'
        """
        if not self.values:
            return ""
        what = f"{self.values} value{'s' * (self.values != 1)} of "
        what += f"{self.trials} trial{'s' * (self.trials != 1)}"
        if self.learned == self.trials:
            of_which = "the others of these trials are learned from"
        else:
            of_which = f"{self.trials - self.learned} of these trials are left out of learning"
        return f"{what} {'was' if self.values == 1 else 'were'} not measured; {of_which}"


class Check(StudyRecord, frozen=True):
    """What the tests of one mechanism say about the model."""

    node: str
    regime: str
    rounds: int
    verdict: str  # in plain words
    doubtful: bool


class Note(StudyRecord, frozen=True):
    event: int
    at: str
    trial: int | None
    text: str


# -- why a trial was suggested ---------------------------------------------------------------------


class Samples(StudyRecord, frozen=True):
    """Rounds so far of a mechanism that the trial plays."""

    node: str
    regime: str
    rounds: int


class CarryingEdge(Numbers, frozen=True):
    parent: str
    child: str
    regime: str
    weight: Number  # of a factor: what it adds to the child, compared with the average round
    carries: Number  # of what sets the expected reward apart from the average of the rounds known


class DoubtfulMechanism(Numbers, frozen=True):
    node: str
    regime: str
    share_of_uncertainty: Number


class RunnerUp(Numbers, frozen=True):
    levels: dict[str, Level]
    switch: list[str]
    mean: Number


class Uncertainty(Numbers, frozen=True):
    before: Number
    after: Number


class Explanation(StudyRecord, frozen=True, omit_defaults=True):
    """The fields with a default are there if the policy had a model when it was asked."""

    trial: int
    state: State
    switch: list[str]
    executed: list[str]
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
    edges: list[CarryingEdge] | None = None
    mechanisms: list[DoubtfulMechanism] | None = None
    runner_up: RunnerUp | None = None

"""Whatever is given in place of a name, a value, a level: accepted, or refused by name.

Each place of each call is filled with each odd object. Nothing but a `CausalArmsError` may come of
it, its message is one that a person can read, and the study works as before.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causalarms import Study
from causalarms.errors import CausalArmsError

DEEP: list[Any] = []
for _ in range(2000):
    DEEP = [DEEP]
LOOP: list[Any] = []
LOOP.append(LOOP)
ODD: dict[str, Any] = {
    "None": None, "True": True, "minus one": -1, "zero": 0, "three": 3, "huge integer": 10**5000,
    "fraction": 0.5, "1e308": 1e308, "nan": math.nan, "inf": -math.inf, "complex": 1j,
    "empty text": "", "blank": " ", "text": "x", "node": "a", "NUL": "\0", "escape": "\x1b[2J",
    "override": "\u202ex", "surrogate": "\ud800", "long": "x" * 201, "very long": "x" * 10**6,
    "bytes": b"a", "empty list": [], "list": ["a"], "nested": [["a"]], "numbers": [1, 2],
    "list of None": [None], "list of dicts": [{}], "deep": DEEP, "endless": LOOP,
    "empty dict": {}, "dict": {"a": 1}, "number keys": {1: 2}, "None keys": {None: None},
    "tuple keys": {("a",): [1]}, "nested dict": {"a": {"b": {"c": []}}}, "bytes keys": {b"a": b"b"},
    "set": {"a"}, "array": np.zeros((2, 2)), "object array": np.array([{}, None], dtype=object),
    "frame": pd.DataFrame({"a": [1, 2]}), "class": int, "function": len, "generator": iter("ab"),
    "object": object(), "timestamp": pd.Timestamp(0), "number of numpy": np.float64(2.0),
}  # fmt: skip

FACTORS = {"mode": {"levels": ["low", "mid", "high"], "acts_on": ["a", "b"]}, "b": {}}


def create(**changed: Any) -> Study:
    given: dict[str, Any] = {"nodes": ["a", "b", "y"], "reward": "y", "factors": FACTORS}
    return Study.create(None, **given | changed)


Call = Callable[[Study, Any], Any]
CALLS: dict[str, Call] = {
    "create nodes": lambda _, odd: create(nodes=odd, factors=None),
    "create a node": lambda _, odd: create(nodes=["a", "b", "y", odd]),
    "create reward": lambda _, odd: create(reward=odd),
    "create direction": lambda _, odd: create(direction=odd),
    "create policy": lambda _, odd: create(policy=odd),
    "create policy_settings": lambda _, odd: create(policy_settings=odd),
    "create a setting": lambda _, odd: create(policy_settings={"draws": odd}),
    "create name of a setting": lambda _, odd: create(policy_settings={_key(odd): 1}),
    "create horizon": lambda _, odd: create(horizon=odd),
    "create intervenable": lambda _, odd: create(intervenable=odd),
    "create an intervenable": lambda _, odd: create(intervenable=["b", odd]),
    "create intervenable nodes": lambda _, odd: create(intervenable=[odd], factors=None),
    "create noise_mean": lambda _, odd: create(noise_mean=odd),
    "create a noise mean": lambda _, odd: create(noise_mean={"a": 0, "b": 0, "y": odd}),
    "create seed": lambda _, odd: create(seed=odd),
    "create changes": lambda _, odd: create(changes=odd),
    "create factors": lambda _, odd: create(factors=odd),
    "create a factor": lambda _, odd: create(factors={"mode": odd}),
    "create a factor's name": lambda _, odd: create(factors={_key(odd): {"acts_on": ["a"]}}),
    "create a listed factor": lambda _, odd: create(factors=[{"name": odd, "acts_on": ["a"]}]),
    "create levels": lambda _, odd: create(factors={"b": {"levels": odd}}),
    "create a level": lambda _, odd: create(factors={"b": {"levels": ["low", odd]}}),
    "create acts_on": lambda _, odd: create(factors={"mode": {"acts_on": odd}}),
    "create an acts_on": lambda _, odd: create(factors={"mode": {"acts_on": ["a", odd]}}),
    "create sets": lambda _, odd: create(factors={"b": {"sets": odd}}),
    "create a set level": lambda _, odd: create(factors={"b": {"sets": [odd]}}),
    "create sets of a node": lambda _, odd: create(factors={"b": {"sets": {_key(odd): ["on"]}}}),
    "create constraints": lambda _, odd: create(constraints=odd),
    "create a constraint": lambda _, odd: create(constraints={_key(odd): 1}),
    "create max_interventions": lambda _, odd: create(constraints={"max_interventions": odd}),
    "create forbidden": lambda _, odd: create(constraints={"forbidden": odd}),
    "create a forbidden": lambda _, odd: create(constraints={"forbidden": [odd]}),
    "create forbidden in a list": lambda _, odd: create(constraints={"forbidden": [["b", odd]]}),
    "create forbidden level": lambda _, odd: create(constraints={"forbidden": [{"mode": odd}]}),
    "create forbidden levels": lambda _, odd: create(constraints={"forbidden": [{"mode": [odd]}]}),
    "create required": lambda _, odd: create(constraints={"required": odd}),
    "create a required": lambda _, odd: create(constraints={"required": [odd]}),
    "create required level": lambda _, odd: create(
        constraints={"required": [{"mode": odd, "b": "on"}]}
    ),
    "create costs": lambda _, odd: create(costs=odd),
    "create a cost": lambda _, odd: create(costs={"b": odd}),
    "create a cost of a level": lambda _, odd: create(costs={"mode": {"mid": odd}}),
    "create a cost's level": lambda _, odd: create(costs={"mode": {_key(odd): 1}}),
    "create a cost's factor": lambda _, odd: create(costs={_key(odd): 1}),
    "create knowledge": lambda _, odd: create(knowledge=odd),
    "create tiers": lambda _, odd: create(knowledge={"tiers": odd}),
    "create a tier": lambda _, odd: create(knowledge={"tiers": [["a"], odd]}),
    "create a node of a tier": lambda _, odd: create(knowledge={"tiers": [["a"], [odd]]}),
    "create known edges": lambda _, odd: create(knowledge={"excluded": odd}),
    "create a known edge": lambda _, odd: create(knowledge={"required": [odd]}),
    "create a known parent": lambda _, odd: create(knowledge={"required": [(odd, "y")]}),
    "ask n": lambda study, odd: study.ask(odd),
    "ask worker": lambda study, odd: study.ask(worker=odd),
    "tell trial": lambda study, odd: study.tell(odd, [1, 2, 3]),
    "tell values": lambda study, odd: study.tell(study.ask(), odd),
    "tell a value": lambda study, odd: study.tell(study.ask(), {"a": 1, "b": 2, "y": odd}),
    "tell a value in a list": lambda study, odd: study.tell(study.ask(), [1, odd, 3]),
    "tell a node": lambda study, odd: study.tell(
        study.ask(), {"a": 1, "b": 2, "y": 3, _key(odd): 4}
    ),
    "tell executed": lambda study, odd: study.tell(study.ask(), [1, 2, 3], executed=odd),
    "tell a level": lambda study, odd: study.tell(study.ask(), [1, 2, 3], executed={"mode": odd}),
    "tell a regime": lambda study, odd: study.tell(study.ask(), [1, 2, 3], executed=[0, 0, odd]),
    "tell a factor": lambda study, odd: study.tell(study.ask(), [1, 2, 3], executed={_key(odd): 1}),
    "fail": lambda study, odd: study.fail(study.ask(), odd),
    "abandon": lambda study, odd: study.abandon(odd),
    "predict": lambda study, odd: study.predict(odd),
    "predict one": lambda study, odd: study.predict([odd]),
    "predict a level": lambda study, odd: study.predict([{"mode": odd}]),
    "predict a factor": lambda study, odd: study.predict([{_key(odd): "on"}]),
    "explain": lambda study, odd: study.explain(odd),
    "correct trial": lambda study, odd: study.correct(odd, [1, 2, 3]),
    "correct values": lambda study, odd: study.correct(0, odd),
    "correct a value": lambda study, odd: study.correct(0, {"a": 1, "b": 2, "y": odd}),
    "correct executed": lambda study, odd: study.correct(0, [1, 2, 3], executed=odd),
    "note": lambda study, odd: study.note(odd),
    "note trial": lambda study, odd: study.note("seen", odd),
    "acknowledge": lambda study, odd: study.acknowledge(odd),
    "import_rounds": lambda study, odd: study.import_rounds(odd),
    "add a column": lambda study, odd: study.import_rounds({"a": odd, "b": [1], "y": [1]}),
    "add a cell": lambda study, odd: study.import_rounds({"a": [odd], "b": [1], "y": [1]}),
    "add a name": lambda study, odd: study.import_rounds(
        {"a": [1], "b": [1], "y": [1], _key(odd): [1]}
    ),
    "add a level": lambda study, odd: study.import_rounds(
        {"a": [1], "b": [1], "y": [1], "do:mode": [odd]}
    ),
    "add interventions": lambda study, odd: study.import_rounds(
        {"a": [1], "b": [1], "y": [1]}, odd
    ),
    "add a cell of interventions": lambda study, odd: study.import_rounds(
        {"a": [1], "b": [1], "y": [1]}, {"mode": [odd]}
    ),
    "add intervened": lambda study, odd: study.import_rounds(
        {"a": [1], "b": [1], "y": [1]}, intervened=odd
    ),
    "change_settings": lambda study, odd: study.change_settings(costs=odd),
}  # fmt: skip


def _key(odd: Any) -> Any:
    """As the key of a dict, if it can be one."""
    try:
        hash(odd)
    except TypeError:
        pytest.skip("cannot be a key")
    return odd


@pytest.fixture(scope="module")
def shared() -> Iterator[Study]:
    with create(policy="csl-ucb") as study:
        rng = np.random.default_rng(0)
        for _ in range(60):
            study.tell(study.ask(), rng.normal(size=3))
        yield study


@pytest.mark.parametrize("call", CALLS)
def test_it_is_accepted_or_refused_by_name(call: str, shared: Study) -> None:
    wrong = []
    for name, odd in ODD.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                CALLS[call](shared, odd)
            except pytest.skip.Exception:
                continue
            except CausalArmsError as error:
                if len(str(error)) > 2000:
                    wrong.append(f"{name}: a message of {len(str(error))} characters")
            except Exception as error:
                wrong.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
    assert not wrong
    number = shared.ask().number
    shared.tell(number, [1.0, 2.0, 3.0])

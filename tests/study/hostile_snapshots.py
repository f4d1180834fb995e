"""Wrong snapshots of every policy, restored one after the other; a line for each that was used.

Run as a program: compiled code that follows a wrong index may end the process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from study_rounds import NODES, SEM, SETTINGS, play

from causalarms import Study
from causalarms.study import learner
from causalarms.study.cache import pack, unpack
from causalarms.study.learner import Learner
from causalarms.study.store import Snapshot

State = dict[str, Any]

ROUNDS = 45
TOLD: State = {"policy_settings": {}, "noise_mean": 1.0, "horizon": 200}
CASES: dict[str, State] = {
    "csl-ucb": {},
    "csl-ucb-cd": {},
    "ucb": {},
    "ucb windowed": {"policy_settings": {"window": 3}},
    "golem-mab": {"policy_settings": {"n_explore": 15}},
    "golem-mab-cd": {"policy_settings": {"n_explore": 12}},
    "dagma-mab": {"policy_settings": {"n_explore": 15}},
    "explore-then-commit": {"policy_settings": {"n_explore": 15, "learner": "csl"}},
    "linsem-ts": {"policy_settings": {"graph": SEM.adjacency.tolist()}},
    "linsem-ucb": {"policy_settings": {"graph": SEM.adjacency.tolist()}},
    "robust-linsem": {"policy_settings": {"graph": SEM.adjacency.tolist()}},
    "additive": {"policy_settings": {"epsilon": 8.0}},
    "ga-lcb": {"policy_settings": {"n_observe": 15, "cycles": 3}},
    "posterior": {},
    "posterior in units of its own": {"policy_settings": {"noise_scale": "estimate"}},
    "posterior-cd": {},
    "posterior sampled": {"policy_settings": {"method": "sampled"}},
    "random": {},
}
# these are as possible as what was there: only `verify` can know
PLAUSIBLE = {
    ("posterior.log_odds", "infinite"),
    ("detector.scores", "nan"),  # was not tested
}


def played(label: str) -> Study:
    """A study in memory whose policy has learned something."""
    settings = SETTINGS | TOLD | {"policy": label.split(",")[0].split(" ")[0]} | CASES[label]
    study = Study.create(None, **settings)
    play(study, ROUNDS)
    return study


def snapshot_of(study: Study) -> Snapshot:
    found = Learner(study.settings)
    found.follow(study.ledger())
    entry = study.store.entries()[-1]
    snapshot = found.snapshot(entry.number, entry.hash)
    assert snapshot is not None
    return snapshot


def resigned(good: Snapshot, state: bytes) -> Snapshot:
    """With a digest that fits."""
    return good._replace(state=state, digest=learner._digest(state, good.hash))


def wrong_arrays(value: Any) -> Iterator[tuple[str, Any]]:
    yield "last axis shorter", value[..., :-1]
    yield "one axis more", value[None]
    yield "no axis", np.zeros((), dtype=value.dtype)
    if value.ndim > 1:
        yield "flat", value.ravel()
    for other in {"<f8", "<i8", "|u1", "|b1"} - {value.dtype.str}:
        yield f"as {other}", np.nan_to_num(value).astype(other)
    numbers: dict[str, dict[str, float]] = {
        "<f8": {"nan": np.nan, "infinite": np.inf},
        "<i8": {"huge": 2**62, "negative": -2, "beyond": ROUNDS + 1},
        "|u1": {"other than 0/1": 200},
        "|b1": {},
    }
    for what, number in numbers[value.dtype.str].items():
        for place in {0, value.size // 2, value.size - 1} if value.size else ():
            wrong = value.copy()
            wrong.flat[place] = number
            yield what, wrong


def wrong_scalars(value: Any) -> Iterator[tuple[str, Any]]:
    what: Any
    for what in ("text", "", [1], {}, None, True, np.nan, np.inf, -1, -1.5, 2**70, np.zeros(2)):
        if type(what) is not type(value) or what != value:
            yield f"{what!r:.20}", what
    if isinstance(value, int):
        yield "as a float", float(value)


def corruptions(state: State) -> Iterator[tuple[str, str, bytes]]:
    """Name, what is wrong with it, and the packed state."""
    for name, value in state.items():
        yield name, "missing", pack({n: v for n, v in state.items() if n != name})
        if name in ("study.version", "study.problem", "study.revision"):
            continue
        wrong = wrong_arrays if isinstance(value, np.ndarray) else wrong_scalars
        for what, other in wrong(value):
            nothing = np.size(value) == 0 and np.shape(other) == np.shape(value)
            if (name, what) not in PLAUSIBLE and not (nothing and what == "last axis shorter"):
                yield name, what, pack(state | {name: other})
    for name, other in (("more", 1), ("data.more", np.eye(2)), ("study.more", 1)):
        yield name, "extra", pack(state | {name: other})
    for difference in (-1, 1, -ROUNDS - 1):
        for name in ("n_told", "study.followed"):
            yield name, f"{difference:+d}", pack(state | {name: state[name] + difference})
    for problem in ("text", [1], [0, "x"], [ROUNDS - 1, 5], [True, "x"], 7):
        yield "study.problem", str(problem), pack(state | {"study.problem": problem})
    whole = pack(state)
    for length in (0, 7, 8, 20, len(whole) // 2, len(whole) - 1):
        yield "all", f"cut to {length}", whole[:length]
    yield "all", "longer", whole + b"\0"
    yield "all", "nested", b"\xa0\x86\x01" + b"\0" * 5 + b"[" * 100_000


def main() -> None:
    for label in sys.argv[1:]:
        study = played(label)
        ledger, good = study.ledger(), snapshot_of(study)
        assert Learner(study.settings).restore(good, ledger, good.hash), "the good one is used"
        fresh = pack(Learner(study.settings).state())
        found, reference = Learner(study.settings), study.ask()
        tried, used, first = 0, list[str](), ""
        for name, what, packed in corruptions(unpack(good.state)):
            print(label, name, what, file=sys.stderr, flush=True)  # the last words before a crash
            found.snapshot_ignored = None
            ignored = not found.restore(resigned(good, packed), ledger, good.hash)
            tried += 1
            if not (ignored and found.snapshot_ignored and pack(found.state()) == fresh):
                used.append(f"{name}: {what}")
            elif not first:
                first = found.snapshot_ignored
                found.follow(ledger)
                again = found.choose(reference.number, []).intervention.tolist()
                if dict(zip(NODES, again, strict=True)) != reference.intervention:
                    used.append(f"{name}: {what}: another suggestion")
        print(json.dumps({"label": label, "tried": tried, "used": used}), flush=True)


if __name__ == "__main__":
    main()

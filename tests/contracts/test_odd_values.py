"""Values of any size: an answer or an error of this package, never a crash, never a hang.

Kernels do not check bounds, so a part runs in a process of its own with bounds checked.
`benchmarks/fuzz.py scales` tries many more cases.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from causalarms import CSL, GraphPosterior, make_policy, random_sem
from causalarms.errors import CausalArmsError, DataError
from causalarms.statistics.mutual_information import kraskov, mutual_information, psi_table

SEM = random_sem(3, seed=5)
N_ROUNDS = 60
SIZES = [1e-320, 1e-200, 1e-155, 1e-100, 1e80, 1e149]
POLICIES: dict[str, dict[str, Any]] = {
    "csl-ucb": {},
    "csl-ucb-cd": {"detector": "paper"},
    "posterior": {},
    "posterior-cd": {"noise_scale": "estimate"},
    "ucb": {},
    "linsem-ts": {"graph": SEM.adjacency},
    "linsem-quantile": {"graph": SEM.adjacency},
    "linsem-ucb": {"graph": SEM.adjacency},
    "robust-linsem": {"graph": SEM.adjacency},
    "additive": {},
    "ga-lcb": {"n_observe": 20, "cycles": 3},
}
WHICH = ["all", "one node", "reward", "one value"]


def rounds(name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (N_ROUNDS, 3))
    if name == "ga-lcb":
        A[:40] = np.vstack([np.zeros((1, 3)), np.eye(3)])[np.arange(40) % 4]
        A[12:40] = 0
    return A, SEM.sample(A, rng)


def changed(values: npt.NDArray[np.float64], which: str, size: float) -> npt.NDArray[np.float64]:
    values = values.copy()
    if which == "all":
        return values * size
    if which == "one value":
        values[7, 1] = size
    else:
        values[:, {"one node": 0, "reward": 2}[which]] *= size
    return values


@pytest.mark.parametrize("mean", [None, SEM.noise_mean], ids=["unknown mean", "known mean"])
@pytest.mark.parametrize("name", POLICIES)
def test_policies_answer_or_refuse(name: str, mean: Any) -> None:
    if mean is None and ("linsem" in name or name in ("additive", "ga-lcb", "ucb")):
        pytest.skip("is told the noise means, or needs none")
    A, X = rounds(name)
    for which in WHICH:
        for size in SIZES:
            policy = make_policy(
                name.split()[0], n_nodes=3, reward=2, horizon=100, noise_mean=mean, **POLICIES[name]
            )
            with np.errstate(all="ignore"):
                for a, x in zip(A, changed(X, which, size), strict=True):
                    try:
                        policy.tell(a, x)
                    except CausalArmsError as error:
                        assert str(error)  # noqa: PT017
                assert policy.ask(np.random.default_rng(0)).shape == (3,)


def test_csl_ucb_learns_from_values_whose_squares_are_lost() -> None:
    A, X = rounds("csl-ucb")
    found = []
    for size in (1.0, 1e-155, 1e-120, 1e148):
        policy = make_policy("csl-ucb", n_nodes=3, horizon=100)
        for a, x in zip(A, X * size, strict=True):
            policy.tell(a, x)
        assert policy.suggest(np.random.default_rng(0)).reason == "exploit"
        found.append(policy.adjacency)
    for adjacency in found:
        np.testing.assert_array_equal(adjacency, found[0])


def test_values_too_large_to_square_are_refused_and_leave_no_trace() -> None:
    for name in POLICIES:
        settings = POLICIES[name] | {"horizon": 100, "noise_mean": SEM.noise_mean}
        policy = make_policy(name.split()[0], n_nodes=3, reward=2, **settings)
        with pytest.raises(DataError, match=r"node 1 is -1e\+151: too large to compute with"):
            policy.tell([0, 0, 0], [1.0, -1e151, 2.0])
        assert policy.n_told == 0
        policy.tell([0, 0, 0], [1.0, -1e150, 2.0])
        with pytest.raises(DataError, match="a number per node"):
            policy.tell([0, 0, 0], ["a", "b", "c"])


@pytest.mark.parametrize("size", [1e-300, 1e-155, 1e200, 1e300])
def test_learners_answer_or_refuse(size: float) -> None:
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, (80, 3))
    X = SEM.sample(A, rng)
    plain = CSL().fit(X, interventions=A)
    scaled = CSL().fit(X * size, interventions=A)
    np.testing.assert_array_equal(plain.adjacency_, scaled.adjacency_)
    X[:, 1] *= size
    with pytest.raises(DataError, match="too far apart to compute with: use other units"):
        CSL().fit(X, interventions=A)
    assert GraphPosterior(noise_scale="estimate").fit(X, interventions=A).order_


def test_the_estimate_of_dependence_ends_whatever_it_is_given() -> None:
    y = np.arange(30.0)
    for odd in (np.nan, np.inf, -np.inf):
        x = y.copy()
        x[4] = odd
        for one, other in ((x, y), (y, x)):
            order = np.argsort(one), np.argsort(other)
            assert np.isnan(kraskov(one, other, *order, 5, False, psi_table(30)))
    far = y.copy()
    far[4] = 1e308
    assert np.isfinite(mutual_information(far, -far))


CHECKED = """
import warnings; warnings.simplefilter("ignore")
import numpy as np, sys
sys.path.insert(0, {here!r})
from test_odd_values import POLICIES, SEM, changed, rounds
from causalarms import CSL, make_policy
from causalarms.errors import CausalArmsError
for name in ("csl-ucb", "csl-ucb-cd"):
    A, X = rounds(name)
    for which, size in (("all", 1.0), ("all", 1e-155), ("one node", 1e-100), ("one value", 1e100)):
        policy = make_policy(
            name, n_nodes=3, horizon=100, noise_mean=SEM.noise_mean, **POLICIES[name]
        )
        for a, x in zip(A, changed(X, which, size)):
            try:
                policy.tell(a, x)
            except CausalArmsError:
                pass
        policy.ask(np.random.default_rng(0))
CSL(mutual_information="squares", k=19).fit(np.repeat(X[:30], 2, axis=0), interventions=A)
print("all within bounds")
"""


def test_kernels_stay_within_their_arrays(tmp_path: Path) -> None:
    """Compiled anew with bounds checked: a read or write outside is an IndexError there.

    Kernels that meet raw data; the others take long to compile: NUMBA_BOUNDSCHECK=1 with
    benchmarks/fuzz.py scales checks them all.
    """
    code = CHECKED.format(here=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ
        | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.stdout == "all within bounds\n", done.stderr[-2000:]

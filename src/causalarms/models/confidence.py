"""The confidence bound of Theorem 1 on the error of an estimated reward.

|error at the reward| <= |column of (I - B_a)^-1 at the reward| |mu_a| sigma_max(Delta B_a),
and Lemma 2 bounds the largest singular value of the weight errors from the largest eigenvalues
lambda_i of the covariances Phi of the 2N mechanisms. Three forms of that bound:

theorem   2 (N^2 + 2N)^(1/4) sqrt(ln(2N/delta) sum lambda_i), as printed
parents   the error of a column lives in the coordinates of its p_i parents, so p_i replaces N
          inside the sum (the authors' program)
valid     Bernstein's inequality holds as printed only while ln(2N/delta) is at most
          sqrt(N/(N+2)) sum lambda / max lambda; beyond it the sub-exponential tail applies:
          2 sqrt((N + 2) max lambda) ln(2N/delta)

All assume data that were not chosen adaptively and no missing edge. An estimated intercept counts
as one more parent whose value is the constant 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.checks import choice
from causalarms.kernels import kernel

FloatArray = npt.NDArray[np.float64]

FORMS = ("theorem", "parents", "valid")


def form_code(form: str) -> int:
    return FORMS.index(choice("bound", form, FORMS))


@kernel
def singular_value_bound(
    spread: FloatArray,  # (N,) lambda_max of the mechanisms in use
    n_regressors: npt.NDArray[np.int64],  # (N,)
    form: int,
    log_term: float,  # ln(2N / delta)
) -> float:
    """Lemma 2: what sigma_max(Delta B_a) stays below with probability 1 - delta."""
    n = len(spread)
    total = largest = 0.0
    for i in range(n):
        dimension = n_regressors[i] if form == 1 else n
        total += np.sqrt(dimension * (dimension + 2.0)) * spread[i]
        largest = max(largest, spread[i])
    if form == 2 and log_term * largest * (n + 2.0) > total:
        return 2.0 * np.sqrt((n + 2.0) * largest) * log_term
    return 2.0 * np.sqrt(log_term * total)

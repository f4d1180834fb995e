"""Values so large that their moments have lost the noise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from causalarms.errors import ScaleWarning
from causalarms.posterior.chains.convergence import warn_of_lost_digits


def test_only_nodes_with_huge_values_are_named() -> None:
    gram = np.zeros((2, 3, 4, 4))
    gram[:] = np.diag([100.0, 100.0, 100.0, 100.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_lost_digits(gram, ("a", "b", "c"))
    gram[:, 0, 2, 2] = 1e20  # of another node's mechanism: that one's own size is unknown
    gram[1, 1, 1, 1] = 100 * 1e16
    with pytest.warns(ScaleWarning, match="values of 1 nodes, most of all 'b', are up to 1e\\+08"):
        warn_of_lost_digits(gram, ("a", "b", "c"))

"""Causal bandits with an unknown graph and unknown, soft interventions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from causalarms.extras import imported_on_use
from causalarms.version import __version__

if TYPE_CHECKING:
    from causalarms.graphs import CSL, DAGMA, GOLEM
    from causalarms.policies import make_policy
    from causalarms.posterior.estimator import GraphPosterior
    from causalarms.sem import LinearSEM, random_sem
    from causalarms.service.remote import RemoteStudy
    from causalarms.simulation.simulate import simulate
    from causalarms.study import Study

# Imported on use, so that `causalarms --help` does not wait for compilers.
__getattr__ = imported_on_use(
    __name__,
    {
        "CSL": "causalarms.graphs",
        "DAGMA": "causalarms.graphs",
        "GOLEM": "causalarms.graphs",
        "GraphPosterior": "causalarms.posterior.estimator",
        "LinearSEM": "causalarms.sem",
        "RemoteStudy": "causalarms.service.remote",
        "Study": "causalarms.study",
        "make_policy": "causalarms.policies",
        "random_sem": "causalarms.sem",
        "simulate": "causalarms.simulation",
    },
)

__all__ = [
    "CSL",
    "DAGMA",
    "GOLEM",
    "GraphPosterior",
    "LinearSEM",
    "RemoteStudy",
    "Study",
    "__version__",
    "make_policy",
    "random_sem",
    "simulate",
]


def __dir__() -> list[str]:
    return sorted(__all__)

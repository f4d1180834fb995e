"""Learners by name.

Other packages add names through the entry-point group `causalarms.learners`; an entry is a class
with scikit-learn's contract, or a callable that makes such an object from settings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from causalarms.graphs.inputs import CanFit, Learner
from causalarms.registry import Registry

ENTRY_POINT = "causalarms.learners"
# as text: scikit-learn takes long to import
LEARNERS = {
    "csl": "causalarms.graphs.estimators:CSL",
    "golem": "causalarms.graphs.estimators:GOLEM",
    "dagma": "causalarms.graphs.estimators:DAGMA",
    "posterior": "causalarms.posterior.estimator:GraphPosterior",
}
REGISTRY: Registry[CanFit] = Registry("learner", ENTRY_POINT, LEARNERS, CanFit)


def learner_names() -> list[str]:
    """Built-in names first, then those of installed packages."""
    return REGISTRY.names()


def learner_settings(name: str | Callable[..., Any]) -> list[str]:
    """Names of the settings a learner takes."""
    return REGISTRY.settings_of(REGISTRY.factory(name))


def make_learner(name: str | Callable[..., Any], **settings: Any) -> Learner:
    """Build a learner by name, or of a class.

    >>> make_learner("golem", l1=0.1)
    GOLEM(l1=0.1)
    """
    return cast(Learner, REGISTRY.make(name, **settings))

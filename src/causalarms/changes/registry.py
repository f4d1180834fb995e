"""Detectors by name.

Other packages add names through the entry-point group `causalarms.detectors`; an entry is a
callable with the signature of the classes here: `n_nodes` first, `n_regimes` and settings by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from causalarms.changes.detector import Detector, NoChange
from causalarms.changes.evidence import ChangeEvidence
from causalarms.changes.glr import MechanismGLR, WholeGraphRatio
from causalarms.checks import integer
from causalarms.errors import SettingError
from causalarms.registry import Registry, takes_anything

ENTRY_POINT = "causalarms.detectors"
FIRST_ROUNDS = 200  # without an alarm, as in the authors' program


def paper(
    n_nodes: int,
    *,
    n_regimes: int = 2,
    zeta: float = 0.01,
    min_window: int = 5,
    max_window: int = 60,
    start_after: int = FIRST_ROUNDS,
) -> MechanismGLR:
    """The threshold of Sec. V, after the rounds in which the authors' program is silent."""
    return MechanismGLR.paper(
        n_nodes, zeta=zeta, n_regimes=n_regimes, min_window=min_window, max_window=max_window,
        start_after=start_after,
    )  # fmt: skip


def whole_graph(
    n_nodes: int, *, n_regimes: int = 2, window: int | None = None, threshold: float = 20.0
) -> WholeGraphRatio:
    """`WholeGraphRatio` with a window that suits the number of nodes."""
    n_nodes = integer("n_nodes", n_nodes, minimum=1)
    fitting = max(20, 2 * n_nodes) if window is None else window
    return WholeGraphRatio(n_nodes, window=fitting, threshold=threshold, n_regimes=n_regimes)


DETECTORS: dict[str, Callable[..., Detector]] = {
    "none": NoChange,
    "authors": MechanismGLR.authors,
    "paper": paper,
    "whole-graph": whole_graph,
    "evidence": ChangeEvidence,
}
REGISTRY = Registry("detector", ENTRY_POINT, DETECTORS, Detector, given=("n_nodes", "n_regimes"))


def detector_names() -> list[str]:
    """Built-in names first, then those of installed packages."""
    return REGISTRY.names()


def make_detector(name: str, *, n_nodes: int, n_regimes: int = 2, **settings: Any) -> Detector:
    """Build a detector by name.

    >>> make_detector("evidence", n_nodes=3, false_alarms_per_1000_rounds=1.0).watches
    True
    """
    factory = REGISTRY.factory(name)
    understood = "n_regimes" in inspect.signature(factory).parameters or takes_anything(factory)
    more = {"n_regimes": n_regimes} if understood else {}
    return REGISTRY.make(name, n_nodes, **more, **settings)


def as_detector(
    given: Detector | str | None, *, n_nodes: int, n_regimes: int, offers: tuple[str, ...]
) -> Detector:
    """The setting `detector` of a policy: one, the name of one, or None for `NoChange()`."""
    if given is None:
        return NoChange()
    if isinstance(given, str):
        given = make_detector(given, n_nodes=n_nodes, n_regimes=n_regimes)
    if not isinstance(given, Detector):
        raise SettingError(f"detector must be a Detector or the name of one, not {given!r}")
    given.check_fits(n_nodes, n_regimes)
    for kind in given.needs:
        if kind not in offers:
            has = f"offers {' and '.join(offers)} only" if offers else "has no use for a detector"
            raise SettingError(
                f"detector {type(given).__name__} looks at the {kind}; this policy {has}"
            )
    return given

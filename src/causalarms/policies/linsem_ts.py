"""`linsem-ts`: Thompson sampling with the true topology (Varici et al. 2023), the upper bound.

Prior N(0, I) on the weights of the known parents and unit noise; each round one draw of all
weights, and the intervention that is best for it, by branch and bound. Under change it keeps the
parents it was given; told `restarts`, it is the ceiling instead: it starts over with the right
graph at each change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from causalarms.policies.base import EXPLOIT, Intervention, Suggestion
from causalarms.policies.known_graph import KnownGraph
from causalarms.search import best_intervention
from causalarms.search.constraints import Constraints
from causalarms.sem.best_regimes import within

SEARCH_BUDGET = 500_000  # tree nodes per round; where they do not suffice, the best found is played
THOMPSON = "the best setting of one draw of the weights from what is known of them"


class LinSEMTS(KnownGraph):
    """Is told the parents of every mechanism and the noise means; takes the noise std as 1."""

    name: ClassVar[str] = "linsem-ts"

    def suggest(
        self,
        rng: np.random.Generator,
        *,
        pending: Sequence[Intervention] = (),
        allowed: Constraints | None = None,
    ) -> Suggestion:
        kept = within(self._regimes, self.kept(allowed))
        best = best_intervention(
            self._draw(rng), self.noise_mean, self._order, self.reward,
            constraints=kept, budget=SEARCH_BUDGET,
        )  # fmt: skip
        reward = best.value
        if not kept.free:
            reward += float(kept.cost(best.intervention[None])[0])
        return Suggestion(best.intervention, EXPLOIT, reward, why=THOMPSON)

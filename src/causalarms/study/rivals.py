"""What the best setting is compared with: its factors taken back one by one, and its rivals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from causalarms.arrays import FloatArray, Intervention, Interventions
from causalarms.limits import MAX_RATIOS
from causalarms.models.belief import Belief, Recommendation, summary, working
from causalarms.study.records import Rival, TakenBack

if TYPE_CHECKING:
    from causalarms.study.report import Beliefs

RIVALS = 3  # of the best that are shown
DRAWS_OF_RIVALS = 100  # by which they are found among all settings
LATELY = 20  # results, by which a study is said to stay with a setting
STAYED = 0.75  # of these, from which on it is


def taken_back(beliefs: Beliefs, belief: Belief, best: Intervention) -> list[TakenBack]:
    """Draw by draw, so that what is uncertain of both settings does not count."""
    settings, named = beliefs.settings, beliefs.settings.named
    levels = named.numbers_of(best.tolist())
    assert levels is not None
    moved = [at for at, level in enumerate(levels) if level]
    without = [[*levels[:at], 0, *levels[at + 1 :]] for at in moved]
    rows = named.numbers.interventions([levels, *without]).astype(np.uint8)
    worth = beliefs.allowed.worth(rows).as_likely_to_fail(0)
    net = worth.net(belief.rewards(rows, settings.reward_index))
    mean, low, high = summary(net[:, :1] - net[:, 1:])
    allowed = settings.constraints.allows(rows)[1:]
    found = [
        TakenBack(
            factor=named.factors[at].name,
            level=named.factors[at].levels[levels[at]],
            first=named.factors[at].levels[0],
            lost=float(mean[k]),
            low=float(low[k]),
            high=float(high[k]),
            allowed=bool(allowed[k]),
        )
        for k, at in enumerate(moved)
    ]
    return sorted(found, key=lambda back: -back.lost)


def rivals_of(beliefs: Beliefs, belief: Belief, best: Recommendation) -> list[Rival]:
    """Those most likely to be better; with too many settings, of those near it and those played."""
    settings, reward = beliefs.settings, beliefs.settings.reward_index
    allowed, chosen = beliefs.allowed, best.intervention
    if allowed.count(MAX_RATIOS) is None:
        rows = np.unique(np.vstack([allowed.neighbours(chosen), beliefs.regimes]), axis=0)
        rows = rows[allowed.allows(rows)]
    else:
        rows = allowed.interventions(MAX_RATIOS)
    rows = working(rows[(rows != chosen).any(axis=1)], allowed)
    few = replace(belief, draws=belief.draws.first(DRAWS_OF_RIVALS))

    def ahead(believed: Belief, rows: Interventions) -> FloatArray:
        both = np.vstack([chosen[None], rows])
        # as the best was chosen: risks that hardly differ would make a rival better in every draw
        worth = allowed.worth(both).as_likely_to_fail(0)
        net = worth.net(believed.rewards(both, reward))
        return np.asarray(net[:, 1:] - net[:, :1])

    gaps = ahead(few, rows)
    rows = rows[np.lexsort((-gaps.mean(axis=0), -(gaps > 0).mean(axis=0)))[:RIVALS]]
    means = beliefs.to_maximise(belief.rewards(rows, reward).mean(axis=0))
    return [
        Rival(settings.named.levels(row.tolist()), float(mean), float(better), _tried(beliefs, row))
        for row, mean, better in zip(
            rows, means, (ahead(belief, rows) > 0).mean(axis=0), strict=True
        )
    ]


def _tried(beliefs: Beliefs, row: Interventions) -> int:
    return int((beliefs.regimes == row).all(axis=1).sum())


def next_to(beliefs: Beliefs, best: Interventions, rivals: list[Rival]) -> dict[str, Any]:
    """How often the best and its rivals were played, and whether it was nearly always of late."""
    lately = beliefs.regimes[-LATELY:]
    often = int((lately == best).all(axis=1).sum())
    stayed = ""
    if rivals and len(lately) == LATELY and often >= STAYED * LATELY:
        counts = [str(rival.tried) for rival in rivals]
        counts[-2:] = [" and ".join(counts[-2:])]
        times = "time" if counts == ["1"] else "times"
        stayed = (
            f"{often} of the last {LATELY} results are of this setting; its leading rivals were "
            f"tried {', '.join(counts)} {times}, and what is known of them beyond that comes from "
            "other settings"
        )
    return {"tried": _tried(beliefs, best), "stayed": stayed, "rivals": rivals}

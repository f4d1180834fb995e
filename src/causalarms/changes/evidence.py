"""`ChangeEvidence`: a detector with a guaranteed rate of false alarms, of all mechanisms together.

Every mechanism's rounds come as scores that are N(0, 1) and independent until it changes
(`predictive.py`). There are a few alternatives: scores that are wider, shifted, or follow one of
the predictors (a changed weight). Against each of them the Shiryaev-Roberts sum R <- (1 + R) L adds
up the likelihood ratios of all possible change points. Their average over the alternatives minus
the number of scores is a martingale until the change, so the mean time to a false alarm at R >= A
is at least A scores (an e-detector; Shin, Ramdas and Rinaldo 2024). With A = 1000 N / rate, and
mechanisms that start again at zero after their alarm, the number of false alarms expected in T
rounds is at most rate T / 1000.

Scores are normal if the noise is. With noise="any" only the rank of a score among earlier ones of
the same mechanism counts (`PastScores`): L is the probability of that rank under the alternative
over that if nothing changed, which is known for exchangeable scores of any distribution. Its mean
is one exactly. Mechanisms are never compared with each other: each has a distribution of its own.

Several mechanisms often change at once. After an alarm all others go on with an R of at least the
head start, which spends `HEAD_START` false alarms; A is larger by what false ones spend.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, IntArray, Interventions
from causalarms.changes.detector import PREDICTION, Alarm, Detector, Prediction, View
from causalarms.checks import choice, number
from causalarms.kernels import kernel
from causalarms.rng import stream
from causalarms.state import HasState, arrays

# A factor of two to three between spreads and between shifts: a change between two of them loses
# little, and each further alternative would divide the evidence of the others. Here: mean and
# spread of the scores after a change.
ALTERNATIVES = np.array(
    [(0.0, 1.6), (0.0, 3.0), (0.0, 8.0), (0.0, 25.0)]
    + [(sign * shift, 1.0) for shift in (1.0, 2.0, 4.0) for sign in (1.0, -1.0)]
)
# changes of a weight, in units of the noise per unit of the predictor, clipped to a shift
WEIGHT_CHANGES = np.array([0.3, -0.3, 1.0, -1.0])
LARGEST_SHIFT = 5.0
GAUSSIAN, ANY = NOISE = ("gaussian", "any")
HEAD_START = 0.05  # false alarms that are expected of it after every alarm, at most
MAX_LOG_RATIO = 600.0  # nats of one round: exp of more overflows
MAX_SUM = 1e300  # far above every alarm level, and finite
MIN_PROBABILITY = 1e-30  # keeps logarithms finite

MAX_REFERENCE = 1000  # the first scores of a mechanism; later ones are counted between them
FIRST_CAPACITY = 64  # of the arrays that hold them, which grow by doubling
RECENT_SCORES = 60  # the last of a mechanism, which an alternative may suppose to be changed
LARGEST_SCORE = 1e6  # infinite scores are the outermost ones, too
TIE_BREAKER = 1e-9  # relative size of what is added to scores, far below what is measured


class Evidence(NamedTuple):
    """Evidence for every alternative, of one mechanism or, with (R, N) in front, of all."""

    sums: FloatArray  # (alternatives,) R of Shiryaev and Roberts
    # Page's CUSUM, which says when a change most likely began: log ratio since that round
    gains: FloatArray  # (alternatives,)
    starts: IntArray  # (alternatives,) the round


class Cells(NamedTuple):
    """Between which two numbers scores lie, (N, alternatives) each; nan if not tested."""

    low: FloatArray
    high: FloatArray  # equal to low if the score itself counts
    chances: FloatArray  # of lying there if nothing changed


class ScoredRound(NamedTuple):
    """The scores of a round, and what they were predicted from."""

    cells: Cells
    predictors: npt.NDArray[np.bool_]  # (N, N) as [node, predictor]
    values: FloatArray  # (N,)
    stds: FloatArray  # (N,)


class ChangeEvidence(Detector):
    """Shiryaev-Roberts sums of all mechanisms.

    n_nodes                        number of nodes
    false_alarms_per_1000_rounds   of the whole system while nothing changes, at most
    noise                          "gaussian", or "any" distribution, of each mechanism its own:
                                   alarms then come some rounds later, and much later about a
                                   mechanism that was played in less than about 100 rounds
    n_regimes                      the largest number of regimes of a node
    """

    needs = (PREDICTION,)

    def __init__(
        self,
        n_nodes: int,
        *,
        false_alarms_per_1000_rounds: float = 0.1,
        noise: str = GAUSSIAN,
        n_regimes: int = 2,
    ) -> None:
        super().__init__(n_nodes, n_regimes=n_regimes)
        rate = number(
            "false_alarms_per_1000_rounds", false_alarms_per_1000_rounds, above=0.0, maximum=100.0
        )
        level = 1000.0 * self.n_nodes / rate
        # F false alarms take F A from the sums, T rounds add N T, head starts HEAD_START level F.
        self.level = (1.0 + HEAD_START) * level
        self.head_start = HEAD_START * level / (self.n_nodes * self.n_regimes)
        ranked = choice("noise", noise, NOISE) == ANY
        self._past = PastScores(self.n_nodes, self.n_regimes) if ranked else None
        n_alternatives = len(ALTERNATIVES) + len(WEIGHT_CHANGES) * self.n_nodes
        shape = (self.n_regimes, self.n_nodes, n_alternatives)
        self._evidence = Evidence(
            sums=np.zeros(shape), gains=np.zeros(shape), starts=np.zeros(shape, dtype=np.int64)
        )

    def watch(
        self, round_: int, intervention: npt.NDArray[np.uint8], values: FloatArray, view: View
    ) -> list[Alarm]:
        prediction = view.prediction(intervention, values)
        return self.observe(round_, intervention, prediction, view.scaled(values))

    def observe(
        self,
        round_: int,
        regimes: npt.NDArray[np.uint8],
        prediction: Prediction,
        values: FloatArray,  # (N,)
    ) -> list[Alarm]:
        """Add a round; alarms of the mechanisms it was played with."""
        evidence = self._evidence
        if self._past is None:
            scores = np.repeat(prediction.scores[:, None], evidence.sums.shape[2], axis=1)
            cells = Cells(scores, scores, scores)
        else:
            nodes = np.arange(self.n_nodes)
            began = evidence.gains[regimes, nodes] > 0.0
            since = np.where(began, evidence.starts[regimes, nodes], round_)
            cells = self._past.take_in(round_, regimes, prediction.scores, since)
        scored = ScoredRound(cells, prediction.predictors, values, prediction.stds)
        totals = add_scores(evidence, round_, regimes, scored)
        alarms = []
        for node in np.flatnonzero(totals >= self.level).tolist():
            m = int(regimes[node]), node
            first = int(evidence.starts[m][np.argmax(evidence.gains[m])])
            alarms.append(
                Alarm(round_, *m, first - 1, math.log(totals[node]), math.log(self.level))
            )
        if alarms:
            np.maximum(evidence.sums, self.head_start, out=evidence.sums)
        return alarms

    def forget(self, regime: int, node: int) -> None:
        """Start again with a mechanism that is learned again."""
        if self._past is not None:
            self._past.forget(regime, node)
        for held in self._evidence:
            held[regime, node] = 0

    def state(self) -> dict[str, Any]:
        state = {name: held.copy() for name, held in self._evidence._asdict().items()}
        return state if self._past is None else state | self._past.state()

    def restore(self, state: dict[str, Any]) -> None:
        for name, held in self._evidence._asdict().items():
            held[:] = state[name]
        if self._past is not None:
            self._past.restore(state)


@kernel
def add_scores(
    evidence: Evidence,  # of all mechanisms
    round_: int,
    regimes: npt.NDArray[np.uint8],  # (N,)
    scored: ScoredRound,
) -> FloatArray:
    """R of every mechanism the round was played with, (N,); 0 if it was not tested."""
    totals = np.zeros(len(regimes))
    n_kinds, n_changes = len(ALTERNATIVES), len(WEIGHT_CHANGES)
    for node in range(len(regimes)):
        m = regimes[node]
        own = Evidence(evidence.sums[m, node], evidence.gains[m, node], evidence.starts[m, node])
        cells = Cells(scored.cells.low[node], scored.cells.high[node], scored.cells.chances[node])
        if math.isnan(cells.low[0]):
            continue
        for k in range(n_kinds):
            _add(own, k, round_, log_ratio(cells, k, ALTERNATIVES[k, 0], ALTERNATIVES[k, 1]))
        for j in range(len(regimes)):
            if scored.predictors[node, j]:
                for c in range(n_changes):
                    k = n_kinds + n_changes * j + c
                    shift = WEIGHT_CHANGES[c] * scored.values[j] / scored.stds[node]
                    shift = min(max(shift, -LARGEST_SHIFT), LARGEST_SHIFT)
                    _add(own, k, round_, log_ratio(cells, k, shift, 1.0))
        # An average with fixed weights of martingales is a martingale. Which nodes predict a node
        # changes with what is known, so all nodes have the same weight.
        totals[node] = 0.5 * (own.sums[:n_kinds].mean() + own.sums[n_kinds:].mean())
    return totals


@kernel
def _add(evidence: Evidence, k: int, round_: int, ratio: float) -> None:
    """One more score for alternative k."""
    sums, gains, starts = evidence.sums, evidence.gains, evidence.starts
    ratio = min(ratio, MAX_LOG_RATIO)
    # R <- (1 + R) L: the 1 is the change point at this round (Shiryaev 1963, Roberts 1966)
    sums[k] = min((1.0 + sums[k]) * math.exp(ratio), MAX_SUM)
    # Page's CUSUM begins again whenever no change is the better explanation.
    if gains[k] <= 0.0:
        gains[k], starts[k] = 0.0, round_
    gains[k] += ratio


@kernel
def log_ratio(cells: Cells, k: int, mean: float, spread: float) -> float:
    """Of a mechanism's score: log density of N(mean, spread^2) over N(0, 1), or log probability of
    its cell for alternative k over that if nothing changed.
    """
    low, high = cells.low[k], cells.high[k]
    if low == high:
        return 0.5 * low**2 - 0.5 * ((low - mean) / spread) ** 2 - math.log(spread)
    mass = normal_mass((low - mean) / spread, (high - mean) / spread)
    return math.log(max(mass, MIN_PROBABILITY) / cells.chances[k])


@kernel
def normal_mass(low: float, high: float) -> float:
    """Probability of N(0, 1) between two numbers, exact in either tail."""
    if low > 0.0:
        low, high = -high, -low
    return 0.5 * (math.erfc(-high * math.sqrt(0.5)) - math.erfc(-low * math.sqrt(0.5)))


class Past(NamedTuple):
    """Earlier scores of one mechanism or, with (R, N) in front, of all."""

    reference: FloatArray  # (capacity,) the first scores, sorted
    born: IntArray  # (capacity,) the rounds they came in
    # (capacity + 1,) numbers of later scores: below the first, between two, above the last
    later: IntArray
    recent: FloatArray  # (RECENT_SCORES,) the last scores, a ring
    rounds: IntArray  # (RECENT_SCORES,) those they came in
    seen: IntArray  # () number of all


class PastScores(HasState):
    """Scores by their rank among all earlier ones of the same mechanism since its last change.

    While scores are exchangeable, a new one is equally likely to lie in each of the M + 1 gaps
    between M earlier ones, whatever their distribution and whatever the earlier ranks were. So it
    lies between two of them that have T others in between with probability (T + 1) / (M + 1).

    An alternative that supposes a change some rounds ago reads a score by the scores before that
    change: as a standard normal score between the quantiles of its two neighbours among them. The
    scores since count in T and M alone, so those of a change do not hide it.

    The first `MAX_REFERENCE` scores are kept. Later ones are only counted between them, which the
    probabilities above allow: memory is bounded, and nothing is approximated.
    """

    learned = arrays(*(f"_{name}" for name in Past._fields))

    def __init__(self, n_nodes: int, n_regimes: int) -> None:
        shape = (n_regimes, n_nodes)
        self._reference = np.zeros((*shape, FIRST_CAPACITY))
        self._born: IntArray = np.zeros((*shape, FIRST_CAPACITY), dtype=np.int64)
        self._later: IntArray = np.zeros((*shape, FIRST_CAPACITY + 1), dtype=np.int64)
        self._recent = np.zeros((*shape, RECENT_SCORES))
        self._rounds: IntArray = np.zeros((*shape, RECENT_SCORES), dtype=np.int64)
        self._seen: IntArray = np.zeros(shape, dtype=np.int64)

    def take_in(
        self, round_: int, regimes: Interventions, scores: FloatArray, since: IntArray
    ) -> Cells:
        """Cells of new scores, (N,), which then are earlier ones.

        since   (N, alternatives) the first round of the change that each alternative supposes
        """
        from scipy.special import ndtri

        capacity = self._reference.shape[2]
        if capacity < MAX_REFERENCE and self._seen.max() == capacity:
            more = ((0, 0), (0, 0), (0, min(capacity, MAX_REFERENCE - capacity)))
            self._reference, self._born = np.pad(self._reference, more), np.pad(self._born, more)
            self._later = np.pad(self._later, more)
        # Equal scores are put in a random order, which keeps ranks exact. The stream is seeded.
        score = np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)
        score += TIE_BREAKER * (1.0 + np.abs(score)) * stream(0, "ties", round_).random(len(score))
        past = Past(*(getattr(self, attribute) for attribute in self.learned))
        low, high, chances = find_cells(past, round_, regimes, score, since)
        return Cells(ndtri(low), ndtri(high), chances)

    def forget(self, regime: int, node: int) -> None:
        """Scores from before a change have another distribution."""
        for held in (self._later, self._rounds, self._seen):
            held[regime, node] = 0


@kernel
def find_cells(
    all_past: Past,
    round_: int,
    regimes: Interventions,  # (N,)
    scores: FloatArray,  # (N,)
    since: IntArray,  # (N, alternatives)
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Quantiles between which scores lie and the chances of that, (N, alternatives) each.

    The scores are then added to the past.
    """
    low = np.full(since.shape, np.nan)
    high, chances = low.copy(), low.copy()
    for node in range(len(scores)):
        score, m = scores[node], regimes[node]
        if math.isnan(score):
            continue
        past = Past(
            all_past.reference[m, node],
            all_past.born[m, node],
            all_past.later[m, node],
            all_past.recent[m, node],
            all_past.rounds[m, node],
            all_past.seen[m, node : node + 1],
        )
        seen = past.seen[0]
        n = min(seen, len(past.reference))
        place = np.searchsorted(past.reference[:n], score)
        below = place + past.later[:place].sum()
        for k in range(since.shape[1]):
            low[node, k], high[node, k], chances[node, k] = cell(
                past, score, place, below, since[node, k]
            )
        if n < len(past.reference):
            past.reference[place + 1 : n + 1] = past.reference[place:n].copy()
            past.born[place + 1 : n + 1] = past.born[place:n].copy()
            past.reference[place], past.born[place] = score, round_
        else:
            past.later[place] += 1
        past.recent[seen % RECENT_SCORES], past.rounds[seen % RECENT_SCORES] = score, round_
        past.seen[0] += 1
    return low, high, chances


@kernel
def cell(
    past: Past,  # of one mechanism
    score: float,
    place: int,  # of the score in the reference
    below: int,  # earlier scores below that place
    since: int,
) -> tuple[float, float, float]:
    """Quantiles of the score's neighbours from before the round `since`, and its chance."""
    seen = past.seen[0]
    n = min(seen, len(past.reference))
    if seen >= RECENT_SCORES:
        since = max(since, past.rounds[seen % RECENT_SCORES])
    left, right, inside = place, place, past.later[place]
    while left > 0 and past.born[left - 1] >= since:
        left -= 1
        inside += 1 + past.later[left]
        below -= 1 + past.later[left]
    while right < n and past.born[right] >= since:
        right += 1
        inside += 1 + past.later[right]
    young = young_below = young_inside = 0
    for i in range(min(seen, RECENT_SCORES)):
        if past.rounds[i] >= since:
            young += 1
            if left > 0 and past.recent[i] <= past.reference[left - 1]:
                young_below += 1
            elif right == n or past.recent[i] < past.reference[right]:
                young_inside += 1
    old = seen - young + 1.0
    low = below - young_below
    # One division: the quantile of the outermost cell must not be above one by rounding.
    return low / old, (low + inside - young_inside + 1.0) / old, (inside + 1.0) / (seen + 1.0)

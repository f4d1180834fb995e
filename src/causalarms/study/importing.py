"""Past rounds on their way into the log: all that takes time is done before others have to wait."""

from __future__ import annotations

from typing import Any, NamedTuple

from causalarms.errors import FarValueWarning, LearningWarning
from causalarms.study.endings import as_text
from causalarms.study.events import canonical_rows
from causalarms.study.far_values import far_values, in_words
from causalarms.study.inputs import PastRounds
from causalarms.study.once import once
from causalarms.study.trials import Ledger


class Import(NamedTuple):
    """The data of an event, but for the number of its first trial."""

    data: dict[str, Any]
    encoded: dict[str, str]  # its tables

    @property
    def n_rounds(self) -> int:
        return len(self.data["values"])


def prepare_import(rounds: PastRounds, source: str, key: str | None) -> Import:
    data: dict[str, Any] = {
        "interventions": rounds.interventions,
        "values": rounds.values,
        "source": as_text(source, "the source", empty=True),
    }
    encoded = {name: canonical_rows(data[name]) for name in ("interventions", "values")}
    return Import(data | once(key, data, encoded), encoded)


def remarks(ledger: Ledger, first: int, n_rounds: int) -> list[tuple[str, type[Warning]]]:
    """What to say of rounds that were imported, the first of them as this trial."""
    assert ledger.settings is not None
    found: list[tuple[str, type[Warning]]] = []
    numbers = range(first, first + n_rounds)
    left_out = sum(None in (ledger.trials[number].values or ()) for number in numbers)
    if left_out and not ledger.settings.learns_from_gaps:
        text = f"{left_out} of {n_rounds} rows are kept and left out of learning"
        found.append((text, LearningWarning))
    return found + [(text, FarValueWarning) for text in in_words(far_values(ledger, numbers))]

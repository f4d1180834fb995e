"""Values far outside the rest, kept up to date: a new result is compared with those around it."""

from __future__ import annotations

from causalarms.study.ledger import Ledger
from causalarms.study.suspects import WINDOW, SuspectValue, far_values

Far = dict[int, list[SuspectValue]]  # by trial


class FarValues:
    """By trial. A result is judged by the first ones and by those around it."""

    def __init__(self) -> None:
        self._found: Far = {}
        self._seen = 0  # results
        self._revision = 0

    def of(self, ledger: Ledger) -> Far:
        if (ledger.revision, len(ledger.order)) == (self._revision, self._seen):
            return self._found
        anew = ledger.revision != self._revision or self._seen <= 2 * WINDOW
        begin = 0 if anew else self._seen - WINDOW
        numbers = ledger.order[begin:]
        found = {} if anew else dict(self._found)
        for number in numbers:
            found.pop(number, None)
        for far in far_values(ledger, numbers):
            found.setdefault(far.trial, []).append(far)
        self._found, self._seen, self._revision = found, len(ledger.order), ledger.revision
        return found

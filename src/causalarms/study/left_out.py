"""Which results the policy does not learn from for now: probable typing errors."""

from __future__ import annotations

from typing import Any, NamedTuple

from causalarms.policies.base import Policy
from causalarms.study.limits import Limits
from causalarms.study.trials import Ledger


class LeftOutValue(NamedTuple):
    """A value whose trial is left out."""

    trial: int
    node: str
    value: float

    @property
    def message(self) -> str:
        return (
            f"trial {self.trial}: {self.node!r} = {self.value:g} left out as a probable typing "
            "error; it counts once others like it come, or corrected: "
            f"causalarms study correct FILE {self.trial} NODE=VALUE ..."
        )

    def as_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "message": self.message}


def left_out(ledger: Ledger, policy: Policy) -> list[LeftOutValue]:
    """Of the rounds the policy has learned, in the user's numbers and sign."""
    settings = ledger.settings
    assert settings is not None
    suspected = policy.left_out
    if not suspected:
        return []
    limits = Limits(settings)
    learned = [r for r in map(ledger.trials.__getitem__, ledger.order) if limits.learnable(r)]
    found = []
    for round_, node, _ in suspected:
        record = learned[round_ - 1]
        value = None if record.values is None else record.values[node]
        assert value is not None  # only what was told can be suspected
        found.append(LeftOutValue(record.number, settings.nodes[node], float(value)))
    return found

"""The columns of a table of trials, as `study export` writes it and readers of rounds know it."""

from __future__ import annotations

from collections.abc import Collection

PREFIX = "do:"  # before the name of a node: the regime it was in, 0 natural
OWN = "node:"  # before the name of a node that reads like another column
FIRST = ("trial", "state", "worker", "reason", "predicted", "learned", "corrected")
LAST = ("asked_at", "done_at", "remark", "far", "not_as_asked")
WITH_RESULT = ("told", "imported")  # states of trials that have one


def column_of(node: str) -> str:
    """The column of a node's values: its name, unless that could be another column.

    >>> column_of("heat"), column_of("trial"), column_of("do:heat"), column_of("node:trial")
    ('heat', 'node:trial', 'node:do:heat', 'node:node:trial')
    """
    taken = node in (*FIRST, *LAST) or node.startswith((PREFIX, OWN))
    return OWN + node if taken else node


def is_table_of_trials(columns: Collection[str]) -> bool:
    return all(name in columns for name in FIRST)

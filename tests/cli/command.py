"""Run the command line in this process: exit code, standard output, standard error."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import NamedTuple
from unittest.mock import patch

from causalarms.cli.main import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments: object) -> Outcome:
    """As `causalarms ARGUMENTS` in a shell, off a terminal."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        patch.object(sys, "argv", ["causalarms", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
    return Outcome(code, out.getvalue(), err.getvalue())

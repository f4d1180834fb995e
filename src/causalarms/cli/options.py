"""Options of every command that writes a file."""

from __future__ import annotations

import click

FORCE = click.option(
    "--force", is_flag=True, help="Replace a file this command did not make; never a study."
)

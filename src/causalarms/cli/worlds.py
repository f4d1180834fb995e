"""Options of commands that play or learn on systems with known truth, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from causalarms.cli.options import NODES, PROCESSES, SEED, with_settings
from causalarms.registry import part_of
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation.monte_carlo import ENGINES
from causalarms.simulation.world import BENDS, NOISE_LAWS

Command = TypeVar("Command", bound=Callable[..., Any])
OF_THE_ENSEMBLE = ("nodes", "regimes", "weights", "edge_probability")

_SYSTEMS = (
    click.option("--nodes", type=NODES, default=10, show_default=True),
    click.option(
        "--regimes",
        metavar="K|K1,K2,...",
        help="How many regimes nodes have: one number, or one per node (default: two).",
    ),
    click.option(
        "--weights",
        default="separated",
        show_default=True,
        metavar="separated|uniform|MODULE:FUNCTION",
        help="Law of the weights; a function of a generator and a number.",
    ),
    click.option("--edge-probability", type=click.FloatRange(0, 1), default=0.5, show_default=True),
    click.option(
        "--systems",
        metavar="MODULE:FUNCTION",
        help="Own systems: a function of a NumPy generator that makes a LinearSEM or a World.",
    ),
    click.option(
        "--system",
        "files",
        multiple=True,
        type=click.Path(path_type=Path),
        help="Own system, as LinearSEM.save wrote it; may be repeated, runs take them in turn.",
    ),
    click.option(
        "--noise",
        default="gaussian",
        show_default=True,
        metavar="|".join(NOISE_LAWS),
        help="Law of the noise, or MODULE:FUNCTION; several, separated by commas, in turn.",
    ),
    click.option(
        "--bend",
        metavar="|".join(BENDS),
        help="Mechanisms that are not linear, by name or MODULE:FUNCTION.",
    ),
    click.option("--unknown-noise-mean", is_flag=True, help="Do not tell anybody the noise means."),
    click.option("--seed", type=SEED, default=0, show_default=True),
)
_ENGINE = (
    click.option("--engine", type=click.Choice(ENGINES), default="local", show_default=True),
    click.option(
        "--address", help="Of a Dask scheduler; without it --engine dask starts a cluster."
    ),
    click.option(
        "--jobs",
        type=PROCESSES,
        default=-1,
        show_default=True,
        help="Worker processes; -1: one per core.",
    ),
    click.option(
        "--results",
        type=click.Path(path_type=Path),
        help="Keep finished runs in this file; the same command goes on from there.",
    ),
)


def systems_options(command: Command) -> Command:
    for option in reversed(_SYSTEMS):
        command = option(command)
    return command


def engine_options(command: Command) -> Command:
    for option in reversed(_ENGINE):
        command = option(command)
    return command


def worlds(
    *,
    nodes: int,
    regimes: str | None,
    weights: str,
    edge_probability: float,
    systems: str | None,
    files: tuple[Path, ...],
    noise: str,
    bend: str | None,
    unknown_noise_mean: bool,
    seed: int,
) -> dict[str, Any]:
    """What the options of systems say, in the words of `Worlds`."""
    if systems is not None and files:
        raise click.UsageError("--systems and --system are two ways to say the same: leave one out")
    if systems is not None or files:
        _refuse_ensemble("--systems" if files == () else "--system")
    own: Any = [LinearSEM.load(path) for path in files] or None
    laws = [part_of("noise", law.strip()) for law in noise.split(",")]
    return {
        "n_nodes": nodes,
        "regimes": _regimes(regimes),
        "weights": part_of("weights", weights),
        "edge_probability": edge_probability,
        "systems": own if systems is None else _function("systems", systems),
        "noise": laws[0] if len(laws) == 1 else laws,
        "bend": None if bend is None else part_of("bend", bend),
        "knows_noise_mean": not unknown_noise_mean,
        "seed": seed,
    }


def named_settings(text: str) -> tuple[str, str, dict[str, Any]]:
    """`name,setting=value,...`: name, label and settings; `label=` names the row.

    >>> named_settings("csl-ucb,joint=False,label=literal")
    ('csl-ucb', 'literal', {'joint': False})
    """
    name, settings = with_settings(text)
    return name, str(settings.pop("label", "")), settings


def _function(name: str, text: str) -> Any:
    if ":" not in text:
        raise click.BadParameter(
            f"{text!r} is not of the form MODULE:FUNCTION", param_hint=f"--{name}"
        )
    return part_of(name, text)


def _refuse_ensemble(owner: str) -> None:
    context = click.get_current_context()
    for name in OF_THE_ENSEMBLE:
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            raise click.UsageError(f"--{name.replace('_', '-')} is not for {owner}: leave it out")


def _regimes(text: str | None) -> int | tuple[int, ...] | None:
    if text is None:
        return None
    try:
        counts = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{text!r:.80} is no number of regimes, nor one per node", param_hint="--regimes"
        ) from None
    return counts if len(counts) > 1 else counts[0]

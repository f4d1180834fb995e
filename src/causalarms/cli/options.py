"""Options and kinds of values that several commands share."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from causalarms.extras import require_extra
from causalarms.files import refuse_output
from causalarms.limits import MAX_NODES
from causalarms.registry import part_of

Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
# NumPy has no negative seeds.
SEED = click.IntRange(min=0)
NODES = click.IntRange(min=2, max=MAX_NODES)
SAMPLES = click.IntRange(min=1, max=10**9)
ENSEMBLE_OPTIONS = ("nodes", "regimes", "weights", "edge_probability")  # of random systems only

FORCE = click.option(
    "--force", is_flag=True, help="Replace a file this command did not make; never a study."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
RANDOM = click.option("--seed", type=SEED, default=0, help="Seed of all random numbers.")
TIERS = click.option(
    "--tier",
    "--tiers",
    "tier",
    multiple=True,
    metavar="A,B,...",
    help="Nodes of a tier, earliest first; no edge goes from a later tier to an earlier one.",
)


def stacked(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator; help lists them in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# Where a table says what was switched, for every command that reads one.
TABLE = stacked(
    click.option(
        "--interventions", type=PATH, help="Second table, with a column of regimes per node."
    ),
    click.option(
        "--intervened",
        metavar="COLUMN",
        help="Column that names the switched nodes, separated by ';'.",
    ),
    click.option(
        "--ignore", multiple=True, metavar="COLUMN", help="Column to leave out; may be repeated."
    ),
)


def with_settings(text: str) -> tuple[str, dict[str, Any]]:
    """`name,setting=value,...`; values are numbers, True, False, lists or text."""
    name, *pairs = text.split(",")
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is not of the form setting=value")
        key = key.strip()
        if key in settings:
            raise click.BadParameter(f"the setting {key!r} is given twice")
        try:
            # Literals only: a setting from the command line must never run code.
            settings[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            settings[key] = value.strip()
    return name.strip(), settings


def edge(text: str) -> tuple[str, str]:
    """`A->B`, or `A:B` for shells in which > redirects.

    >>> edge("heat->yield"), edge("heat:yield")
    (('heat', 'yield'), ('heat', 'yield'))
    """
    arrow = "->" if "->" in text else ":"
    parent, _, child = (part.strip() for part in text.partition(arrow))
    # With a second colon it is not clear which one separates the names.
    if not parent or not child or (arrow == ":" and ":" in child):
        raise click.BadParameter(f"{text!r} is not of the form A->B")
    return parent, child


def edges(option: str, *, words: str) -> Callable[[Command], Command]:
    """An option that may be repeated, an edge each time."""
    return click.option(option, multiple=True, metavar="A->B|A:B", help=words)


def knowledge(
    tier: tuple[str, ...], excluded: tuple[str, ...], required: tuple[str, ...]
) -> dict[str, Any]:
    """What these options say, as settings of learners and studies."""
    return {
        "tiers": [names(text) for text in tier],
        "excluded": [edge(text) for text in excluded],
        "required": [edge(text) for text in required],
    }


class Processes(click.IntRange):
    """A number of processes, or -1 for one per core."""

    def __init__(self) -> None:
        super().__init__(min=-1, max=1024)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = int(super().convert(value, param, ctx))
        # joblib would refuse it only when the first run starts.
        if number == 0:
            self.fail("0 processes do nothing; -1 is one per core.", param, ctx)
        return number


PROCESSES = Processes()


def systems_options(command: Command) -> Command:
    """Options that say which systems with known truth are played or learned."""
    # Imported here: commands of a study share the options above and simulate nothing.
    from causalarms.simulation.noise import NOISE_DISTRIBUTIONS
    from causalarms.simulation.world import BENDS

    return stacked(
        click.option("--nodes", type=NODES, default=10, help="Number of nodes."),
        click.option(
            "--regimes",
            metavar="K|K1,K2,...",
            help="Number of regimes of every node, or one number per node (default: two).",
        ),
        click.option(
            "--weights",
            default="separated",
            metavar="separated|uniform|MODULE:FUNCTION",
            help="Distribution of the weights, or a function of a generator and a number.",
        ),
        click.option(
            "--edge-probability",
            type=click.FloatRange(0, 1),
            default=0.5,
            help="Probability of every edge.",
        ),
        click.option(
            "--systems",
            metavar="MODULE:FUNCTION",
            help="Own systems: a function of a NumPy generator that makes a LinearSEM or a World.",
        ),
        click.option(
            "--system",
            "files",
            multiple=True,
            type=PATH,
            help="Own system, as LinearSEM.save wrote it; may be repeated, runs take them in turn.",
        ),
        click.option(
            "--noise",
            default="gaussian",
            metavar="|".join(NOISE_DISTRIBUTIONS),
            help="Distribution of the noise, or MODULE:FUNCTION; systems take several, "
            "separated by commas, in turn.",
        ),
        click.option(
            "--bend",
            metavar="|".join(BENDS),
            help="Mechanisms that are not linear, by name or MODULE:FUNCTION.",
        ),
        click.option(
            "--unknown-noise-mean", is_flag=True, help="Do not tell the means of the noise."
        ),
        RANDOM,
    )(command)


def engine_options(command: Command) -> Command:
    """Options that say where runs are computed."""
    from causalarms.simulation.monte_carlo import ENGINES

    return stacked(
        click.option(
            "--engine", type=click.Choice(ENGINES), default="local", help="Where runs are computed."
        ),
        click.option(
            "--address",
            help="Address of a Dask scheduler (default: start a cluster on this machine).",
        ),
        click.option(
            "--jobs",
            type=PROCESSES,
            default=-1,
            help="Number of worker processes; -1 is one per core.",
        ),
    )(command)


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
    """What `systems_options` say, as arguments of `Worlds`."""
    if systems is not None and files:
        raise click.UsageError("--systems and --system are two ways to say the same: leave one out")
    if systems is not None or files:
        owner = "--systems" if files == () else "--system"
        refuse_given(ENSEMBLE_OPTIONS, f"not for {owner}: leave it out")
    from causalarms.sem.linear_sem import LinearSEM

    counts = integers(regimes, "--regimes", "a number of regimes, or one per node") or (None,)
    own: Any = [LinearSEM.load(path) for path in files] or None
    distributions = [part_of("noise", name.strip()) for name in noise.split(",")]
    return {
        "n_nodes": nodes,
        "regimes": counts if len(counts) > 1 else counts[0],
        "weights": part_of("weights", weights),
        "edge_probability": edge_probability,
        "systems": own if systems is None else _function("systems", systems),
        "noise": distributions[0] if len(distributions) == 1 else distributions,
        "bend": None if bend is None else part_of("bend", bend),
        "knows_noise_mean": not unknown_noise_mean,
        "seed": seed,
    }


def named_settings(text: str) -> tuple[str, str, dict[str, Any]]:
    """`name,setting=value,...`: name, label and settings; `label=` names the row.

    >>> named_settings("csl-ucb,hold=False,label=free")
    ('csl-ucb', 'free', {'hold': False})
    """
    name, settings = with_settings(text)
    return name, str(settings.pop("label", "")), settings


def _function(name: str, text: str) -> Any:
    if ":" not in text:
        raise click.BadParameter(
            f"{text!r} is not of the form MODULE:FUNCTION", param_hint=f"--{name}"
        )
    return part_of(name, text)


def refuse_given(names: Collection[str], why: str) -> None:
    """UsageError if one of these options of the current command was given."""
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "")
        if option.name in names and given is not click.core.ParameterSource.DEFAULT:
            # By its first spelling: the name of the parameter may be that of a setting.
            raise click.UsageError(f"{option.opts[0]} is {why}")


def refuse_picture(path: Path, made_by: str, inputs: Iterable[Path] = (), *, force: bool) -> None:
    """Refuse before the work whose picture it is: that may take hours, and would be lost."""
    require_extra("plot", f"the picture {path}")
    # Imported here: the module imports matplotlib, which most commands do without.
    from causalarms.pictures.style import checked_ending, picture_mark

    checked_ending(path)
    refuse_output(path, picture_mark(path, made_by), inputs=inputs, force=force)


def integers(text: str | None, option: str, of: str) -> tuple[int, ...]:
    """`1,2,...`; nothing is none."""
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise click.BadParameter(f"{text!r:.80} must be {of}", param_hint=option) from None


def names(text: str | None) -> list[str] | None:
    """A list of names separated by commas."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]

"""Commands that move studies between files and check them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from causalarms.cli.rounds_from_file import PREFIX, read_rounds
from causalarms.cli.study_options import FILE, JSON
from causalarms.cli.terminal import collected_warnings, print_json
from causalarms.errors import StudyError
from causalarms.files import write_atomically
from causalarms.study import Study
from causalarms.study.exchange import FORMAT, log_text, table_text
from causalarms.study.history import columns
from causalarms.study.upgrade import upgrade as upgrade_file
from causalarms.study.verification import recover as recover_file
from causalarms.study.verification import verify_file
from causalarms.tables import read_table


@click.command("import")
@FILE
@click.argument("source", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--intervened", metavar="COLUMN", help="Column that names the switched nodes.")
@JSON
def import_(file: Path, source: Path, intervened: str | None, as_json: bool) -> None:
    """Add past rounds from SOURCE (CSV, Parquet), or restore an exported study (JSON).

    A table has a column per node and says what was switched by 0/1 columns do:NODE, or by one
    column of names separated by ';' (--intervened). Empty cells were not measured.
    """
    if source.suffix == ".json":
        _check_export(source)
        with Study.import_from(source, file) as study:
            number = len(study.ledger().trials)
        if as_json:
            print_json({"file": str(file), "trials": number})
        else:
            click.echo(f"restored {file}: {number} trials")
        return
    messages: list[str] = []
    with Study.open(file) as study, collected_warnings(messages, show=not as_json):
        number = study.add_observations(
            _rounds(source, study.nodes, intervened), source=source.name
        )
    if as_json:
        print_json({"imported": number, "warnings": messages})
    else:
        click.echo(f"imported {number} rounds")


@click.command()
@FILE
@click.option("--out", "path", type=click.Path(path_type=Path), help=".json, .csv or .parquet")
@click.option("--csv", "as_csv", is_flag=True, help="Print the trials instead of the log.")
@JSON
def export(file: Path, path: Path | None, as_csv: bool, as_json: bool) -> None:
    """The whole log (JSON), or the table of trials (CSV, Parquet)."""
    with Study.open(file, read_only=True) as study:
        if path is not None:
            study.export(path)
            if as_json:
                print_json({"file": str(path)})
            else:
                click.echo(f"wrote {path}")
        elif as_csv:
            click.echo(table_text(columns(study.ledger())), nl=False)
        else:
            click.echo(log_text(study.store), nl=False)


@click.command()
@FILE
@click.option("--replay", is_flag=True, help="Also check every suggestion; takes its time.")
@click.option("--quick", is_flag=True, help="Do not compare the snapshot with what the log gives.")
@click.option("--drop-snapshot", is_flag=True, help="Delete the snapshot first; nothing is lost.")
@JSON
def verify(file: Path, replay: bool, quick: bool, drop_snapshot: bool, as_json: bool) -> None:
    """Check every event; exit code 1 where one, or the snapshot, cannot be trusted."""
    if drop_snapshot:
        with Study.open(file) as study:
            study.drop_snapshot()
    verdict = verify_file(file, replay=replay, quick=quick)
    if as_json:
        print_json(verdict.as_dict())
    else:
        click.echo(
            f"{'ok' if verdict.ok else 'DAMAGED'}: {verdict.message}; {verdict.events} events, "
            f"{verdict.trials} trials, {verdict.told} told"
        )
        for remark in verdict.remarks:
            click.echo(f"remark: {remark}")
        if verdict.first_bad is not None and verdict.events:
            click.echo(f"events 1 to {verdict.events} are intact: causalarms study recover")
    if not verdict.ok:
        raise click.exceptions.Exit(1)


@click.command()
@FILE
@click.argument("rescued", type=click.Path(path_type=Path))
@JSON
def recover(file: Path, rescued: Path, as_json: bool) -> None:
    """Copy the intact beginning of a damaged study to RESCUED."""
    verdict = recover_file(file, rescued)
    if as_json:
        print_json(verdict.as_dict())
    else:
        click.echo(f"rescued {verdict.events} events, {verdict.told} told trials into {rescued}")


@click.command()
@FILE
@JSON
def upgrade(file: Path, as_json: bool) -> None:
    """Bring the file of an older version to this one."""
    before, now = upgrade_file(file)
    if as_json:
        print_json({"before": before, "now": now})
    else:
        click.echo(f"{file}: version {now}" + (" already" if before == now else f", was {before}"))


@click.command()
@FILE
@click.option(
    "--out", "path", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True
)
@JSON
def report(file: Path, path: Path, as_json: bool) -> None:
    """A self-contained web page: reward, graph, alarms, model checks, all trials."""
    from causalarms.cli.study_report import page

    with Study.open(file, read_only=True) as study:
        write_atomically(path, page(study, file.name))
    if as_json:
        print_json({"file": str(path)})
    else:
        click.echo(f"wrote {path}")


def _check_export(source: Path) -> None:
    try:
        with source.open(encoding="utf-8") as file:
            first = json.loads(file.readline())
    except (OSError, ValueError, RecursionError) as error:
        raise StudyError(f"{source} is no exported study: {error}") from error
    if not isinstance(first, dict) or first.get("format") != FORMAT:
        raise StudyError(f"{source} is no exported study")


def _rounds(
    source: Path, nodes: tuple[str, ...], intervened: str | None
) -> dict[str, list[float | None]]:
    """Columns of numbers from a table; the words of `learn` for what was switched."""
    text = read_table(source)
    missing = [node for node in nodes if node not in text]
    if missing:
        raise StudyError(f"{source} has no column for node {missing[0]!r}")
    wanted = [name for name in text if name.removeprefix(PREFIX) in nodes]
    table = {name: [_number(c, name, i) for i, c in enumerate(text[name])] for name in wanted}
    if intervened is not None:
        found = read_rounds(source, intervened=intervened, nodes=list(nodes)).rounds.regimes
        for i, node in enumerate(nodes):
            table[PREFIX + node] = [float(bit) for bit in found[:, i]]
    return table


def _number(cell: str, name: str, row: int) -> float | None:
    if not cell:
        return None
    try:
        return float(cell)
    except ValueError:
        raise StudyError(f"row {row + 1} of column {name!r} is {cell!r}, not a number") from None

"""Commands that move studies and their results between files."""

from __future__ import annotations

import json
from pathlib import Path

import click

from causalarms.cli.options import FORCE
from causalarms.cli.study_options import FILE, JSON
from causalarms.cli.study_place import StudyPlace, file_of, inputs_of, open_study
from causalarms.cli.terminal import collected_warnings, print_data, print_json, say
from causalarms.errors import StudyError
from causalarms.files import read_text
from causalarms.limits import LOG_BYTES
from causalarms.outputs import refuse_output, write_output
from causalarms.plain_text import printable
from causalarms.study import Study
from causalarms.study.exchange import FORMAT, log_text
from causalarms.study.report import columns
from causalarms.tables.write import columns_text


@click.command("import")
@FILE
@click.argument("source", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--interventions",
    type=click.Path(path_type=Path),
    help="Second table with a 0/1 column per node.",
)
@click.option(
    "--intervened",
    metavar="COLUMN",
    help="Column that names the switched nodes, separated by ';'.",
)
@click.option("--ignore", multiple=True, metavar="COLUMN", help="Column to leave out.")
@JSON
def import_(
    file: StudyPlace,
    source: Path,
    interventions: Path | None,
    intervened: str | None,
    ignore: tuple[str, ...],
    as_json: bool,
) -> None:
    """Add past rounds from SOURCE (CSV, Parquet), or restore an exported study (JSON).

    A table has a column per node and says what was switched by 0/1 columns do:NODE, or by a
    column 'intervened' of names separated by ';', or by a second table. Empty cells were not
    measured. Other columns are refused unless they are ignored; a table that `export` wrote is
    read as it is.
    """
    if source.suffix == ".json":
        if interventions is not None or intervened is not None or ignore:
            raise click.UsageError("--interventions, --intervened and --ignore are for tables")
        _check_export(source)
        with Study.import_from(source, file_of(file)) as study:
            number = len(study.ledger().trials)
        if as_json:
            print_json({"file": str(file), "trials": number})
        else:
            say(f"restored {file}: {number} trials")
        return
    messages: list[str] = []
    with open_study(file) as study, collected_warnings(messages, show=not as_json):
        number = study.add_observations(
            source,
            interventions,
            printable(source.name),
            intervened=intervened,
            ignore=ignore,
        )
    if as_json:
        print_json({"imported": number, "warnings": messages})
    else:
        say(f"imported {number} rounds")


@click.command()
@FILE
@click.option("--out", "path", type=click.Path(path_type=Path), help=".json, .csv or .parquet")
@click.option("--csv", "as_csv", is_flag=True, help="Print the trials instead of the log.")
@FORCE
@JSON
def export(file: StudyPlace, path: Path | None, as_csv: bool, force: bool, as_json: bool) -> None:
    """The whole log (JSON), or the table of trials (CSV, Parquet)."""
    with open_study(file, read_only=True) as study:
        if path is not None:
            study.export(path, force=force)
            if as_json:
                print_json({"file": str(path)})
            else:
                say(f"wrote {path}")
        elif as_csv:
            print_data(columns_text(columns(study.ledger())))
        else:
            print_data(log_text(study.store))


@click.command()
@FILE
@click.option(
    "--out", "path", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True
)
@FORCE
@JSON
def report(file: StudyPlace, path: Path, force: bool, as_json: bool) -> None:
    """A self-contained web page: reward, graph, alarms, model checks, all trials."""
    from causalarms.cli.study_report import MARK, page

    refuse_output(path, MARK, inputs=inputs_of(file), force=force)
    with open_study(file, read_only=True) as study:
        write_output(path, page(study, file.name), MARK, inputs=inputs_of(file), force=force)
    if as_json:
        print_json({"file": str(path)})
    else:
        say(f"wrote {path}")


def _check_export(source: Path) -> None:
    try:
        first = json.loads(read_text(source, LOG_BYTES).partition("\n")[0])
    except (ValueError, RecursionError) as error:
        raise StudyError(f"{source} is no exported study: {error}") from error
    if not isinstance(first, dict) or first.get("format") != FORMAT:
        raise StudyError(f"{source} is no exported study")

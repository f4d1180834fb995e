"""Commands that make, move, check and save the file of a study, or write what it has learned."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click

from causalarms.cli.options import (
    FORCE,
    PATH,
    SEED,
    TABLE,
    TIERS,
    edges,
    knowledge,
    names,
    with_settings,
)
from causalarms.cli.study_options import (
    AT_MOST,
    COST,
    FAILURE_REWARD,
    FORBID,
    HORIZON,
    INTERVENABLE,
    POLICY,
    REQUIRE,
    WORKER,
    Address,
    StudyPlace,
    factors,
    file_of,
    inputs_of,
    levels,
    numbers,
    open_study,
    study_command,
    with_set_levels,
    worker_of,
)
from causalarms.cli.terminal import (
    collected_warnings,
    emit,
    print_data,
    print_json,
    print_table,
    say,
)
from causalarms.errors import StudyError
from causalarms.extras import require_extra
from causalarms.files import printable, refuse_output, shown_number, shown_probability, write_output
from causalarms.tables.write import columns_text

CONTEXT_NODES = click.option(
    "--context",
    metavar="A,B,...",
    help="Nodes that no factor moves and that nothing else causes, such as the weather.",
)


@study_command
@click.option("--nodes", required=True, metavar="A,B,...", help="Names of all measured quantities.")
@click.option("--reward", required=True, metavar="NODE", help="Node to maximize.")
@click.option("--minimize", is_flag=True, help="Minimize the reward instead of maximizing it.")
@click.option(
    "--changes", is_flag=True, help="Watch for mechanisms that change while you experiment."
)
@POLICY
@HORIZON
@click.option(
    "--factor",
    multiple=True,
    metavar="NAME[=LEVEL,...][@NODE,...[:EFFECT]]",
    help="A factor you set, with its levels (LOW..HIGH/STEP for numbers; default: off,on) and the "
    "nodes it acts on (`unknown`: what the data say; default: the node of its name, or unknown). "
    "EFFECT is shift or free: these nodes have a mechanism per level. May be repeated.  "
    "[default: a switch of every node but the reward]",
)
@CONTEXT_NODES
@click.option(
    "--sets",
    multiple=True,
    metavar="FACTOR=LEVEL,...",
    help="Levels that fix the value of the nodes: then nothing else causes them.",
)
@INTERVENABLE
@AT_MOST
@FORBID
@REQUIRE
@TIERS
@edges("--exclude-edge", words="Edge that does not exist.")
@edges("--require-edge", words="Edge that exists.")
@COST
@FAILURE_REWARD
@click.option("--noise-mean", type=float, help="Known mean of the noise of every node.")
@click.option("--seed", type=int, default=0, help="Seed of all random numbers.")
def create(
    file: StudyPlace, nodes: str, reward: str, seed: int, changes: bool, as_json: bool, **given: Any
) -> None:
    """Begin a study in a new FILE."""
    from causalarms.policies.registry import not_compared
    from causalarms.study import Study
    from causalarms.study.settings import CONSTRAINTS

    said = _said(given)
    with Study.create(
        file_of(file),
        nodes=names(nodes) or [],
        reward=reward,
        direction="minimize" if given["minimize"] else "maximize",
        constraints={name: said.pop(name) for name in CONSTRAINTS if name in said},
        factors=with_set_levels(factors(given["factor"], names(nodes) or []), given["sets"]),
        noise_mean=given["noise_mean"],
        knowledge=knowledge(given["tier"], given["exclude_edge"], given["require_edge"]),
        seed=seed,
        changes=changes,
        **said,
    ) as study:
        emit(
            as_json,
            {"file": str(file), "settings": study.settings.as_dict()},
            f"created {file}: {len(study.nodes)} nodes, reward {reward}",
            *filter(None, [not_compared(study.settings.policy)]),
        )


@study_command
@click.option(
    "--retire",
    multiple=True,
    metavar="FACTOR=LEVEL",
    help="A level that must not be set any more; may be repeated.",
)
@click.option(
    "--new-level",
    multiple=True,
    metavar="FACTOR=LEVEL,...",
    help="Levels that a factor has from now on as well; may be repeated.",
)
@CONTEXT_NODES
@INTERVENABLE
@AT_MOST
@FORBID
@REQUIRE
@COST
@FAILURE_REWARD
@POLICY
@HORIZON
def change(file: StudyPlace, as_json: bool, **given: Any) -> None:
    """Go on with other settings; what was learned stays.

    What is named replaces what there was, all rules of --forbid those before them. A level is
    retired besides them.
    """
    changes = _said(given)
    forbidden = changes.pop("forbidden", [])
    if given["new_level"]:
        new = factors(given["new_level"]) or {}
        for name, entry in new.items():
            if "levels" not in entry:
                raise click.UsageError(f"--new-level: name the new levels, {name}=LEVEL,...")
        changes["new_levels"] = {name: entry["levels"] for name, entry in new.items()}
    messages: list[str] = []
    with open_study(file_of(file)) as study, collected_warnings(messages, show=not as_json):
        if given["forbid"] or given["retire"]:
            before = forbidden or study.settings.as_dict()["forbidden"]
            changes["forbidden"] = [*before, *map(levels, given["retire"])]
        if not changes:
            raise click.UsageError("say what to change: causalarms study change --help")
        study.change_settings(**changes)
        record = {"file": str(file), "settings": study.settings.as_dict(), "warnings": messages}
    emit(as_json, record, f"changed {', '.join(changes)} of {file}")


@study_command
@click.argument("source", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@TABLE
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
    column 'intervened' or 'intervention_targets' of names separated by ';', or by a second table.
    Empty cells were not measured. Other columns are refused unless they are ignored; a table that
    `export` wrote is read as it is.
    """
    if source.suffix == ".json":
        if interventions is not None or intervened is not None or ignore:
            raise click.UsageError("--interventions, --intervened and --ignore are for tables")
        from causalarms.study import Study

        with Study.import_from(source, file_of(file)) as study:
            number = len(study.ledger().trials)
        emit(as_json, {"file": str(file), "trials": number}, f"restored {file}: {number} trials")
        return
    messages: list[str] = []
    with open_study(file) as study, collected_warnings(messages, show=not as_json):
        number = study.import_rounds(
            source, interventions, printable(source.name), intervened=intervened, ignore=ignore
        )
    emit(as_json, {"imported": number, "warnings": messages}, f"imported {number} rounds")


@study_command
@click.option("--out", "path", type=PATH, help="File to write: .json, .csv or .parquet.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the trials instead of the log.")
@FORCE
def export(file: StudyPlace, path: Path | None, as_csv: bool, force: bool, as_json: bool) -> None:
    """Write the whole log (JSON), or the table of trials (CSV, Parquet)."""
    from causalarms.study.exchange import log_text
    from causalarms.study.report import columns

    with open_study(file, read_only=True) as study:
        if path is not None:
            study.export(path, force=force)
            emit(as_json, {"file": str(path)}, f"wrote {path}")
        elif as_csv:
            print_data(columns_text(columns(study.ledger(), study.left_out())))
        else:
            print_data(log_text(study.store))


@study_command
@click.option(
    "--out", "path", type=PATH, default=Path("report.html"), help="File to write the page to."
)
@FORCE
def report(file: StudyPlace, path: Path, force: bool, as_json: bool) -> None:
    """Write a web page in one file: reward, graph, alarms, model checks and all trials."""
    require_extra("serve", "`causalarms study report`")
    from causalarms.service.report import MARK, page

    # Before the log is learned, which may take a minute.
    refuse_output(path, MARK, inputs=inputs_of(file), force=force)
    with open_study(file, read_only=True) as study:
        write_output(path, page(study, file.name), MARK, inputs=inputs_of(file), force=force)
    emit(as_json, {"file": str(path)}, f"wrote {path}")


@study_command
@click.option(
    "--replay", is_flag=True, help="Also check every suggestion; this learns the log again."
)
def verify(file: StudyPlace, replay: bool, as_json: bool) -> None:
    """Check every event; exit code 1 if one cannot be trusted."""
    from causalarms.study import repair

    if isinstance(file, Address):
        with open_study(file) as study:
            verdict = study.verify(replay=replay)
    else:
        # By its full name: only a replay imports the policies.
        learner = import_module("causalarms.study.learner").StudyPolicy if replay else None
        verdict = repair.verify(file, replay=learner)
    lines = [
        f"{'ok' if verdict.ok else 'DAMAGED'}: {verdict.message}; {verdict.events} events, "
        f"{verdict.trials} trials, {verdict.told} told",
        *(f"remark: {remark}" for remark in verdict.remarks),
    ]
    if verdict.first_bad is not None and verdict.last_told is not None:
        lines.append(f"the last trial whose result is sure is {verdict.last_told}")
    if verdict.first_bad is not None:
        lines.append(f"save the intact events: causalarms study recover {file} NEW.db")
    emit(as_json, verdict.as_dict(), *lines)
    if not verdict.ok:
        # The record was printed: scripts look at the exit code, people at the text.
        raise click.exceptions.Exit(1)


@study_command
@click.argument("rescued", type=PATH)
@click.option(
    "--settings-from",
    metavar="BACKUP",
    type=PATH,
    help="A backup of the same study, for its settings if the first event is gone.",
)
def recover(file: StudyPlace, rescued: Path, settings_from: Path | None, as_json: bool) -> None:
    """Copy all intact events of a damaged study to RESCUED, and say what is gone.

    Every intact event is also written to RESCUED.events.jsonl, a line of JSON each.
    """
    from causalarms.study import repair

    rescue = repair.recover(file_of(file), rescued, settings_from=settings_from)
    emit(
        as_json,
        rescue.as_dict(),
        f"rescued {rescue.kept} events, {rescue.verdict.told} told trials into {rescued}",
        f"every intact event is in {rescue.events_file}",
        *rescue.verdict.remarks,
    )


@study_command
@click.argument("copy", type=PATH)
def backup(file: StudyPlace, copy: Path, as_json: bool) -> None:
    """Copy a study, also while it is in use, to COPY; the copy is checked."""
    from causalarms.study import repair

    if isinstance(file, Address):
        with open_study(file) as study:
            verdict = study.backup(copy)
    else:
        # The log alone: the policy of the study need not be installed.
        verdict = repair.backup(file, copy)
    emit(
        as_json,
        {"file": str(copy)} | verdict.as_dict(),
        f"copied {verdict.events} events, {verdict.told} told trials to {copy}",
    )


@study_command
@click.option(
    "--sem", "system", type=PATH, required=True, help="The system, as LinearSEM.save wrote it."
)
@click.option("--rounds", type=click.IntRange(min=1), default=200, help="Number of rounds to play.")
@WORKER
@click.option("--noise-seed", type=SEED, default=0, help="Seed of the results.")
def simulate_on(
    file: StudyPlace,
    system: Path,
    rounds: int,
    worker: str | None,
    noise_seed: int,
    as_json: bool,
) -> None:
    """Ask and tell, with the results of a known system, for teaching and testing."""
    import numpy as np

    from causalarms.rng import stream
    from causalarms.sem.linear_sem import LinearSEM

    sem = LinearSEM.load(system)
    with open_study(file) as study:
        if sem.nodes != study.nodes:
            raise StudyError(
                f"the system has nodes {', '.join(sem.nodes)}, the study {', '.join(study.nodes)}"
            )
        player = worker_of(study, file, worker)
        for _ in range(rounds):
            trial = study.ask(worker=player)
            a = np.array([list(trial.intervention.values())], dtype=np.uint8)
            # A stream per trial: the same results if the command is interrupted and run again.
            study.tell(trial, sem.sample(a, stream(noise_seed, "noise", trial.number))[0])
        best, settings = study.best(), study.settings
    found = np.array([list(best.intervention.values())], dtype=np.uint8)
    # The mean, not one more sample: what the best would give in the long run.
    expected = float(sem.mean(found)[0, sem.nodes.index(settings.reward)])
    emit(
        as_json,
        {"rounds": rounds, "best": best, "true_reward_of_best": expected},
        f"{rounds} rounds; best: {best.words}, "
        f"predicted {shown_number(best.reward, best.high - best.low)}, "
        f"true {shown_number(expected, best.high - best.low)}",
    )


@study_command
@click.option(
    "--out", "path", type=PATH, help="File to write the graph to: .json, .csv, .graphml or .dot."
)
@click.option(
    "--switch",
    metavar="A,B=LEVEL,...",
    help="Factors that are on, or their levels ('' for none): the graph of this one setting.",
)
@FORCE
def graph(
    file: StudyPlace, path: Path | None, switch: str | None, force: bool, as_json: bool
) -> None:
    """Show the learned edges of every regime, or of one setting."""
    from causalarms.study.report import edges as edges_of
    from causalarms.study.report import unknown

    with open_study(file, read_only=True) as study:
        found, named = study.graph(levels(switch)), study.settings.named
        reward = study.settings.reward
    if path is not None:
        found.save(path, inputs=inputs_of(file), force=force)
    if as_json:
        without = [{"regime": r, "node": node} for r, node in found.unknown()]
        print_json({"nodes": found.nodes, "edges": edges_of(found, named), "unknown": without})
        return
    rows = [
        [
            e["when"],
            e["parent"],
            e["child"],
            shown_number(e["weight"], e["standard_error"], sign=True),
            shown_number(e["standard_error"], e["standard_error"]),
            shown_probability(e["probability"]),
            shown_number(e["reward_effect"], abs(e["reward_effect"]), sign=True),
        ]
        for e in edges_of(found, named)
    ]
    moves = f"moves {reward} by"
    print_table(["when", "parent", "child", "weight", "+-", "probability", moves], rows)
    if found.factors:
        last = "its level" if switch is not None else "its last level"
        say(f"The weight of a factor is what {last} adds, compared with its first.")
    if found.unknown():
        few = unknown(found, named)
        say("too few rounds: " + ", ".join(f"{node} ({when})" for node, when in few))


def _said(given: dict[str, Any]) -> dict[str, Any]:
    """The options that `create` and `change` share, as settings; only those that were given."""
    found = {name: given[name] for name in ("max_interventions", "failure_reward", "horizon")}
    if given["policy"] is not None:
        found["policy"], found["policy_settings"] = with_settings(given["policy"])
    found |= {name: names(given[name]) for name in ("intervenable", "context")}
    if given["forbid"]:
        found["forbidden"] = _forbidden(given["forbid"])
    if given["require"]:
        found["required"] = [levels(group) for group in given["require"]]
    if given["cost"]:
        found["costs"] = _costs(given["cost"])
    return {name: value for name, value in found.items() if value is not None}


def _forbidden(given: tuple[str, ...]) -> list[Any]:
    """`A,B` are factors that are not moved together; with a level, levels."""
    return [levels(group) if "=" in group else names(group) or [] for group in given]


def _costs(given: tuple[str, ...]) -> dict[str, Any]:
    """`FACTOR=COST` or `FACTOR:LEVEL=COST`."""
    found: dict[str, Any] = {}
    for name, cost in numbers("the cost of", "factor=cost or factor:level=cost", given).items():
        factor, colon, level = name.partition(":")
        if not colon:
            found[name] = cost
        elif isinstance(found.setdefault(factor, {}), dict):
            found[factor][level] = cost
        else:
            raise StudyError(f"the cost of {factor!r} is given as a whole and by level")
    return found

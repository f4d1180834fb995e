"""Commands that ask, tell and look; those that look never wait for those that write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from causalarms.cli.study_options import (
    WORKER,
    StudyPlace,
    levels,
    new_alarms,
    numbers,
    open_study,
    pairs_or_json,
    say_alarms,
    study_command,
    worker_of,
)
from causalarms.cli.terminal import emit, print_json, print_table, say, sparkline
from causalarms.errors import StudyError
from causalarms.files import shown_number, shown_probability

if TYPE_CHECKING:
    from causalarms.study import Study, Trial
    from causalarms.study.ledger import Ledger, Record

SHOWN_EDGES = 8
OF_PENDING = ("trial", "worker", "switch", "levels", "before")  # what --json shows of a trial
TOLD_PROBABILITY = 0.5  # above which a change of how a node answers its causes is told
REASON = click.option("--reason", default="", show_default=False, help="Why, in words.")
EXECUTED = click.option(
    "--executed",
    metavar="A,B=LEVEL,...",
    help="Factors that were really on, or their levels, if other than asked for.",
)


CONTEXT = click.option(
    "--context",
    multiple=True,
    metavar="NODE=VALUE",
    help="Today's value of a node that is context; may be repeated.",
)


@study_command
@click.option(
    "-n", "count", type=click.IntRange(1, 1000), default=1, help="Number of trials to ask for."
)
@WORKER
@CONTEXT
def ask(
    file: StudyPlace, count: int, worker: str | None, context: tuple[str, ...], as_json: bool
) -> None:
    """Ask for the next intervention; a worker with a pending trial gets that one again."""
    with open_study(file) as study:
        today = _today(context)
        given = study.ask(count, worker_of(study, file, worker), context=today)
        trials: list[Trial] = given if isinstance(given, list) else [given]
        _say_of_context(study, today, trials)
        found = [] if as_json else new_alarms(study)
    if as_json:
        # As the library returns it: one trial for one, a list for several.
        print_json(given)
        return
    for trial in trials:
        say(f"trial {trial.number}: {trial.words}")
        say(f"  {trial.reason}: {trial.why or 'the policy does not say why'}")
    say_alarms(found)


def _today(context: tuple[str, ...]) -> dict[str, Any] | None:
    return numbers("context", "node=value", context) if context else None


def _say_of_context(study: Study, today: dict[str, Any] | None, trials: list[Trial]) -> None:
    from causalarms.study.inputs import about_context, as_context

    known = as_context(today or {}, study.settings)
    for text in about_context(study.ledger(), known, trials) if known else ():
        say(f"warning: {text}", err=True)


@study_command
@click.argument("trial", type=int)
@click.argument("values", nargs=-1, metavar="NODE=VALUE...|-")
@EXECUTED
def tell(
    file: StudyPlace, trial: int, values: tuple[str, ...], executed: str | None, as_json: bool
) -> None:
    """Tell the result of a TRIAL: a value for every node, or `-` for JSON on standard input."""
    given = pairs_or_json(values)
    if set(given.values()) == {None}:
        raise StudyError(
            f"no value is given: say `fail` or `abandon` if trial {trial} has no result"
        )
    with open_study(file) as study:
        messages = study.tell(trial, given, levels(executed))
        # Said before anything is learned from it: the result is safe, whatever comes now.
        if not as_json:
            _done(trial, "told", as_json, messages)
        found = new_alarms(study)
    if as_json:
        _done(trial, "told", as_json, messages, alarms=found)
    say_alarms([] if as_json else found)


@study_command
@click.argument("trial", type=int)
@click.argument("values", nargs=-1, metavar="NODE=VALUE...|-")
@click.option("--withdraw", is_flag=True, help="The result was wrong and there is no other.")
@REASON
@EXECUTED
def correct(
    file: StudyPlace,
    trial: int,
    values: tuple[str, ...],
    withdraw: bool,
    reason: str,
    executed: str | None,
    as_json: bool,
) -> None:
    """Replace the result of a TRIAL, or withdraw it; nodes that are not named stay as told."""
    if withdraw and (values or executed is not None):
        raise click.UsageError("--withdraw takes no values and no --executed")
    given = None if withdraw else pairs_or_json(values)
    with open_study(file) as study:
        messages = study.correct(trial, given, reason, levels(executed))
    _done(trial, "corrected", as_json, messages)


@study_command
@click.argument("trial", type=int)
@REASON
def fail(file: StudyPlace, trial: int, reason: str, as_json: bool) -> None:
    """Say that a TRIAL was carried out and gave no result."""
    with open_study(file) as study:
        study.fail(trial, reason)
    _done(trial, "failed", as_json)


@study_command
@click.argument("trial", type=int)
@REASON
def abandon(file: StudyPlace, trial: int, reason: str, as_json: bool) -> None:
    """Say that a TRIAL will not be carried out."""
    with open_study(file) as study:
        study.abandon(trial, reason)
    _done(trial, "abandoned", as_json)


@study_command
@click.argument("text")
@click.option("--trial", type=int, help="Number of the trial it is about.")
def note(file: StudyPlace, text: str, trial: int | None, as_json: bool) -> None:
    """Add a remark to the log."""
    with open_study(file) as study:
        study.note(text, trial)
    emit(as_json, {"noted": text})


@study_command
@click.argument("alarm", type=int)
@click.option("--note", "text", default="", show_default=False, help="What was found.")
def acknowledge(file: StudyPlace, alarm: int, text: str, as_json: bool) -> None:
    """Say that an ALARM (its number in `alarms`) was seen."""
    with open_study(file) as study:
        study.acknowledge(alarm, text)
    emit(as_json, {"alarm": alarm, "acknowledged": True})


@study_command
def show(file: StudyPlace, as_json: bool) -> None:
    """Show the reward so far, the best intervention, learned edges and alarms."""
    with open_study(file, read_only=True) as study:
        record = summary(study)
    if as_json:
        pending = [trial.as_dict() for trial in record["pending"]]
        print_json(record | {"pending": [{n: trial[n] for n in OF_PENDING} for trial in pending]})
    else:
        _print_screen(record)


@study_command
@CONTEXT
def best(file: StudyPlace, context: tuple[str, ...], as_json: bool) -> None:
    """Show the best intervention known, its probability and what being wrong would cost."""
    with open_study(file, read_only=True) as study:
        found, settings = study.best(context=_today(context)), study.settings
    if as_json:
        print_json(found)
        return
    say(f"set {found.words}")
    reward, interval = _with_interval(found.reward, found.low, found.high, "95 % interval ")
    cost = f"; its cost, {shown_number(found.cost)}, is not taken off" if found.cost > 0 else ""
    say(f"{settings.reward} {reward}{interval}, from {found.basis}{cost}")
    if found.probability == found.probability:
        loss = shown_number(found.expected_loss, found.expected_loss)
        say(
            f"best with probability {shown_probability(found.probability)}, expected loss "
            f"{loss} per round"
        )
    if found.failing == found.failing:
        say(f"a trial of it fails with probability {shown_probability(found.failing)}")
    for remark in found.remarks:
        say(f"remark: {remark.text}")
    if found.stayed:
        say(f"remark: {found.stayed}")
    if found.taken_back:
        say()
        say("what is lost per round if one factor is taken back, costs included:")
        rows = [
            [
                f"{b.factor} {b.level} -> {b.first}{'' if b.allowed else ' (not allowed)'}",
                *_interval(b.lost, b.low, b.high),
            ]
            for b in found.taken_back
        ]
        print_table(["factor", "lost", "low", "high"], rows)
    if found.rivals:
        before = f"{settings.reward} is before costs; " if settings.costs else ""
        equal = f", others as good {_times(found.tried_equal)}" if found.tried_equal else ""
        say()
        say(f"leading rivals; {before}the best was tried {_times(found.tried)}{equal}:")
        lines = [
            [
                _instead(rival.levels, found.levels),
                shown_number(rival.reward, found.high - found.low),
                shown_probability(rival.better),
                str(rival.tried),
                "as good, as far as the results tell" if rival.equal else "",
            ]
            for rival in found.rivals
        ]
        print_table(["setting", settings.reward, "better with", "tried", ""], lines)
        if any(rival.equal for rival in found.rivals):
            say("of settings that are as good, the one with the fewest changes is recommended")


def _times(n: int) -> str:
    return f"{n} time{'' if n == 1 else 's'}"


def _instead(levels: dict[str, Any], best: dict[str, Any]) -> str:
    """Where a setting differs from the best."""
    return ", ".join(f"{n} {best[n]} -> {x}" for n, x in levels.items() if best[n] != x)


@study_command
@click.option(
    "--switch",
    default="",
    show_default=False,
    metavar="A,B=LEVEL,...",
    help="Factors that are on, or their levels (default: none).",
)
@CONTEXT
def predict(file: StudyPlace, switch: str, context: tuple[str, ...], as_json: bool) -> None:
    """Show the expected value of every node with its 95 % interval."""
    with open_study(file, read_only=True) as study:
        today = _today(context)
        found = study.predict([levels(switch) or {}], context=today)[0]
        _say_of_context(study, today, [])
    if as_json:
        print_json(found)
        return
    rows = [
        [node, *(shown_number(e[k], e["high"] - e["low"]) for k in ("mean", "low", "high"))]
        for node, e in found["expected"].items()
    ]
    print_table(["node", "expected", "low", "high"], rows)
    if found["failing"] is not None:
        say(f"a trial of it fails with probability {shown_probability(found['failing'])}")


@study_command
def effects(file: StudyPlace, as_json: bool) -> None:
    """Show what every factor acts on, and what each of its levels does to the reward.

    Levels are compared with the first one, while all other factors are at theirs. Direct is the
    part that no measured node carries.
    """
    with open_study(file, read_only=True) as study:
        found, settings = study.effects(), study.settings
    if as_json:
        print_json(found)
        return
    rows = [
        [effect["factor"], node, shown_probability(chance)]
        for effect in found
        for node, chance in sorted(effect["acts_on"].items(), key=lambda item: -item[1])
    ]
    print_table(["factor", "acts on", "probability"], rows)
    for effect in found:
        for node, chance in effect["free"].items():
            if chance > TOLD_PROBABILITY:
                how = f"changes how {node} answers its causes"
                how += f" (probability {shown_probability(chance)})"
                say(f"{effect['factor']} also {how}")
    say()
    lines = [
        [effect["factor"], level, *_interval(**total), *_interval(**effect["direct"][level])]
        for effect in found
        for level, total in effect["reward"].items()
    ]
    print_table(["factor", "level", settings.reward, "low", "high", "direct", "low", "high"], lines)


def _interval(mean: float, low: float, high: float) -> list[str]:
    span = high - low
    return [shown_number(mean, span, sign=True), shown_number(low, span), shown_number(high, span)]


def _with_interval(mean: float, low: float, high: float, words: str = "") -> tuple[str, str]:
    """The mean, and its interval in brackets: none of a policy without a model, which says nan."""
    span = high - low
    if span != span:
        return shown_number(mean), ""
    shown = f"{shown_number(low, span)} to {shown_number(high, span)}"
    return shown_number(mean, span), f" ({words}{shown})"


@study_command
def alarms(file: StudyPlace, as_json: bool) -> None:
    """Show mechanisms that seem to have changed."""
    with open_study(file, read_only=True) as study:
        found, watches, policy = study.alarms(), study.watches, study.settings.policy
    if as_json:
        print_json(found)
    elif not found:
        say("no alarm" if watches else f"no alarm: policy {policy} does not watch for any")
    else:
        keys = ["alarm", "trial", "regime", "node", "changed_after", "acknowledged", "note"]
        print_table(keys, [[str(a[key]) for key in keys] for a in found])


@study_command
@click.argument("trial", type=int)
def explain(file: StudyPlace, trial: int, as_json: bool) -> None:
    """Say why a TRIAL was suggested."""
    from causalarms.study.records import in_words

    with open_study(file, read_only=True) as study:
        found, ledger = study.explain(trial), study.ledger()
    if as_json:
        print_json(found)
        return
    record = ledger.trial(trial)
    words = in_words(found["levels"], ledger.before(record), (trial, record.worker))
    say(f"trial {trial} ({found['state']}): {words}")
    say(found["text"])
    if found.get("edges"):
        say("edges that carry most of what sets it apart from the average round before it:")
        for e in found["edges"]:
            say(
                f"  {e['parent']} -> {e['child']} ({e['regime']}): weight "
                f"{shown_number(e['weight'], abs(e['weight']), sign=True)}, "
                f"carries {shown_number(e['carries'], abs(e['carries']), sign=True)}"
            )
    for m in found.get("mechanisms", [])[:3]:
        percent = f"{100 * m['share_of_uncertainty']:.0f}"
        if percent != "0":
            say(f"  {percent} % of the uncertainty comes from {m['node']} ({m['regime']})")


@study_command
@click.option(
    "--last", type=click.IntRange(min=1), help="Number of newest trials to show (default: all)."
)
def history(file: StudyPlace, last: int | None, as_json: bool) -> None:
    """Show all trials; every value with --json or `export`."""
    from causalarms.study.report import columns

    with open_study(file, read_only=True) as study:
        ledger, settings = study.ledger(), study.settings
        left_out = study.left_out() if as_json else []
    if as_json:
        found = columns(ledger, left_out)
        # Without --last the slice is [-0:], which is everything.
        rows = list(zip(*found.values(), strict=True))[-(last or 0) :]
        print_json([dict(zip(found, row, strict=True)) for row in rows])
        return
    lines = [
        [
            str(r.number),
            r.state,
            r.worker,
            _executed(r, ledger),
            shown_number(r.values[settings.reward_index] if r.values else None),
            r.done_at or r.asked_at,
            r.reason,
        ]
        for r in ledger.trials[-(last or 0) :]
    ]
    print_table(["trial", "state", "worker", "set", settings.reward, "at", "remark"], lines)


def _done(
    trial: int, state: str, as_json: bool, warnings: Sequence[str] = (), **more: object
) -> None:
    # On standard error: what a script reads from standard output stays the same.
    for message in () if as_json else warnings:
        say(f"warning: {message}", err=True)
    record = {"trial": trial, "state": state, "warnings": list(warnings), **more}
    emit(as_json, record, f"trial {trial}: {state}")


def summary(study: Study) -> dict[str, Any]:
    """Everything the screen shows."""
    from causalarms.study.report import edges as edges_of
    from causalarms.study.report import missing_values

    ledger, settings = study.ledger(), study.settings
    try:
        best = study.best()
    except StudyError:
        # Too early, or the policy is not installed: the rest of the screen is true all the same.
        best = None
    try:
        edges = edges_of(study.graph(), settings.named)
    except StudyError:
        edges = []
    rewards = [r.values[settings.reward_index] for r in ledger.with_values() if r.values]
    return {
        "nodes": list(settings.nodes),
        "reward": settings.reward,
        "direction": settings.direction,
        "factors": settings.named.as_list(),
        "context": list(settings.context),
        "policy": settings.policy,
        "trials": ledger.counts(),
        "rewards": [reward for reward in rewards if reward is not None],
        "missing": missing_values(ledger),
        "best": best,
        "edges": edges,
        "alarms": study.alarm_records(),
        "watches": study.watches,
        "weighs_graphs": study.weighs_graphs,
        "pending": [ledger.as_trial(ledger.trials[n]) for n in ledger.pending],
        "problem": study.problem,
        "far_values": study.far_values(),
        "left_out": study.left_out(),
    }


def _print_screen(record: dict[str, Any]) -> None:
    counts = ", ".join(f"{n} {state}" for state, n in record["trials"].items()) or "no trial yet"
    say(f"{len(record['nodes'])} nodes, {record['direction']} {record['reward']}; {counts}")
    if record["context"]:
        say(f"context {', '.join(record['context'])}: no factor moves it")
    if record["rewards"]:
        say(f"reward  {sparkline(record['rewards'])}  last {shown_number(record['rewards'][-1])}")
    best = record["best"]
    if best is not None:
        chance = best.probability
        sure = "" if chance != chance else f", best with probability {shown_probability(chance)}"
        reward, interval = _with_interval(best.reward, best.low, best.high)
        fails = best.failing
        risk = "" if fails != fails else f", fails with probability {shown_probability(fails)}"
        say(f"best    {best.words}: {reward}{interval}{sure}{risk}")
        for remark in best.remarks:
            say(f"remark  {remark.text}")
        if best.rivals:
            rivals = [f"{_instead(r.levels, best.levels)}: {r.tried}" for r in best.rivals]
            say(f"tried   {_times(best.tried)}; its leading rivals: {'; '.join(rivals)}")
        if best.stayed:
            say(f"remark  {best.stayed}")
    for edge in record["edges"][:SHOWN_EDGES]:
        weight = shown_number(edge["weight"], edge["standard_error"], sign=True)
        say(f"edge    {edge['parent']} -> {edge['child']} ({edge['when']}) {weight}")
    if len(record["edges"]) > SHOWN_EDGES:
        say(f"        and {len(record['edges']) - SHOWN_EDGES} more: causalarms study graph")
    say_alarms(record["alarms"])
    for far in record["far_values"]:
        say(
            f"far     {far.node} = {shown_number(far.value)} in trial {far.trial}, others "
            f"{shown_number(far.low)} to {shown_number(far.high)}: {far.command}"
        )
    if record["missing"].words:
        say(f"missing {record['missing'].words}")
    for out in record["left_out"]:
        say(f"left out {out.message}")
    for trial in record["pending"]:
        say(f"pending trial {trial.number} of {trial.worker}: {trial.words}")
    if record["problem"]:
        say(f"problem {record['problem']}")


def _executed(record: Record, ledger: Ledger) -> str:
    from causalarms.study.records import in_words

    levels, before = ledger.settings.named.levels, ledger.before(record)
    executed, asked = (
        in_words(levels(row), before, (record.number, record.worker))
        for row in (record.intervention, record.asked_intervention)
    )
    return executed if executed == asked else f"{executed} (asked: {asked})"

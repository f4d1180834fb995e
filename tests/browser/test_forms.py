"""Telling, correcting and noting in the page: by keyboard, with mistakes, beside others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_server import PageServer

from causalarms.study import Study

NODES = ["heat", "flow", "yield"]
FACTORS: dict[str, dict[str, Any]] = {
    "burner": {"levels": ["low", "high", "full"], "acts_on": ["heat"]},
    "valve": {"acts_on": ["flow"]},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    path = tmp_path_factory.mktemp("forms") / "line3.db"
    Study.create(path, NODES, "yield", factors=FACTORS, policy="random", seed=2).close()
    with PageServer(path) as running:
        yield running


@pytest.fixture
def study(server: PageServer) -> Iterator[Study]:
    """What somebody else does meanwhile. Nothing is pending when it begins."""
    with Study.open(server.path) as found:
        for number in list(found.ledger().pending):
            found.abandon(number)
        yield found


def rows(study: Study) -> list[Any]:
    return study.ledger().trials


def fill(page: Any, **values: str) -> None:
    for name, text in values.items():
        page.locator("#tell").get_by_label(name).fill(text)


def test_asking_and_telling_need_no_mouse(server: PageServer, study: Study, open_page: Any) -> None:
    page = open_page(server.address)
    page.get_by_text("live", exact=True).wait_for()
    page.locator("#ask").focus()
    page.keyboard.press("Enter")
    page.locator("#tell").wait_for()
    open_page.wait_for_focus(page.locator("[name=tell-0]"))
    for number, text in enumerate(("1,5", "", "-2.5e1")):
        open_page.wait_for_focus(page.locator(f"[name=tell-{number}]"))
        page.keyboard.type(text)
        if number < 2:
            page.keyboard.press("Enter")
    asked = len(rows(study)) - 1
    assert study.ledger().trials[asked].state == "asked"
    page.keyboard.press("Enter")  # from the last field to the button
    open_page.wait_for_focus(page.get_by_role("button", name="Tell the result"))
    assert study.ledger().trials[asked].state == "asked"
    page.keyboard.press("Enter")
    # the next one is asked for at once, and the cursor is in its first field
    page.get_by_text(f"Trial {asked + 1} ·").wait_for()
    open_page.wait_for_focus(page.locator("[name=tell-0]"))
    assert rows(study)[asked].values == (1.5, None, -25.0)
    assert page.locator("#said").inner_text() == f"Trial {asked + 1} is next."


def test_a_mistake_is_shown_where_it_is_and_nothing_is_sent(
    server: PageServer, study: Study, open_page: Any
) -> None:
    trial = study.ask(worker="bench")
    page = open_page(server.address)
    fill(page, heat="1", flow="two", **{"yield": "3"})
    page.get_by_role("button", name="Tell the result").click()
    page.get_by_text("“two” is not a number: flow.").wait_for()
    open_page.wait_for_focus(page.locator("[name=tell-1]"))
    assert page.locator("#tell [aria-invalid=true]").count() == 1
    assert study.ledger().trials[int(trial)].state == "asked"


def test_what_was_really_set_and_why_there_is_no_result(
    server: PageServer, study: Study, open_page: Any
) -> None:
    first = study.ask(worker="bench")
    page = open_page(server.address)
    page.get_by_label("then ask for the next").uncheck()
    fill(page, heat="1", flow="2", **{"yield": "3"})
    page.get_by_text("Something else was set than asked").click()
    page.locator("#tell").get_by_label("burner").select_option("full")
    page.locator("#tell").get_by_label("valve").select_option("on")
    page.get_by_role("button", name="Tell the result").click()
    page.get_by_role("button", name="Ask for the next trial").wait_for()
    played = study.settings.named.levels(study.ledger().trials[int(first)].intervention)
    assert played == {"burner": "full", "valve": "on"}
    page.get_by_role("button", name="Ask for the next trial").click()
    page.get_by_text("There is no result").click()
    page.get_by_label("Reason").fill("the <b>pump</b> stopped")
    page.get_by_role("button", name="It failed").click()
    page.get_by_role("button", name="Ask for the next trial").wait_for()
    last = rows(study)[-1]
    assert (last.state, last.reason) == ("failed", "the <b>pump</b> stopped")


def test_what_is_typed_survives_events_and_a_reload(
    server: PageServer, study: Study, open_page: Any
) -> None:
    mine = study.ask(worker="bench")
    page = open_page(server.address)
    fill(page, heat="12.5")
    field = page.locator("#tell").get_by_label("heat")
    field.evaluate("field => field.setSelectionRange(1, 2)")
    others = study.ask(2, worker="others")
    study.tell(others[0], [1.0, 2.0, 3.0])
    page.locator("#trials").get_by_role("row", name=f"{others[0].number} told").wait_for()
    kept = field.evaluate("field => [field.value, field.selectionStart, field.selectionEnd]")
    assert kept == ["12.5", 1, 2]
    assert page.evaluate("document.activeElement.name") == "tell-0"
    page.reload()
    page.get_by_text(f"Trial {mine.number} ·").wait_for()
    assert page.locator("#tell").get_by_label("heat").input_value() == "12.5"
    study.abandon(mine)
    page.get_by_text(f"Trial {mine.number} has been ended by somebody else").wait_for()
    assert page.locator("#tell").get_by_label("heat").input_value() == "12.5"
    page.get_by_role("button", name="Discard what I typed").click()
    page.get_by_text("No trial of yours is waiting for a result.").wait_for()
    assert page.locator("#tell").count() == 0
    study.abandon(others[1])


def test_who_is_second_is_told_so(server: PageServer, study: Study, open_page: Any) -> None:
    trial = study.ask(worker="bench")
    open_page.expected = ("409",)
    first = open_page(server.address)
    second = open_page(server.address)
    for page, text in ((first, "1"), (second, "2")):
        page.get_by_label("then ask for the next").uncheck()
        fill(page, heat=text, flow=text, **{"yield": text})
    # the second one hears nothing before it sends
    second.route("**/api/v1/trials?state=asked*", lambda route: route.abort())
    first.get_by_role("button", name="Tell the result").click()
    first.get_by_role("button", name="Ask for the next trial").wait_for()
    open_page.expected = ("409", "ERR_FAILED")
    second.get_by_role("button", name="Tell the result").click()
    second.get_by_text(f"Somebody else was first: trial {trial.number} is not pending").wait_for()
    assert second.locator("#tell").get_by_label("heat").input_value() == "2"
    assert study.ledger().trials[int(trial)].values == (1.0, 1.0, 1.0)


def test_a_result_is_corrected_from_the_table(
    server: PageServer, study: Study, open_page: Any
) -> None:
    trial = study.ask(worker="bench")
    study.tell(trial, [1.0, 2.0, 30.0])
    page = open_page(server.address)
    page.get_by_role("button", name=f"Correct trial {trial.number}", exact=True).click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_label("flow").input_value() == "2"
    dialog.get_by_label("yield").fill("3.0")
    dialog.get_by_label("Reason").fill("comma")
    dialog.get_by_label("yield").press("Enter")  # from the last field to the button
    page.keyboard.press("Enter")
    dialog.wait_for(state="hidden")
    record = study.ledger().trials[int(trial)]
    assert (record.values, record.reason, record.corrected) == ((1.0, 2.0, 3.0), "comma", True)
    row = page.locator("#trials").get_by_role("row", name=f"{trial.number} told corrected")
    row.get_by_role("button", name="Details").click()
    dialog.get_by_text("yield was 30").wait_for()
    dialog.get_by_role("button", name="Add a note").click()
    dialog.get_by_label("Note").fill("looked at <i>twice</i>")
    dialog.get_by_role("button", name="Store the note").click()
    row.get_by_text("1 note").wait_for()
    assert study.ledger().notes[-1].trial == trial.number


def test_a_waiting_trial_is_abandoned_from_the_table(
    server: PageServer, study: Study, open_page: Any
) -> None:
    trial = study.ask(worker="bench")
    page = open_page(server.address)
    row = page.locator("#trials").get_by_role("row", name=f"{trial.number} pending")
    row.get_by_text("asked just now").wait_for()
    row.get_by_role("button", name="Abandon").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("no time")
    page.get_by_role("button", name="Abandon it").click()
    page.get_by_role("button", name="Ask for the next trial").wait_for()
    assert study.ledger().trials[int(trial)].reason == "no time"


def test_what_is_typed_within_one_frame_is_all_kept(
    server: PageServer, study: Study, open_page: Any
) -> None:
    trial = study.ask(worker="bench")
    page = open_page(server.address)
    page.get_by_label("then ask for the next").uncheck()
    page.locator("#tell").get_by_label("heat").wait_for()
    page.evaluate(
        """() => document.querySelectorAll("#tell .fields input").forEach((input, i) => {
             input.value = String(i + 1);
             input.dispatchEvent(new Event("input", { bubbles: true }));
           })"""
    )
    page.get_by_role("button", name="Tell the result").click()
    page.get_by_role("button", name="Ask for the next trial").wait_for()
    assert study.ledger().trials[int(trial)].values == (1.0, 2.0, 3.0)


def test_what_is_chosen_within_one_frame_is_all_kept(
    server: PageServer, study: Study, open_page: Any
) -> None:
    trial = study.ask(worker="bench")
    page = open_page(server.address)
    page.get_by_label("then ask for the next").uncheck()
    fill(page, heat="1", flow="2", **{"yield": "3"})
    page.get_by_text("Something else was set than asked").click()
    page.locator("#tell").get_by_label("burner").wait_for()
    page.evaluate(
        """() => document.querySelectorAll("#tell .fields select").forEach((select) => {
             select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
             select.dispatchEvent(new Event("change", { bubbles: true }));
           })"""
    )
    page.get_by_role("button", name="Tell the result").click()
    page.get_by_role("button", name="Ask for the next trial").wait_for()
    played = study.settings.named.levels(study.ledger().trials[int(trial)].intervention)
    assert all(played[factor] != asked for factor, asked in trial.levels.items())


def test_a_setting_names_every_factor_and_marks_what_changes(
    server: PageServer, study: Study, open_page: Any
) -> None:
    first = study.ask(worker="bench")
    study.tell(first, [1.0, 2.0, 3.0], {"burner": "low", "valve": "on"})
    second = study.ask(worker="bench")
    page = open_page(server.address)
    page.get_by_text(f"Trial {second.number} ·").wait_for()
    was = {"burner": "low", "valve": "on"}
    for said in (page.locator("#next .lead"), page.locator("#trials tbody tr").first):
        words = " ".join(said.inner_text().split())
        for factor, level in second.levels.items():
            changes = was[factor] != level
            named = f"{factor} {was[factor]} → {level}" if changes else f"{factor} {level}"
            assert named in words
        assert (f"as in trial {first.number}:" in words) == (second.words.count("->") < 2)
    # the words of the library say the same
    assert all(f"{factor} " in second.words for factor in FACTORS)


def test_a_trial_is_compared_with_the_last_of_its_worker(
    server: PageServer, study: Study, open_page: Any
) -> None:
    mine = study.ask(worker="bench")
    study.tell(mine, [1.0, 2.0, 3.0], {"burner": "full", "valve": "on"})
    for _ in range(2):
        study.tell(study.ask(worker="others"), [1.0, 2.0, 3.0], {"burner": "low", "valve": "off"})
    study.abandon(study.ask(worker="bench"))  # was not carried out
    trial = study.ask(worker="bench")
    assert trial.before is not None
    assert (trial.before.number, trial.before.levels["burner"]) == (mine.number, "full")
    page = open_page(server.address)
    label = f"as in trial {mine.number} of bench:"
    kept = page.locator("#next .kept")
    if trial.words.count("->") < 2:
        assert label in trial.words
        kept.get_by_text(label).wait_for()


def test_a_result_without_the_reward_asks_first(
    server: PageServer, study: Study, open_page: Any
) -> None:
    trial = study.ask(worker="bench")
    page = open_page(server.address)
    page.get_by_label("then ask for the next").uncheck()
    fill(page, heat="1", flow="2")
    for _ in range(2):  # to say it again is not to mean it
        page.get_by_role("button", name="Tell the result").click()
        page.get_by_text("Nothing is typed at yield, the aim.").wait_for()
        open_page.wait_for_focus(page.locator("[name=tell-2]"))
        assert study.ledger().trials[int(trial)].state == "asked"
    fill(page, **{"yield": "3"})
    page.get_by_text("Nothing is typed at yield").wait_for(state="hidden")
    fill(page, **{"yield": ""})
    page.get_by_role("button", name="Tell the result").click()
    page.get_by_role("button", name="Tell the others without yield").click()
    page.get_by_role("button", name="Ask for the next trial").wait_for()
    assert study.ledger().trials[int(trial)].values == (1.0, 2.0, None)
    row = page.locator("#trials").get_by_role("row", name=f"{trial.number} told")
    row.get_by_role("button", name="Correct").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Store the correction").click()
    dialog.get_by_role("button", name="Tell the others without yield").wait_for()
    assert not study.ledger().trials[int(trial)].corrected


def test_a_trial_of_somebody_else_is_never_in_the_form_unless_it_is_chosen(
    server: PageServer, study: Study, open_page: Any
) -> None:
    others = study.ask(worker="rig 2")
    page = open_page(server.address)
    page.get_by_text("No trial of yours is waiting for a result.").wait_for()
    assert page.locator("#tell").count() == 0
    page.get_by_role("button", name=f"Tell Trial {others.number} of rig 2").click()
    page.get_by_text("This is a trial of rig 2, not of yours.").wait_for()
    page.get_by_role("button", name="Back to my own").click()
    page.locator("#tell").wait_for(state="detached")
    page.get_by_role("button", name=f"Tell Trial {others.number} of rig 2").click()
    fill(page, heat="1", flow="2", **{"yield": "3"})
    page.get_by_role("button", name="Tell the result").click()
    # telling for somebody else does not ask for a trial of one's own
    page.get_by_role("button", name="Ask for the next trial").wait_for()
    assert study.ledger().trials[int(others)].state == "told"
    assert len(rows(study)) == others.number + 1


def test_a_comma_before_three_digits_is_asked_about(
    server: PageServer, study: Study, open_page: Any
) -> None:
    trial = study.ask(worker="bench")
    page = open_page(server.address)
    page.get_by_label("then ask for the next").uncheck()
    fill(page, heat="101,500", flow="0,125", **{"yield": "1234,567"})
    page.get_by_role("button", name="Tell the result").click()
    page.get_by_text("“101,500” may be two numbers: write 101500 or 101.5: heat.").wait_for()
    assert study.ledger().trials[trial.number].state == "asked"
    fill(page, heat="101,50")
    page.get_by_role("button", name="Tell the result").click()
    page.get_by_role("button", name="Ask for the next trial").wait_for()
    assert rows(study)[trial.number].values == (101.5, 0.125, 1234.567)


def test_a_remark_on_a_result_is_in_view_on_a_phone(tmp_path: Path, open_page: Any) -> None:
    with Study.create(tmp_path / "s.db", NODES, "yield", factors=FACTORS, policy="random") as own:
        for past in own.ask(12, worker="others"):
            own.tell(past, [10.0 + past.number % 5, 9.0 + past.number % 3, 10.0])
        own.ask(worker="bench")
    with PageServer(tmp_path / "s.db") as server:
        page = open_page(server.address, viewport={"width": 360, "height": 500})
        page.get_by_text("live", exact=True).wait_for()
        fill(page, heat="10000", flow="10", **{"yield": "10"})
        page.get_by_role("button", name="Tell the result").click()
        notice = page.locator(".notice")
        notice.get_by_text("Is it a typing error? Then correct the trial.").wait_for()
        open_page.wait_for_focus(page.locator("[name=tell-0]"))
        top = notice.bounding_box()["y"]
        assert 0 <= top < 500
        assert "study.correct" not in notice.inner_text()
        page.close()

// Dialogs (correct, end, note, acknowledge, details of a trial) and the fields of all forms.

import { html, nothing } from "./vendor/lit-html.js";
import { mayWrite } from "./actions.js";
import * as act from "./actions.js";
import { state } from "./store.js";
import { about, correct } from "./trials.js";
import { entryOf, name, settingOf } from "./words.js";

export function dialogs() {
  const { dialog } = state;
  return html`<dialog
    aria-labelledby="dialog-title"
    @cancel=${act.closeDialog}
    @close=${() => state.dialog !== null && act.closeDialog()}
  >
    ${dialog === null ? nothing : KINDS[dialog.kind](dialog)}
  </dialog>`;
}

const KINDS = { correct: correction, end: ending, note: noting, acknowledge: seeing, details };

function frame(title, body, buttons) {
  return html`<div class="dialog-head">
      <h2 id="dialog-title">${title}</h2>
      <button class="link" type="button" @click=${act.closeDialog}>Close</button>
    </div>
    ${body}
    ${state.dialog.problem
      ? html`<p class="problem" id="correct-problem" role="alert">${state.dialog.problem}</p>`
      : nothing}
    <div class="row">${buttons}</div>`;
}

const textField = (label, name) => html`<label class="field wide">
  <span>${label}</span>
  <textarea
    rows="2"
    maxlength="10000"
    .value=${state.dialog[name] ?? ""}
    @input=${(event) => act.editDialog({ [name]: event.target.value })}
  ></textarea>
</label>`;

function correction(dialog) {
  const { row, values, wrong, executed, asks } = dialog;
  return html`<form novalidate @submit=${sendCorrection} @keydown=${onEnter}>
    ${frame(
      `Correct trial ${row.trial}`,
      html`<p class="hint">
          The first result stays in the log; from now on the new one is learned from.
        </p>
        <div class="fields result">
          ${valueFields("correct", { values, wrong }, (texts) =>
            act.editDialog({ values: texts, wrong: [], problem: "", asks: false }),
          )}
        </div>
        ${asksForReward(asks, (event) => sendCorrection(event, true))}
        <details ?open=${executed !== null}>
          <summary>What was set is wrong, too</summary>
          <div class="fields">
            ${factorFields("correct-executed", executed ?? row.levels, (levels) =>
              act.editDialog({ executed: { ...row.levels, ...levels } }),
            )}
          </div>
        </details>
        ${textField("Reason (may be empty)", "reason")}`,
      html`<button class="primary" type="submit">Store the correction</button>
        <button type="button" @click=${withdraw}>Withdraw the result</button>`,
    )}
  </form>`;
}

function sendCorrection(event, sure = false) {
  event.preventDefault();
  const { row, values: texts, reason, executed } = state.dialog;
  const read = act.readValues(texts, state.study.nodes);
  if (read.problem) {
    act.editDialog({ problem: read.problem, wrong: read.wrong });
    return;
  }
  if (read.values[state.study.reward] === null && !sure) {
    act.editDialog({ problem: "", asks: true });
    return;
  }
  const body = { values: read.values, reason };
  if (executed !== null) body.executed = executed;
  act.sendDialog("POST", `trials/${row.trial}/corrections`, body, `Trial ${row.trial} is corrected.`);
}

function withdraw() {
  const { row, reason } = state.dialog;
  const body = { values: null, reason };
  act.sendDialog("POST", `trials/${row.trial}/corrections`, body, `Trial ${row.trial} is withdrawn.`);
}

function ending({ row, reason }) {
  const send = (outcome) => () =>
    act.sendDialog("PUT", `trials/${row.trial}/result`, { state: outcome, reason },
      `Trial ${row.trial} is ${outcome}.`);
  return frame(
    `Trial ${row.trial} without a result`,
    html`<p>${settingOf(row, state.study.factors)}</p>
      <p class="hint">
        Failed: it was carried out and gave nothing. Abandoned: it will not be carried out.
      </p>
      ${textField("Reason (may be empty)", "reason")}`,
    html`<button class="primary" @click=${send("abandoned")}>Abandon it</button>
      <button @click=${send("failed")}>It failed</button>`,
  );
}

function noting({ trial, text }) {
  const send = () =>
    act.sendDialog("POST", "notes", { text: text ?? "", trial }, "The note is stored.");
  return frame(
    trial === null ? "A note on the study" : `A note on trial ${trial}`,
    textField("Note", "text"),
    html`<button class="primary" @click=${send}>Store the note</button>`,
  );
}

function seeing({ alarm, reason }) {
  const path = `alarms/${alarm.alarm}/acknowledgement`;
  const send = () => act.sendDialog("PUT", path, { note: reason }, "The alarm is marked as seen.");
  return frame(
    `Alarm of ${alarm.node}`,
    textField("Note, for instance the cause (may be empty)", "reason"),
    html`<button class="primary" @click=${send}>Mark as seen</button>`,
  );
}

function details({ trial, found, why }) {
  return frame(
    `Trial ${trial}`,
    found ? about(found, why) : html`<p class="hint">Loading.</p>`,
    html`${found?.values && mayWrite("operator")
        ? html`<button @click=${() => correct(found)}>Correct</button>`
        : nothing}
      ${mayWrite()
        ? html`<button @click=${() => act.openDialog("note", { trial })}>Add a note</button>`
        : nothing}`,
  );
}

// -- fields: a value per node, a level per factor -------------------------------------------------

// `draft` has the typed texts and the names of those that are wrong.
export function valueFields(form, draft, onValues) {
  const { nodes, reward, context } = state.study;
  return nodes.map((node, i) => {
    const wrong = draft.wrong.includes(node);
    return html`<label class="field ${node === reward ? "is-reward" : ""}">
      <span>${name(node)}${node === reward
          ? html` <small>the aim</small>`
          : context.includes(node)
            ? html` <small>context</small>`
            : nothing}</span>
      <input
        name="${form}-${i}"
        inputmode=${neverNegative(node) ? "decimal" : "text"}
        autocomplete="off"
        enterkeyhint="next"
        aria-invalid=${wrong}
        aria-describedby=${wrong ? `${form}-problem` : nothing}
        .value=${entryOf(draft.values, node) ?? ""}
        @input=${(event) => onValues(typedValues(event.target))}
      />
    </label>`;
  });
}

// Enter goes to the next field, and from the last one to the button: a result that is half typed is
// never sent. For the whole form, since a browser sends it on Enter in any of its fields.
export function onEnter(event) {
  const { key, target, isComposing, currentTarget: form } = event;
  if (key !== "Enter" || isComposing || target.tagName !== "INPUT") return;
  event.preventDefault();
  const fields = [...form.querySelectorAll(".result input")];
  const at = fields.indexOf(target);
  if (at >= 0) (fields[at + 1] ?? form.querySelector("button.primary")).focus();
}

// A result without the reward teaches little of what the study is for, and may be a slip.
export function asksForReward(asks, send) {
  const { reward } = state.study;
  if (!asks) return nothing;
  return html`<div class="problem" role="alert">
    <p>Nothing is typed at <b>${name(reward)}</b>, the aim. Was it not measured?</p>
    <button type="button" @click=${send}>Tell the others without ${name(reward)}</button>
  </div>`;
}

// Today's values of the context, the same everywhere on the page.
export function contextFields(form) {
  const { context } = state.study;
  if (state.frozen || !context.length) return nothing;
  const wrong = act.wrongContext();
  return html`<fieldset>
    <legend>Today</legend>
    <p class="hint">Context, as far as it is known before a trial. Leave empty what is not known.</p>
    <div class="fields">
      ${context.map(
        (node, i) => html`<label class="field">
          <span>${name(node)}</span>
          <input
            name="${form}-${i}"
            autocomplete="off"
            aria-invalid=${wrong.includes(node)}
            .value=${entryOf(state.choice.context, node) ?? ""}
            @input=${(event) => act.setContext(node, event.target.value)}
          />
        </label>`,
      )}
    </div>
  </fieldset>`;
}

// What stands in the fields now: a draft may be one frame behind what was typed.
function typedValues(input) {
  const fields = [...input.closest(".fields").querySelectorAll("input")];
  return Object.fromEntries(state.study.nodes.map((node, i) => [node, fields[i].value]));
}

// Levels by name of the factor; a factor that is not named is at its first level.
export function factorFields(form, levels, onLevels) {
  return state.study.factors.map(
    (factor, i) => html`<label class="field">
      <span>${name(factor.name)}</span>
      <select
        name="${form}-${i}"
        @change=${(event) => onLevels(chosenLevels(event.target))}
      >
        ${factor.levels.map(
          (level) => html`<option
            .selected=${level === (entryOf(levels, factor.name) ?? factor.levels[0])}
          >
            ${level}
          </option>`,
        )}
      </select>
    </label>`,
  );
}

// As `typedValues`.
function chosenLevels(select) {
  const fields = [...select.closest(".fields").querySelectorAll("select")];
  const chosen = ({ levels }, i) => levels[fields[i].selectedIndex];
  return Object.fromEntries(state.study.factors.map((f, i) => [f.name, chosen(f, i)]));
}

// Number pads of some phones have no minus sign: they are for what never was negative.
function neverNegative(node) {
  const seen = state.trials.rows.map((row) => entryOf(row.values, node)).filter((x) => x != null);
  return seen.length > 0 && seen.every((x) => x >= 0);
}

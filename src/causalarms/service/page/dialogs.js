// What needs more room than a line: correcting, ending, noting, and all about one trial.

import { html, nothing } from "./vendor/lit-html.js";
import * as act from "./actions.js";
import { get } from "./api.js";
import { capital } from "./best.js";
import { factorFields, valueFields } from "./fields.js";
import { interval, known, percent, roughly, shown } from "./numbers.js";
import { mayWrite } from "./rights.js";
import { state } from "./store.js";
import { correct, moment } from "./trials.js";
import { brief, name, sentence } from "./words.js";

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
      <button class="link" @click=${act.closeDialog}>Close</button>
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
  const { row, values, wrong, played } = dialog;
  return html`<form novalidate @submit=${sendCorrection}>
    ${frame(
      `Correct trial ${row.trial}`,
      html`<p class="hint">
          The first result stays in the log; from now on the new one is learned from.
        </p>
        <div class="fields">
          ${valueFields("correct", { values, wrong }, (texts) =>
            act.editDialog({ values: texts, wrong: [], problem: "" }),
          )}
        </div>
        <details ?open=${played !== null}>
          <summary>What was set is wrong, too</summary>
          <div class="fields">
            ${factorFields("correct-played", played ?? row.levels, (levels) =>
              act.editDialog({ played: { ...row.levels, ...levels } }),
            )}
          </div>
        </details>
        ${textField("Reason (may be empty)", "reason")}`,
      html`<button class="primary" type="submit">Store the correction</button>
        <button type="button" @click=${withdraw}>Withdraw the result</button>`,
    )}
  </form>`;
}

function sendCorrection(event) {
  event.preventDefault();
  const { row, values: texts, reason, played } = state.dialog;
  const read = act.readValues(texts, state.study.nodes);
  if (read.problem) {
    act.editDialog({ problem: read.problem, wrong: read.wrong });
    return;
  }
  const body = { values: read.values, reason };
  if (played !== null) body.played = played;
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
    html`<p>${sentence(row.levels, state.study.factors)}</p>
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

function details(dialog) {
  if (dialog.found === undefined) loadDetails(dialog);
  const { found, why } = dialog;
  return frame(
    `Trial ${dialog.trial}`,
    found ? about(found, why) : html`<p class="hint">Loading.</p>`,
    html`${found?.values && mayWrite("operator")
        ? html`<button @click=${() => correct(found)}>Correct</button>`
        : nothing}
      ${mayWrite()
        ? html`<button @click=${() => act.openDialog("note", { trial: dialog.trial })}>
            Add a note
          </button>`
        : nothing}`,
  );
}

async function loadDetails({ trial, key }) {
  act.editDialog({ found: null });
  const put = (patch) => state.dialog?.key === key && act.editDialog(patch);
  if (state.frozen) {
    put({ found: ofTable(trial) });
    return;
  }
  try {
    const { data } = await get(`trials/${trial}`);
    put({ found: data });
    if (data.asked_at) put({ why: (await get(`trials/${trial}/explanation`)).data });
  } catch (problem) {
    if (problem.status === undefined) throw problem;
    put({ problem: problem.message });
  }
}

// What a report holds of a trial.
function ofTable(trial) {
  const row = state.trials.rows.find((r) => r.trial === trial);
  const notes = state.notes.filter((note) => note.trial === trial);
  return { ...row, notes, corrections: [], why: "" };
}

function about(t, why) {
  const { study } = state;
  return html`<p class="lead small">${sentence(t.levels, study.factors)}</p>
    ${t.asked_levels
      ? html`<p>Asked was: ${sentence(t.asked_levels, study.factors)}</p>`
      : nothing}
    <p class="hint">
      ${[
        t.state === "asked" ? "Waiting for a result" : capital(t.state),
        t.worker,
        t.asked_at && `asked ${moment(t.asked_at)}`,
        t.done_at && `ended ${moment(t.done_at)}`,
      ]
        .filter(Boolean)
        .join(", ")}
    </p>
    ${t.remark ? html`<p>Remark: <bdi>${t.remark}</bdi></p>` : nothing}
    ${t.values === null ? nothing : values(t)}
    ${why || t.why
      ? html`<h3>Why this one</h3>
          ${t.why ? html`<p>${capital(t.why)}.</p>` : html`<p>${why.text}</p>`}
          ${why && t.why ? explained(why) : nothing}`
      : nothing}
    ${t.corrections.length
      ? html`<h3>Corrections</h3>
          <ul>
            ${t.corrections.map(
              (c) => html`<li>
                <span class="hint">${moment(c.at)}</span> ${study.reward} was
                ${shown(c.values?.[study.reward])}, ${brief(c.levels, study.factors)}.
                <bdi>${c.reason}</bdi>
              </li>`,
            )}
          </ul>`
      : nothing}
    ${t.notes.length
      ? html`<h3>Notes</h3>
          <ul class="notes">
            ${t.notes.map(
              (n) => html`<li><span class="hint">${moment(n.at)}</span> <bdi>${n.text}</bdi></li>`,
            )}
          </ul>`
      : nothing}`;
}

function values(t) {
  return html`<dl class="values">
    ${Object.entries(t.values).map(
      ([node, x]) => html`<div>
        <dt>${name(node)}</dt>
        <dd>${x === null ? "not measured" : shown(x)}</dd>
      </div>`,
    )}
  </dl>`;
}

function explained(why) {
  const { factors, reward } = state.study;
  const { expected, uncertainty, runner_up: rival, mechanisms } = why;
  const width = known(expected?.low) && known(expected?.high) ? expected.high - expected.low : null;
  return html`${known(expected?.mean)
      ? html`<p>
          When it was chosen, it was expected to give a ${name(reward)} of
          <b>${shown(expected.mean, width)}</b> (95 % interval
          ${interval(expected.low, expected.high)}).
          ${known(uncertainty?.before) &&
          roughly(uncertainty.before) !== roughly(uncertainty.after)
            ? html`Another round of it would reduce the standard error of that from
              ${roughly(uncertainty.before)} to ${roughly(uncertainty.after)}.`
            : nothing}
        </p>`
      : html`<p>There was no model yet when it was chosen.</p>`}
    ${rival && known(rival.mean)
      ? html`<p>
          Of all other settings, the best was to switch
          ${rival.switch.length
            ? factors.filter((f) => rival.switch.includes(f.name)).map((f, i) => [
                i ? ", " : "",
                name(f.name),
              ])
            : "nothing"}:
          ${shown(rival.mean, width)}.
        </p>`
      : nothing}
    ${mechanisms?.length
      ? html`<p>Where the uncertainty comes from:</p>
          <ul>
            ${mechanisms.slice(0, 3).map(
              (m) => html`<li>
                <b>${name(m.node)}</b> (${m.regime}): ${percent(m.share_of_uncertainty)}
              </li>`,
            )}
          </ul>`
      : nothing}`;
}

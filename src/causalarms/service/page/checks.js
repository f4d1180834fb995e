// Does the model fit, and which values should a person look at? In words.

import { html, nothing } from "./vendor/lit-html.js";
import { mayWrite } from "./actions.js";
import { notYet, updating } from "./refresh.js";
import { get, state } from "./store.js";
import { correct } from "./trials.js";
import { capital, count, interval, name, shown } from "./words.js";

export function checks() {
  const { checks: view, study } = state;
  return html`<section id="checks" class="card" aria-labelledby="checks-title">
    <h2 id="checks-title">Does the model fit? ${updating(view)}</h2>
    ${view?.problem
      ? html`<p class="problem">Nothing could be learned from the last result: ${view.problem}.</p>`
      : nothing}
    ${study.missing ? html`<p>${capital(study.missing)}.</p>` : nothing}
    ${farValues(view, study)} ${view === null ? nothing : mechanisms(view)}
  </section>`;
}

function mechanisms(view) {
  if (view.why) return notYet(view, "Here will be whether the model fits what was measured.");
  if (!view.checks.length) return html`<p>There is nothing to check yet.</p>`;
  const doubtful = view.checks.filter((check) => check.doubtful);
  const fine = view.checks.filter((check) => !check.doubtful);
  return html`<p class="hint">
      The model says that every quantity is a weighted sum of its causes plus Gaussian noise, the
      same in all rounds. Each case was tested for that; predictions of one that does not fit may
      be off.
    </p>
    ${doubtful.length
      ? html`<h3>Cases that may not fit</h3>
          ${list(doubtful)}`
      : html`<p>Every case fits the model.</p>`}
    ${fine.length
      ? html`<details>
          <summary>
            ${doubtful.length ? "What fits" : "Case by case"} (${count(fine.length, "case")})
          </summary>
          ${list(fine)}
        </details>`
      : nothing}`;
}

function list(found) {
  return html`<ul class="checks">
    ${found.map(
      (check) => html`<li>
        <b>${name(check.node)}</b> <span class="hint">${check.regime},
        ${count(check.rounds, "round")}</span><br />
        ${capital(check.verdict)}.
      </li>`,
    )}
  </ul>`;
}

function farValues(view, study) {
  const left = view?.left_out ?? [];
  if (!study.far_values.length && !left.length) return nothing;
  const isLeft = (far) => left.some((out) => out.trial === far.trial && out.node === far.node);
  return html`<h3>Values far outside the rest</h3>
    <p class="hint">If one is a typing error, correct it. Otherwise there is nothing to do.</p>
    <ul class="far">
      ${study.far_values.map(
        (far) => html`<li>
          ${farSentence(far)}
          ${isLeft(far) ? "It is left out for now, as a probable typing error." : nothing}
          ${mayWrite("operator")
            ? html`<button
                aria-label="Correct trial ${far.trial}"
                @click=${() => correctTrial(far.trial)}
              >
                Correct
              </button>`
            : html`<code>causalarms study correct FILE ${far.trial} NODE=VALUE ...</code>`}
        </li>`,
      )}
    </ul>`;
}

export function farSentence({ trial, node, value, low, high }) {
  return html`Trial ${trial}: <b>${name(node)}</b> is ${shown(value)}, far outside the others, which
    are ${interval(low, high)}.`;
}

export async function correctTrial(trial) {
  const { data } = await get(`trials/${trial}`);
  correct(data);
}

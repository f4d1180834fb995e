// Whether what is shown is there yet, and as of now.

import { html, nothing } from "./vendor/lit-html.js";
import { state } from "./store.js";
import { capital } from "./words.js";

// A remark beside what was computed before the newest results came in.
export function updating(view) {
  const behind = !state.frozen && view !== null && view.as_of < state.study.learned_head;
  return behind ? html`<small class="chip">updating</small>` : nothing;
}

// What will be here. Why it is not yet is said once, beside the best setting.
export function notYet(view, promise) {
  const why = view?.why && view.why !== state.best?.why ? `${capital(view.why)}. ` : "";
  return html`<p>${why}${promise}</p>`;
}

// A remark beside what was computed before the newest results came in.

import { html, nothing } from "./vendor/lit-html.js";
import { state } from "./store.js";

export function updating(view) {
  const behind = !state.frozen && view !== null && view.as_of < state.study.learned_head;
  return behind ? html`<small class="chip">updating</small>` : nothing;
}

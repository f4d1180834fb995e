// A token comes in the fragment of the address, which no server logs, and becomes a cookie that no
// script can read.

import { html, nothing } from "./vendor/lit-html.js";
import { write } from "./api.js";
import { refresh } from "./refresh.js";
import { change, state } from "./store.js";

export async function tokenOfAddress() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found === null) return;
  history.replaceState(null, "", location.pathname + location.search);
  await enter(found);
}

async function enter(token) {
  try {
    await write("POST", "session", { token });
    return true;
  } catch (problem) {
    if (problem.status === undefined) throw problem;
    change({ problem });
    return false;
  }
}

export function login() {
  return html`<main class="alone">
    <h1>This study needs a token</h1>
    <p>
      Paste the token that was given to you. Who runs the server makes one with
      <code>causalarms serve-token</code>.
    </p>
    <form @submit=${submit}>
      <label class="field wide">
        <span>Token</span>
        <input name="token" type="password" autocomplete="current-password" required />
      </label>
      ${state.problem
        ? html`<p class="problem" role="alert">${state.problem.message}</p>`
        : nothing}
      <div class="row"><button class="primary" type="submit">Open the study</button></div>
    </form>
  </main>`;
}

async function submit(event) {
  event.preventDefault();
  const token = new FormData(event.target).get("token").trim();
  if (token && (await enter(token))) await refresh();
}

// The page: sections from top to bottom, drawn anew from the state whenever it changes.

import { html, nothing, render } from "./vendor/lit-html.js";
import { dismiss } from "./actions.js";
import { isFrozen } from "./api.js";
import { best } from "./best.js";
import { checks, correctTrial, farSentence } from "./checks.js";
import { workerName } from "./choices.js";
import { dialogs } from "./dialogs.js";
import { graph } from "./graph.js";
import { head } from "./head.js";
import { listen } from "./live.js";
import { login, tokenOfAddress } from "./login.js";
import { nextTrial, settleFocus } from "./next_trial.js";
import { refresh } from "./refresh.js";
import { rewards } from "./rewards.js";
import { mayWrite } from "./rights.js";
import { change, onChange, say, state } from "./store.js";
import { trials } from "./trials.js";
import { whatIf } from "./what_if.js";

const root = document.getElementById("app");

function page() {
  if (state.status === "login") return login();
  if (state.status === "refused") {
    return html`<main class="alone"><p class="problem" role="alert">${state.problem.message}</p></main>`;
  }
  if (state.status === "loading") return html`<main class="alone"><p>Loading the study.</p></main>`;
  const writes = mayWrite();
  return html`${head()} ${gone()}
    <main id="content" tabindex="-1">
      ${notices()}
      <div class="top ${writes ? "" : "is-single"}">
        ${writes ? nextTrial() : nothing} ${best()}
      </div>
      ${rewards()} ${graph()} ${whatIf()} ${trials()} ${checks()}
    </main>
    ${dialogs()}
    <footer>
      <p class="hint">causalarms ${state.study.version}, method ${state.study.policy}</p>
    </footer>`;
}

function gone() {
  if (state.trouble) return html`<p class="banner" role="alert">${state.trouble}</p>`;
  if (state.connection !== "gone") return nothing;
  return html`<p class="banner" role="alert">
    The server does not answer. What is shown may be old; what you typed is kept. Trying again.
  </p>`;
}

function notices() {
  return state.notices.map(
    (notice) => html`<div class="notice" role="status">
      ${remarks(notice)}
      <div class="row">
        ${notice.trial === null || !mayWrite("operator")
          ? nothing
          : html`<button @click=${() => correctTrial(notice.trial)}>
              Correct trial ${notice.trial}
            </button>`}
        <button @click=${() => dismiss(notice.id)}>It is right</button>
      </div>
    </div>`,
  );
}

// Values far outside the rest in the page's own words, whatever else there is in the server's.
function remarks({ trial, warnings }) {
  const far = state.study.far_values.filter((value) => value.trial === trial);
  if (far.length !== warnings.length) return warnings.map((text) => html`<p><bdi>${text}</bdi></p>`);
  return far.map((value) => html`<p>${farSentence(value)} Is it a typing error?</p>`);
}

function draw() {
  render(page(), root);
  settleFocus();
  document.getElementById("said").textContent = state.said;
  if (state.study !== null) document.title = state.study.name;
  const dialog = root.querySelector("dialog");
  if (dialog !== null && state.dialog !== null && !dialog.open) dialog.showModal();
  if (dialog !== null && state.dialog === null && dialog.open) dialog.close();
}

// Pictures are drawn in pixels of the page: letters keep their size on every screen.
function measure() {
  const section = root.querySelector("#rewards");
  const inner = section === null ? root.clientWidth - 80 : innerWidth(section);
  if (Math.abs(inner - state.width) > 1) change({ width: inner });
}

function innerWidth(section) {
  const { paddingLeft, paddingRight } = getComputedStyle(section);
  return section.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
}

function follow() {
  let was = state.connection;
  const now = (connection) => {
    if (connection === "live" && was === "gone") say("Connected again.");
    was = connection;
    change({ connection });
  };
  let newest = 0;
  listen({
    onNews: () => refresh(),
    // a server that refuses to stream may still answer: then every attempt to listen is a look
    onConnection: async (connection) => {
      const turn = (newest += 1);
      if (connection === "live") now("live");
      else {
        const answers = await refresh();
        if (turn === newest) now(answers ? "polling" : "gone");
      }
    },
  });
  setInterval(() => change({}), 30_000); // ages grow
}

async function start() {
  let following = isFrozen;
  onChange(() => {
    draw();
    measure();
    if (!following && state.status === "ready") {
      following = true;
      follow();
    }
  });
  new ResizeObserver(measure).observe(root);
  change({ frozen: isFrozen, worker: workerName() });
  if (!isFrozen) await tokenOfAddress();
  await refresh();
}

start();

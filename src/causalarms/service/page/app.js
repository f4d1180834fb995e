// The page: sections from top to bottom, drawn again whenever the state changes.

import { html, nothing, render } from "./vendor/lit-html.js";
import { dismiss, mayWrite, openDialog } from "./actions.js";
import { best } from "./best.js";
import { checks, correctTrial, farSentence } from "./checks.js";
import { effects } from "./effects.js";
import { dialogs } from "./forms.js";
import { graph } from "./graph.js";
import { nextTrial, settleFocus } from "./next_trial.js";
import { listen, refresh } from "./refresh.js";
import { rewards } from "./rewards.js";
import { change, isFrozen, onChange, say, state, workerName, write } from "./store.js";
import { trials } from "./trials.js";
import { whatIf } from "./what_if.js";
import { count } from "./words.js";

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
      ${alarms()} ${notices()}
      <div class="top ${writes ? "" : "is-single"}">
        ${writes ? nextTrial() : nothing} ${best()}
      </div>
      ${rewards()} ${graph()} ${effects()} ${whatIf()} ${trials()} ${checks()}
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

// Until somebody has acknowledged them, for everybody: the study knows who has seen an alarm, and
// another browser would ask again.
function alarms() {
  const found = state.alarms?.alarms.filter((alarm) => !alarm.acknowledged) ?? [];
  return found.map(
    (alarm) => html`<div class="banner is-alarm" role="alert">
      <p><b>Alarm:</b> <bdi>${alarm.text}.</bdi></p>
      <div class="row">
        ${mayWrite("operator")
          ? html`<button @click=${() => openDialog("acknowledge", { alarm })}>
              I have seen it
            </button>`
          : "It stays here until an operator acknowledges it."}
      </div>
    </div>`,
  );
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

// Far values in the page's own words, without those for programs; all other warnings in the server's.
function remarks({ trial, warnings }) {
  const far = state.study.far_values.filter((value) => value.trial === trial);
  const isFar = (text) => text.includes("study.correct(");
  const said = far.length
    ? far.map(farSentence)
    : warnings.some(isFar)
      ? [`Trial ${trial}: a value is far outside the others.`]
      : [];
  return [
    ...said.map((words) => html`<p>${words} Is it a typing error? Then correct the trial.</p>`),
    ...warnings.filter((text) => !isFar(text)).map((text) => html`<p><bdi>${text}</bdi></p>`),
  ];
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
    // a server that refuses to stream may still answer: refresh at every attempt
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

// -- the head: the name of the study, its aim, its counts, whether the page is live ---------------

const SECTIONS = [
  ["next", "Next trial"],
  ["best", "Best so far"],
  ["rewards", "Results"],
  ["graph", "Causes"],
  ["effects", "Factors"],
  ["what-if", "What if"],
  ["trials", "Trials"],
  ["checks", "Model checks"],
];
const STATES = { asked: "pending" };
const ORDER = ["told", "imported", "asked", "failed", "abandoned", "withdrawn", "lost"];

function head() {
  const { study, frozen } = state;
  const hidden = frozen ? ["next", "what-if"] : [];
  return html`<header>
    <div class="title">
      <h1>${study.name}</h1>
      ${connection()}
    </div>
    <p class="aim">
      The aim: <b>${study.reward}</b> as
      ${study.direction === "maximize" ? "large" : "small"} as possible, with
      ${count(study.factors.length, "thing")} to set and
      ${count(study.nodes.length, "quantity", "quantities")} to measure${study.context.length
        ? html`; no factor moves the context, <b>${study.context.join(", ")}</b>`
        : nothing}.
      <br />${counts(study)}
    </p>
    <nav aria-label="Sections">
      ${SECTIONS.filter(([id]) => !hidden.includes(id)).map(
        ([id, name]) => html`<a href="#${id}">${name}</a>`,
      )}
    </nav>
  </header>`;
}

function counts({ counts: found, trials }) {
  if (!trials) return "No trial yet.";
  const words = ORDER.filter((name) => found[name]).map(
    (name) => `${found[name].toLocaleString("en")} ${STATES[name] ?? name}`,
  );
  return `${count(trials, "trial")}: ${words.join(", ")}.`;
}

function connection() {
  const { frozen, study, connection: now } = state;
  if (frozen) return html`<p class="chip">as of ${study.now.slice(0, 16).replace("T", " ")}</p>`;
  const words = {
    live: "live",
    gone: "not connected",
    polling: "every few seconds",
    opening: "connecting",
  };
  const role = study.caller.role === "read" ? html`<p class="chip">read only</p>` : nothing;
  return html`${role}
    <p class="chip ${now === "live" ? "is-live" : ""}"><i></i>${words[now]}</p>`;
}

// -- login ----------------------------------------------------------------------------------------
//
// A token comes in the fragment of the address, which no server logs, and becomes a cookie that no
// script can read.

async function tokenOfAddress() {
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

function login() {
  return html`<main class="alone">
    <h1>This study needs a token</h1>
    <p>
      Paste the token that was given to you. The person who runs the server makes one with
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

start();

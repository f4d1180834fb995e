// Who and what: the name of the study, its aim, its counts, whether the page is live.

import { html, nothing } from "./vendor/lit-html.js";
import { count } from "./numbers.js";
import { state } from "./store.js";

const SECTIONS = [
  ["next", "Next trial"],
  ["best", "Best so far"],
  ["rewards", "Results"],
  ["graph", "Causes"],
  ["what-if", "What if"],
  ["trials", "Trials"],
  ["checks", "Model checks"],
];
const STATES = { asked: "pending" };
const ORDER = ["told", "imported", "asked", "failed", "abandoned", "lost"];

export function head() {
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
      ${count(study.nodes.length, "quantity", "quantities")} to measure.
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

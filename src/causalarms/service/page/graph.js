// Who causes whom: a picture per regime, a threshold, and always the same as a table.

import { html, nothing } from "./vendor/lit-html.js";
import * as act from "./actions.js";
import { graphPicture } from "./graph_picture.js";
import { count, DASH, known, percent, shown, signed } from "./numbers.js";
import { boxesOf, planOf } from "./placing.js";
import { rearrange } from "./refresh.js";
import { state } from "./store.js";
import { notYet, updating } from "./freshness.js";
import { capital, name } from "./words.js";

export function graph() {
  const { graph: view, places } = state;
  return html`<section id="graph" class="card" aria-labelledby="graph-title">
    <h2 id="graph-title">What causes what ${updating(view)}</h2>
    ${view === null || places === null || view.why
      ? notYet(view, "Here will be who causes whom, with a probability for every arrow.")
      : learned(view, places)}
  </section>`;
}

function learned(view, places) {
  const { threshold, regime } = state.choice;
  const single = view.regimes.length === 1;
  const chosen = view.regimes.map((_, i) => i).filter((i) => regime === "all" || i === regime);
  const panels = chosen.length ? chosen : view.regimes.map((_, i) => i);
  const edges = view.edges
    .filter((e) => panels.includes(e.regime))
    .filter((e) => (known(e.probability) ? e.probability >= threshold : e.likely));
  const plan = planOf(places.at, Math.max(state.width, 280), panels.length);
  return html`<p class="hint">
      An arrow from one quantity to another says that moving the first moves the second. The wider
      the arrow, the more probable it is; dashed, if more of the first means less of the second.
      ${view.weighs_graphs
        ? nothing
        : "This method believes in one graph: its doubts about it are not included."}
    </p>
    <div class="row controls">
      <label class="slider">
        Arrows with a probability of at least <output>${percent(threshold)}</output>
        <input
          type="range"
          min="5"
          max="100"
          step="5"
          .value=${String(Math.round(100 * threshold))}
          @input=${(event) => act.choose({ threshold: Number(event.target.value) / 100 })}
        />
      </label>
      ${single ? nothing : regimes(view.regimes, regime)}
      ${places.layout === view.layout
        ? nothing
        : html`<button @click=${() => rearrange(view)}>Rearrange</button>
            <span class="hint">There are new arrows: rearranging makes them easier to follow.</span>`}
    </div>
    <div class="panels columns-${plan.columns}">
      ${panels.map((i) => panel(view, i, edges, places, plan, single))}
    </div>
    <details>
      <summary>The same as a table (${count(edges.length, "arrow")})</summary>
      ${table(edges, single)}
    </details>`;
}

function regimes(names, chosen) {
  const all = [["all", "all"], ...names.map((title, i) => [i, title])];
  return html`<fieldset class="segments">
    <legend>Show</legend>
    ${all.map(
      ([value, title]) => html`<label>
        <input
          type="radio"
          name="regime"
          .checked=${value === chosen}
          @change=${() => act.choose({ regime: value })}
        />
        <span>${title}</span>
      </label>`,
    )}
  </fieldset>`;
}

function panel(view, regime, edges, places, plan, single) {
  const here = edges.filter((e) => e.regime === regime);
  const nodes = new Map(view.nodes.map((node) => [node.name, node]));
  const title = view.regimes[regime];
  const look = (node) => {
    const { known: data } = nodes.get(node);
    if (regime >= data.length) return "is-absent";
    return data[regime] ? "" : "is-unknown";
  };
  const picture = graphPicture({
    ...boxesOf(places.at, plan),
    width: plan.width,
    edges: here,
    reward: state.study.reward,
    look,
    label: `${title}: ${count(here.length, "arrow")}, listed in the table below`,
  });
  return html`<figure>
    ${single ? nothing : html`<figcaption>${caption(view, regime)}</figcaption>`} ${picture}
  </figure>`;
}

// A regime has no name of its own where levels have: then the levels are said.
function caption({ nodes, regimes: titles }, regime) {
  const here = nodes.filter((node) => node.regimes.length > regime);
  const own = new Set(here.filter((n) => n.regimes.length > 1).map((n) => n.regimes[regime]));
  const levels = titles.some((title) => own.has(title)) ? [] : [...own];
  const words =
    regime === 0
      ? "what causes a quantity as long as nothing acts on it"
      : "what causes a quantity while something acts on it";
  const pale = here.length < nodes.length && regime > 0 ? " Nothing acts on pale ones." : "";
  return html`<b>${capital(titles[regime])}:</b>
    <span class="hint"
      >${words}${levels.length ? ` (${levels.join("; ")})` : nothing}.${pale}</span
    >`;
}

function table(edges, single) {
  if (!edges.length) return html`<p>No arrow is so probable. Move the slider to the left.</p>`;
  const sorted = [...edges].sort((a, b) => (b.probability ?? 0) - (a.probability ?? 0));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table of arrows">
    <table>
      <caption class="hint">
        Weight: what one unit more of the cause adds to the effect.
      </caption>
      <thead>
        <tr>
          <th scope="col">Cause</th>
          <th scope="col">Effect</th>
          ${single ? nothing : html`<th scope="col">When</th>`}
          <th scope="col" class="number">Probability</th>
          <th scope="col" class="number">Weight</th>
        </tr>
      </thead>
      <tbody>
        ${sorted.map(
          (e) => html`<tr>
            <td>${name(e.parent)}</td>
            <td>${name(e.child)}</td>
            ${single ? nothing : html`<td>${name(e.when)}</td>`}
            <td class="number">${percent(e.probability)}</td>
            <td class="number">${weight(e)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function weight({ weight: w, standard_error: error }) {
  if (!known(w)) return DASH;
  return known(error) && error > 0 ? `${signed(w, error)} ± ${shown(error, error)}` : signed(w);
}

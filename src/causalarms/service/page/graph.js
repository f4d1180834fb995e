// Who causes whom: a picture per regime, a threshold, and always the same as a table.

import { html, nothing, svg } from "./vendor/lit-html.js";
import * as act from "./actions.js";
import { graphChoice, loadSettingGraph, notYet, rearrange, updating } from "./refresh.js";
import { aims, route } from "./routes.js";
import { state } from "./store.js";
import { capital, count, known, name, percent, signed, withError } from "./words.js";

export function graph() {
  const { graph: view, places } = state;
  return html`<section id="graph" class="card" aria-labelledby="graph-title">
    <h2 id="graph-title">What causes what ${updating(view)}</h2>
    ${view === null || places === null || view.why
      ? notYet(view, "Here will be who causes whom, with a probability for every arrow.")
      : learned(view, places)}
  </section>`;
}

function learned(whole, places) {
  const { threshold } = state.choice;
  const regime = graphChoice();
  const isSetting = regime === "best" || regime === "what-if";
  const view = isSetting ? (state.settingGraph ?? whole) : whole;
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
    ${keys(view)}
    <div class="row controls">
      <label class="slider">
        Arrows with a probability of at least <output>${Math.round(100 * threshold)} %</output>
        <input
          type="range"
          min="5"
          max="100"
          step="5"
          .value=${String(Math.round(100 * threshold))}
          @input=${(event) => act.choose({ threshold: Number(event.target.value) / 100 })}
        />
      </label>
      ${whole.regimes.length === 1 ? nothing : regimes(whole.regimes, regime)}
      ${places.layout === view.layout
        ? nothing
        : html`<button @click=${() => rearrange(view)}>Rearrange</button>
            <span class="hint">There are new arrows: rearranging makes them easier to follow.</span>`}
    </div>
    <div class="panels columns-${plan.columns}">
      ${panels.map((i) => panel(view, i, edges, places, plan, isSetting))}
    </div>
    <details>
      <summary>The same as a table (${count(edges.length, "arrow")})</summary>
      ${table(edges, view, isSetting)}
    </details>`;
}

// What shapes of nodes mean, if there are several.
function keys({ nodes }) {
  const kinds = new Set(nodes.map((node) => node.kind));
  if (kinds.size === 1) return nothing;
  const meanings = {
    factor: "a factor, set by a person; dashed, if its last level lowers the quantity",
    context: "context: no factor moves it",
  };
  const box = { x: 17, y: 9, halfWidth: 16, halfHeight: 8, text: "" };
  return html`<ul class="legend">
    ${Object.entries(meanings)
      .filter(([kind]) => kinds.has(kind))
      .map(
        ([kind, words]) => html`<li>
          <svg width="34" height="18" aria-hidden="true">${node("", box, `is-${kind}`, "")}</svg>
          ${words}
        </li>`,
      )}
  </ul>`;
}

function show(regime) {
  act.choose({ regime });
  loadSettingGraph();
}

function regimes(names, chosen) {
  const all = [
    ["all", "all"],
    ...names.map((title, i) => [i, title]),
    ...(state.best?.found ? [["best", "the best setting"]] : []),
    ...(state.best?.found && !state.frozen ? [["what-if", "the setting of What if"]] : []),
  ];
  return html`<fieldset class="segments">
    <legend>Show</legend>
    ${all.map(
      ([value, title]) => html`<label>
        <input
          type="radio"
          name="regime"
          .checked=${value === chosen}
          @change=${() => show(value)}
        />
        <span>${title}</span>
      </label>`,
    )}
  </fieldset>`;
}

function panel(view, regime, edges, places, plan, isSetting) {
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
    kindOf: (node) => (node === state.study.reward ? "reward" : nodes.get(node).kind),
    look,
    label: `${title}: ${count(here.length, "arrow")}, listed in the table below`,
  });
  return html`<figure>
    ${isSetting
      ? html`<figcaption><b><bdi>${title}</bdi></b></figcaption>`
      : view.regimes.length === 1
        ? nothing
        : html`<figcaption>${caption(view, regime)}</figcaption>`}
    ${picture}
  </figure>`;
}

// A regime without a name of its own is described by its levels.
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

function table(edges, { nodes, regimes: titles }, isSetting) {
  const single = titles.length === 1;
  const ofFactors = isSetting
    ? " Of a factor: what its level adds, compared with its first."
    : " Of a factor: what its last level adds, compared with its first.";
  if (!edges.length) return html`<p>No arrow is so probable. Move the slider to the left.</p>`;
  const size = (e) => Math.abs(e.reward_effect ?? 0);
  const sorted = [...edges].sort((a, b) => size(b) - size(a));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table of arrows">
    <table>
      <caption class="hint">
        Weight: what one unit more of the cause adds to the
        effect.${nodes.some(({ kind }) => kind === "factor") ? ofFactors : nothing}
      </caption>
      <thead>
        <tr>
          <th scope="col">Cause</th>
          <th scope="col">Effect</th>
          ${single ? nothing : html`<th scope="col">When</th>`}
          <th scope="col" class="number">Probability</th>
          <th scope="col" class="number">Weight</th>
          <th scope="col" class="number">Moves ${name(state.study.reward)} by</th>
        </tr>
      </thead>
      <tbody>
        ${sorted.map(
          (e) => html`<tr>
            <td>${name(e.parent)}</td>
            <td>${name(e.child)}</td>
            ${single ? nothing : html`<td>${name(e.when)}</td>`}
            <td class="number">${percent(e.probability)}</td>
            <td class="number">${withError(e.weight, e.standard_error)}</td>
            <td class="number">${signed(e.reward_effect, Math.abs(e.reward_effect))}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

// -- the picture: a box per node, an arrow per edge -----------------------------------------------
//
// Wider is more probable, dashed is a negative weight.

// `look` says how a node is drawn: "", "is-unknown" (no data) or "is-absent" (no such regime).
function graphPicture({ boxes, height, width, edges, kindOf, look, label }) {
  const ends = aims(edges, boxes);
  return html`<svg
    class="graph"
    viewBox="0 0 ${width} ${height}"
    width=${width}
    height=${height}
    role="img"
    aria-label=${label}
  >
    ${edges.map((edge, i) => arrow(edge, boxes, ends[i], width, height))}
    ${Object.entries(boxes).map(([name, box]) => node(name, box, `is-${kindOf(name)}`, look(name)))}
  </svg>`;
}

const TITLES = {
  "is-unknown": ": too few results to say what causes it",
  "is-absent": ": nothing to be set here",
  "": "",
};

// Factors are rectangles, context hexagons, all others have round ends.
function node(name, { x, y, halfWidth, halfHeight, text }, kind, looks) {
  const [left, right, top, foot] = [x - halfWidth, x + halfWidth, y - halfHeight, y + halfHeight];
  const cut = 0.6 * halfHeight;
  const corners =
    `${left},${y} ${left + cut},${top} ${right - cut},${top} ` +
    `${right},${y} ${right - cut},${foot} ${left + cut},${foot}`;
  const shape =
    kind === "is-context"
      ? svg`<polygon points=${corners} />`
      : svg`<rect x=${left} y=${top} width=${2 * halfWidth} height=${2 * halfHeight}
          rx=${kind === "is-factor" ? 2 : halfHeight} />`;
  return svg`<g class="node ${kind} ${looks}">
    ${shape}
    <text x=${x} y=${y} dy="0.34em" text-anchor="middle">${text}</text>
    <title>${name}${TITLES[looks]}</title>
  </g>`;
}

function arrow(edge, boxes, [from, to], width, height) {
  const others = Object.entries(boxes)
    .filter(([name]) => name !== edge.parent && name !== edge.child)
    .map(([, box]) => box);
  const { a, control, b } = route(from, to, others, width, height);
  const sure = edge.probability ?? 1;
  const thick = 0.8 + 2.4 * sure;
  const [dx, dy] = [b.x - control.x, b.y - control.y];
  const size = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / size, dy / size];
  const head = 5 + 1.7 * thick;
  const neck = { x: b.x - 0.8 * head * ux, y: b.y - 0.8 * head * uy };
  const wing = 0.3 * head + thick / 3;
  const back = { x: b.x - head * ux, y: b.y - head * uy };
  const tip =
    `M ${b.x} ${b.y} L ${back.x - wing * uy} ${back.y + wing * ux} ` +
    `L ${back.x + wing * uy} ${back.y - wing * ux} Z`;
  const dash = edge.weight < 0 ? `${2 * thick + 2} ${1.4 * thick + 2}` : nothing;
  return svg`<g class="edge" opacity=${0.4 + 0.6 * sure}>
    <path class="line" stroke-width=${thick} stroke-dasharray=${dash}
      d="M ${a.x} ${a.y} Q ${control.x} ${control.y} ${neck.x} ${neck.y}" />
    <path class="tip" d=${tip} />
    <title>${edge.parent} → ${edge.child}: probability ${percent(edge.probability)}, weight ${withError(
      edge.weight,
      edge.standard_error,
    )}</title>
  </g>`;
}

// -- positions of the boxes, in pixels ------------------------------------------------------------
//
// The server's positions, and no two boxes on top of each other. Causes are on the left, or on top
// if a panel is too narrow for that.

const CHARACTER = 7.5; // average width of a character
const HALF_HEIGHT = 15;
const MARGIN = 10;
const GAP = 12;
const LAYER_WIDTH = 84;
const ROW_HEIGHT = 62;
const PANEL_GAP = 28;

// How panels share the page: {width, across, columns}.
function planOf(places, pageWidth, panels) {
  const layers = layersOf(Object.entries(places)).length;
  const wide = (columns) => (pageWidth - PANEL_GAP * (columns - 1)) / columns;
  for (const columns of panels > 1 && pageWidth >= 860 ? [2, 1] : [1]) {
    const width = wide(columns);
    if (width / layers >= LAYER_WIDTH) return { width, across: true, columns };
  }
  const columns = panels > 1 && pageWidth >= 700 ? 2 : 1;
  return { width: wide(columns), across: false, columns };
}

// {boxes by name, height}; a box is {x, y, halfWidth, halfHeight, text}.
function boxesOf(places, plan) {
  return plan.across ? across(places, plan) : down(places, plan);
}

function across(places, { width }) {
  const entries = Object.entries(places);
  const layers = layersOf(entries);
  const most = Math.max(...layers.map((layer) => layer.length));
  const room = width / layers.length;
  const widest = Math.min(170, Math.max(1.45 * room, 84));
  const height = Math.max(150, most * 58 + 40, Math.min(0.5 * width, 110 + 40 * layers.length, 560));
  const boxes = Object.create(null); // a node may be called `__proto__`
  for (const [name, { x, y }] of entries) {
    const box = boxOf(name, widest);
    box.x = box.halfWidth + MARGIN + (width - 2 * (box.halfWidth + MARGIN)) * x;
    box.y = HALF_HEIGHT + MARGIN + (height - 2 * (HALF_HEIGHT + MARGIN)) * (1 - y);
    boxes[name] = box;
  }
  pushApart(Object.values(boxes), height);
  return { boxes, height };
}

// Up and down only: left and right say who causes whom.
function pushApart(boxes, height) {
  for (let round = 0; round < 60; round += 1) {
    let moved = false;
    for (const a of boxes) {
      for (const b of boxes) {
        if (a === b || a.y > b.y || (a.y === b.y && boxes.indexOf(a) > boxes.indexOf(b))) continue;
        const aside = Math.abs(a.x - b.x) - a.halfWidth - b.halfWidth;
        const lack = 2 * HALF_HEIGHT + GAP - (b.y - a.y);
        if (aside > 8 || lack <= 0.5) continue;
        a.y -= lack / 2;
        b.y += lack / 2;
        moved = true;
      }
    }
    for (const box of boxes) {
      box.y = Math.min(Math.max(box.y, HALF_HEIGHT + 4), height - HALF_HEIGHT - 4);
    }
    if (!moved) return;
  }
}

function down(places, { width }) {
  const boxes = Object.create(null); // a node may be called `__proto__`
  let top = HALF_HEIGHT + MARGIN;
  for (const layer of layersOf(Object.entries(places))) {
    const sorted = [...layer].sort((a, b) => a[1].y - b[1].y);
    for (const row of rowsOf(sorted.map(([name, at]) => [boxOf(name, 136), name, at]), width)) {
      lineUp(row, width);
      for (const [box, name] of row) {
        box.y = top;
        boxes[name] = box;
      }
      top += ROW_HEIGHT;
    }
  }
  return { boxes, height: top - ROW_HEIGHT + HALF_HEIGHT + MARGIN };
}

// As many boxes next to each other as fit.
function rowsOf(row, width) {
  const rows = [[]];
  let filled = MARGIN;
  for (const entry of row) {
    const needed = 2 * entry[0].halfWidth + GAP;
    if (rows.at(-1).length && filled + needed > width - MARGIN) {
      rows.push([]);
      filled = MARGIN;
    }
    rows.at(-1).push(entry);
    filled += needed;
  }
  return rows;
}

function lineUp(row, width) {
  let least = MARGIN;
  let rest = row.reduce((sum, [box]) => sum + 2 * box.halfWidth + GAP, 0);
  for (const [box, , { y }] of row) {
    rest -= 2 * box.halfWidth + GAP;
    const wish = MARGIN + box.halfWidth + (width - 2 * (MARGIN + box.halfWidth)) * y;
    const most = width - MARGIN - rest - box.halfWidth;
    box.x = Math.max(least + box.halfWidth, Math.min(wish, most));
    least = box.x + box.halfWidth + GAP;
  }
}

function boxOf(name, widest) {
  const letters = [...name];
  const most = Math.max(4, Math.floor((widest - 22) / CHARACTER));
  const text = letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name;
  const halfWidth = Math.max(24, ([...text].length * CHARACTER) / 2 + 11);
  return { text, halfWidth, halfHeight: HALF_HEIGHT, x: 0, y: 0 };
}

// Entries [name, {x, y}] with the same x together, from left to right.
function layersOf(entries) {
  const layers = new Map();
  for (const entry of entries) {
    const key = entry[1].x.toFixed(3);
    layers.set(key, [...(layers.get(key) ?? []), entry]);
  }
  return [...layers].sort((a, b) => a[0] - b[0]).map(([, layer]) => layer);
}

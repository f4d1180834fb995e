// Who causes whom: a picture per regime, a threshold, and always the same as a table.

import { html, nothing, svg } from "./vendor/lit-html.js";
import * as act from "./actions.js";
import { notYet, rearrange, updating } from "./refresh.js";
import { state } from "./store.js";
import { capital, count, DASH, known, name, percent, shown, signed } from "./words.js";

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

// -- the picture: a box per node, an arrow per edge -----------------------------------------------
//
// Wider is more probable, dashed is a negative weight.

// `look` says how a node is drawn: "", "is-unknown" (no data) or "is-absent" (no such regime).
function graphPicture({ boxes, height, width, edges, reward, look, label }) {
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
    ${Object.entries(boxes).map(([name, box]) => node(name, box, name === reward, look(name)))}
  </svg>`;
}

const TITLES = {
  "is-unknown": ": too few results to say what causes it",
  "is-absent": ": nothing to be set here",
  "": "",
};

function node(name, { x, y, halfWidth, halfHeight, text }, isReward, looks) {
  return svg`<g class="node ${isReward ? "is-reward" : ""} ${looks}">
    <rect x=${x - halfWidth} y=${y - halfHeight} width=${2 * halfWidth} height=${2 * halfHeight}
      rx=${halfHeight} />
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
    <title>${edge.parent} → ${edge.child}: probability ${percent(edge.probability)}, weight ${signed(
      edge.weight,
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

// -- routes of the arrows -------------------------------------------------------------------------
//
// Straight if possible, bent around other nodes if not. The same idea as the project's printed
// pictures, small enough to run while a slider moves.

const BENDS = [0, 0.06, -0.06, 0.12, -0.12, 0.2, -0.2, 0.3, -0.3, 0.42, -0.42];
const POINTS = 24;
const CLEARANCE = 7; // pixels between an arrow and a node

// Where every arrow leaves and enters, [[from, to], ...]: those on the same side of a node are
// spread, in the order of their directions, so that no head hides another one.
function aims(edges, boxes) {
  const ends = edges.map(({ parent, child }) => [{ ...boxes[parent] }, { ...boxes[child] }]);
  const meeting = new Map();
  edges.forEach(({ parent, child }, i) => {
    for (const [end, own, other] of [[0, parent, child], [1, child, parent]]) {
      const [dx, dy] = [boxes[other].x - boxes[own].x, boxes[other].y - boxes[own].y];
      const flat = Math.abs(dx) * boxes[own].halfHeight > Math.abs(dy) * boxes[own].halfWidth;
      const side = flat ? (dx > 0 ? "right" : "left") : dy > 0 ? "below" : "above";
      const key = JSON.stringify([own, side]);
      const slope = flat ? dy / Math.abs(dx) : dx / Math.abs(dy);
      meeting.set(key, [...(meeting.get(key) ?? []), { i, end, flat, slope }]);
    }
  });
  for (const group of meeting.values()) {
    group.sort((a, b) => a.slope - b.slope);
    group.forEach(({ i, end, flat }, place) => {
      const box = ends[i][end];
      const room = flat ? 1.3 * box.halfHeight : 1.3 * box.halfWidth;
      const step = Math.min(flat ? 9 : 16, room / group.length);
      const shift = (place - (group.length - 1) / 2) * step;
      box.aimX = box.x + (flat ? 0 : shift);
      box.aimY = box.y + (flat ? shift : 0);
    });
  }
  return ends;
}

// Boxes are {x, y, halfWidth, halfHeight, aimX, aimY}.
function route(from, to, others, width, height) {
  const begin = { x: from.aimX, y: from.aimY };
  const end = { x: to.aimX, y: to.aimY };
  let best = null;
  for (const bend of BENDS) {
    const control = {
      x: (begin.x + end.x) / 2 - 2 * bend * (end.y - begin.y),
      y: (begin.y + end.y) / 2 + 2 * bend * (end.x - begin.x),
    };
    const points = curve(begin, control, end);
    const cost = obstacles(points, others, width, height) + 3 * Math.abs(bend);
    if (best === null || cost < best.cost - 1e-9) best = { cost, control, points };
    if (best.cost < 0.05) break;
  }
  return fromRimToRim(begin, end, best, from, to);
}

function curve(a, control, b) {
  return Array.from({ length: POINTS + 1 }, (_, i) => at(a, control, b, i / POINTS));
}

function at(a, control, b, t) {
  const [p, q, r] = [(1 - t) ** 2, 2 * t * (1 - t), t ** 2];
  return { x: p * a.x + q * control.x + r * b.x, y: p * a.y + q * control.y + r * b.y };
}

function obstacles(points, others, width, height) {
  let cost = 0;
  for (const node of others) {
    let nearest = Infinity;
    for (const point of points) {
      const dx = Math.max(Math.abs(point.x - node.x) - node.halfWidth, 0);
      const dy = Math.max(Math.abs(point.y - node.y) - node.halfHeight, 0);
      nearest = Math.min(nearest, Math.hypot(dx, dy));
    }
    cost += 60 * Math.max(0, 1 - nearest / CLEARANCE);
  }
  const out = (p) => Math.max(4 - p.x, p.x - width + 4, 4 - p.y, p.y - height + 4, 0);
  return cost + 1000 * Math.max(...points.map(out));
}

// The part of the parabola between the two rims, again as a quadratic curve.
function fromRimToRim(begin, end, { control }, from, to) {
  const point = (t) => at(begin, control, end, t);
  const first = crossing((t) => inside(point(t), from, 1));
  const last = 1 - crossing((t) => inside(point(1 - t), to, 3));
  const a = point(first);
  const b = point(last);
  const tangent = {
    x: 2 * (1 - first) * (control.x - begin.x) + 2 * first * (end.x - control.x),
    y: 2 * (1 - first) * (control.y - begin.y) + 2 * first * (end.y - control.y),
  };
  const half = (last - first) / 2;
  return { a, control: { x: a.x + half * tangent.x, y: a.y + half * tangent.y }, b };
}

function inside(point, node, air) {
  const flat = Math.max(node.halfWidth - node.halfHeight, 0);
  const beyond = Math.max(Math.abs(point.x - node.x) - flat, 0);
  return Math.hypot(beyond, point.y - node.y) <= node.halfHeight + air;
}

function crossing(isInside) {
  let low = 0;
  let high = 0.5;
  for (let step = 0; step < 24; step += 1) {
    const middle = (low + high) / 2;
    if (isInside(middle)) low = middle;
    else high = middle;
  }
  return high;
}

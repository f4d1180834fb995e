// One panel of the graph: nodes where the server put them, an arrow per edge. Wider is more
// probable, dashed is a negative weight. On narrow screens causes are on top instead of on the left.

import { html, nothing, svg } from "./vendor/lit-html.js";
import { percent, signed } from "./numbers.js";
import { route } from "./routes.js";

const CHARACTER = 7.4; // average width of a character, in pixels
const HALF_HEIGHT = 15;
const MARGIN = 10;
const LAYER_WIDE = 92; // room for a layer that goes across
const LAYER_TALL = 58; // and for one that goes down

// How the panels of a graph share the page: {width, height, across, columns}.
export function planOf(places, pageWidth, panels) {
  const xs = new Set(Object.values(places).map((p) => p.x.toFixed(3))).size;
  const most = Math.max(...layerSizes(places), 1);
  for (const columns of panels > 1 && pageWidth >= 860 ? [2, 1] : [1]) {
    const width = (pageWidth - 24 * (columns - 1)) / columns;
    if (width / xs >= LAYER_WIDE) {
      const height = Math.max(most * 62 + 40, Math.min(0.46 * width, 90 + 34 * xs, 420), 150);
      return { width, height, across: true, columns };
    }
  }
  const columns = panels > 1 && pageWidth >= 860 ? 2 : 1;
  const width = (pageWidth - 24 * (columns - 1)) / columns;
  return { width, height: xs * LAYER_TALL + 30, across: false, columns };
}

function layerSizes(places) {
  const sizes = new Map();
  for (const { x } of Object.values(places)) {
    sizes.set(x.toFixed(3), (sizes.get(x.toFixed(3)) ?? 0) + 1);
  }
  return sizes.values();
}

export function graphPicture({ names, places, edges, reward, known, plan, label }) {
  const nodes = Object.fromEntries(names.map((name) => [name, box(name, places[name], plan)]));
  const { width, height } = plan;
  return html`<svg
    class="graph"
    viewBox="0 0 ${width} ${height}"
    width=${width}
    height=${height}
    role="img"
    aria-label=${label}
  >
    ${edges.map((edge) => arrow(edge, nodes, width, height))}
    ${names.map((name) => svg`<g class="node ${name === reward ? "is-reward" : ""} ${
      known(name) ? "" : "is-unknown"
    }">
      <rect x=${nodes[name].x - nodes[name].halfWidth} y=${nodes[name].y - HALF_HEIGHT}
        width=${2 * nodes[name].halfWidth} height=${2 * HALF_HEIGHT} rx=${HALF_HEIGHT} />
      <text x=${nodes[name].x} y=${nodes[name].y} dy="0.34em" text-anchor="middle"
        >${nodes[name].text}</text>
      <title>${name}${known(name) ? "" : ": too few results to say what causes it"}</title>
    </g>`)}
  </svg>`;
}

function box(name, { x, y }, { width, height, across, widest }) {
  const most = Math.max(4, Math.floor(((widest ?? (across ? 150 : 130)) - 22) / CHARACTER));
  const text = [...name].length > most ? `${[...name].slice(0, most - 1).join("")}…` : name;
  const halfWidth = Math.max(22, ([...text].length * CHARACTER) / 2 + 11);
  const [inX, inY] = [width - 2 * (halfWidth + MARGIN), height - 2 * (HALF_HEIGHT + MARGIN)];
  const [u, v] = across ? [x, 1 - y] : [y, x];
  return {
    text, halfWidth, halfHeight: HALF_HEIGHT,
    x: halfWidth + MARGIN + inX * u,
    y: HALF_HEIGHT + MARGIN + inY * v,
  };
}

function arrow(edge, nodes, width, height) {
  const [begin, end] = [nodes[edge.parent], nodes[edge.child]];
  const others = Object.values(nodes).filter((node) => node !== begin && node !== end);
  const { a, control, b } = route(begin, end, others, width, height);
  const sure = edge.probability ?? 1;
  const thick = 1 + 3.2 * sure;
  const [dx, dy] = [b.x - control.x, b.y - control.y];
  const size = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / size, dy / size];
  const head = 5 + 1.6 * thick;
  const neck = { x: b.x - 0.8 * head * ux, y: b.y - 0.8 * head * uy };
  const wing = 0.32 * head + thick / 3;
  const back = { x: b.x - head * ux, y: b.y - head * uy };
  const tip =
    `M ${b.x} ${b.y} L ${back.x - wing * uy} ${back.y + wing * ux} ` +
    `L ${back.x + wing * uy} ${back.y - wing * ux} Z`;
  const dash = edge.weight < 0 ? `${2.2 * thick} ${1.6 * thick}` : nothing;
  return svg`<g class="edge" opacity=${0.35 + 0.65 * sure}>
    <path class="line" stroke-width=${thick} stroke-dasharray=${dash}
      d="M ${a.x} ${a.y} Q ${control.x} ${control.y} ${neck.x} ${neck.y}" />
    <path class="tip" d=${tip} />
    <title>${edge.parent} → ${edge.child}: probability ${percent(edge.probability)}, weight ${signed(
      edge.weight,
    )}</title>
  </g>`;
}

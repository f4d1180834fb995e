// Choose levels and see the expected value of every quantity, next to every factor at its first level.

import { html, nothing, svg } from "./vendor/lit-html.js";
import * as act from "./actions.js";
import { fails } from "./best.js";
import { contextFields, factorFields } from "./forms.js";
import { canPredict, chosenLevels, loadSettingGraph, notYet, predict } from "./refresh.js";
import { state } from "./store.js";
import { interval, known, moved, name, setting, shown, signed } from "./words.js";

let timer = null;

export function whatIf() {
  const { best, graph, study } = state;
  if (state.frozen) return nothing;
  return html`<section id="what-if" class="card" aria-labelledby="what-if-title">
    <h2 id="what-if-title">What if</h2>
    ${!canPredict()
      ? notYet(graph, "Here you will see what any setting would give, without carrying it out.")
      : html`<p class="hint">
            Choose a setting and read what the model expects of every quantity. Nothing is carried
            out.
          </p>
          <div class="fields">${factorFields("what-if", chosenLevels(), choose)}</div>
          ${contextFields("what-if-context")}
          <div class="row">
            <button @click=${() => choose({ ...best.found.levels })}>The best so far</button>
            <button @click=${() => choose({})}>Every factor at its first level</button>
          </div>
          <p class="lead small">${setting(chosenLevels(), study.factors)}</p>
          ${expected()}`}
  </section>`;
}

function choose(levels) {
  act.choose({ levels });
  clearTimeout(timer);
  timer = setTimeout(() => Promise.all([predict(), loadSettingGraph()]), 120);
}

function expected() {
  const { prediction, study } = state;
  if (prediction === null) return html`<p class="hint">The server is computing it.</p>`;
  if (prediction.problem) return html`<p class="problem" role="alert">${prediction.problem}</p>`;
  const { natural, chosen } = prediction;
  const same = !moved(chosenLevels(), study.factors).length;
  return html`${fails(chosen.failing)}
    <table class="what-if" role="table">
      <caption class="hint">
        Averages over many rounds; with 95 % probability they lie in the interval. Grey: every
        factor at its first level. Colour: this setting.
      </caption>
      <thead role="rowgroup">
        <tr role="row">
          <th scope="col" role="columnheader">Quantity</th>
          <th scope="col" role="columnheader" class="number">Expected</th>
          <th scope="col" role="columnheader" class="number">95 % interval</th>
          <th scope="col" role="columnheader" class="number">
            ${same ? nothing : "Against the first levels"}
          </th>
          <td role="cell" class="bar-cell"></td>
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${study.nodes.map((node) => row(node, natural.expected[node], chosen.expected[node], same))}
      </tbody>
    </table>`;
}

function row(node, natural, chosen, same) {
  const span = known(chosen.high) && known(chosen.low) ? chosen.high - chosen.low : null;
  const change = known(chosen.mean) && known(natural.mean) ? chosen.mean - natural.mean : null;
  return html`<tr role="row" class=${node === state.study.reward ? "is-reward" : ""}>
    <th scope="row" role="rowheader">${name(node)}</th>
    <td role="cell" class="number">${shown(chosen.mean, span)}</td>
    <td role="cell" class="number at-interval">${interval(chosen.low, chosen.high)}</td>
    <td role="cell" class="number at-change">${same ? nothing : signed(change, span)}</td>
    <td role="cell" class="bar-cell">${both(natural, chosen)}</td>
  </tr>`;
}

// The two intervals on one line, each quantity on its own scale.
function both(natural, chosen) {
  const ends = [natural.low, natural.high, chosen.low, chosen.high];
  if (!ends.every(known)) return nothing;
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const x = (value) => (high > low ? 4 + (112 * (value - low)) / (high - low) : 60);
  const line = (name, at, y) => svg`<g class=${name}>
    <line x1=${x(at.low)} x2=${x(at.high)} y1=${y} y2=${y} />
    <circle cx=${x(at.mean)} cy=${y} r="3.2" />
  </g>`;
  return html`<svg class="intervals" viewBox="0 0 120 20" width="120" height="20" aria-hidden="true">
    ${line("natural", natural, 5.5)} ${line("chosen", chosen, 14.5)}
  </svg>`;
}

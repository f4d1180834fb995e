// What every factor acts on, and what each of its levels does to the reward.

import { html, nothing } from "./vendor/lit-html.js";
import { notYet, updating } from "./refresh.js";
import { state } from "./store.js";
import { interval, name, percent, signed } from "./words.js";

const LEAST_PROBABLE = 0.05; // that is listed
const LIKELY = 0.5; // above it, a change of how a node answers its causes is told

export function effects() {
  const { effects: view, study } = state;
  return html`<section id="effects" class="card" aria-labelledby="effects-title">
    <h2 id="effects-title">What each factor does ${updating(view)}</h2>
    ${view === null || view.why
      ? notYet(view, "Here will be what each factor acts on, and what its levels do.")
      : table(view.effects, study)}
  </section>`;
}

function table(found, { reward, factors }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table of effects">
    <table class="effects">
      <caption class="hint">
        What a level adds to ${reward}, compared with the first level of the factor, while all
        others are at theirs and not as in the best setting, with its 95 % interval; costs are not
        counted. Direct: the part that no measured quantity carries.
      </caption>
      <thead>
        <tr>
          <th scope="col">Level</th>
          <th scope="col" class="number">${reward}</th>
          <th scope="col" class="number">Direct</th>
        </tr>
      </thead>
      ${found.map((effect, i) => group(effect, factors[i]))}
    </table>
  </div>`;
}

function group(effect, { levels: [first, ...levels] }) {
  return html`<tbody>
    <tr>
      <th scope="rowgroup" colspan="3">
        <b>${name(effect.factor)}</b>
        <span class="hint"
          >against ${name(first)}; ${actsOn(effect.acts_on)}${changes(effect.free)}</span
        >
      </th>
    </tr>
    ${levels.map(
      (level) => html`<tr>
        <th scope="row">${name(level)}</th>
        ${numbers(ofLevel(effect.reward, level))} ${numbers(ofLevel(effect.direct, level))}
      </tr>`,
    )}
  </tbody>`;
}

// Levels are keys of a table, as text: the number 1.0 is "1.0" there.
function ofLevel(table, level) {
  const same = (key) => key === String(level) || Number(key) === level;
  return Object.entries(table).find(([key]) => same(key))[1];
}

function actsOn(nodes) {
  const likely = Object.entries(nodes)
    .filter(([, chance]) => chance >= LEAST_PROBABLE)
    .sort((a, b) => b[1] - a[1]);
  if (!likely.length) return "does not seem to act on anything";
  return html`acts on
  ${likely.map(([node, chance], i) => html`${i ? ", " : nothing}${name(node)} (${percent(chance)})`)}`;
}

function changes(nodes) {
  const likely = Object.entries(nodes).filter(([, chance]) => chance > LIKELY);
  return likely.map(
    ([node, chance]) =>
      html`, and changes how ${name(node)} answers its causes (${percent(chance)})`,
  );
}

function numbers({ mean, low, high }) {
  return html`<td class="number">
    ${signed(mean, high - low)} <span class="hint">${interval(low, high)}</span>
  </td>`;
}

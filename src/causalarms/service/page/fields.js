// Fields of forms: a value per node, a level per factor.

import { html, nothing } from "./vendor/lit-html.js";
import { state } from "./store.js";
import { entryOf, name } from "./words.js";

// `draft` has the typed texts and the names of those that are wrong.
export function valueFields(form, draft, onValues) {
  const { nodes, reward } = state.study;
  return nodes.map((node, i) => {
    const wrong = draft.wrong.includes(node);
    return html`<label class="field ${node === reward ? "is-reward" : ""}">
      <span>${name(node)}${node === reward ? html` <small>the aim</small>` : nothing}</span>
      <input
        name="${form}-${i}"
        inputmode=${neverNegative(node) ? "decimal" : "text"}
        autocomplete="off"
        aria-invalid=${wrong}
        aria-describedby=${wrong ? `${form}-problem` : nothing}
        .value=${entryOf(draft.values, node) ?? ""}
        @input=${(event) => onValues(typedBeside(event.target))}
      />
    </label>`;
  });
}

// What stands in the fields now. A draft may be a frame behind what was typed.
function typedBeside(input) {
  const fields = [...input.closest(".fields").querySelectorAll("input")];
  return Object.fromEntries(state.study.nodes.map((node, i) => [node, fields[i].value]));
}

// Levels by name of the factor; a factor that is not named is at its first level.
export function factorFields(form, levels, onLevels) {
  return state.study.factors.map(
    (factor, i) => html`<label class="field">
      <span>${name(factor.name)}</span>
      <select
        name="${form}-${i}"
        @change=${(event) => onLevels(chosenBeside(event.target))}
      >
        ${factor.levels.map(
          (level) => html`<option
            .selected=${level === (entryOf(levels, factor.name) ?? factor.levels[0])}
          >
            ${level}
          </option>`,
        )}
      </select>
    </label>`,
  );
}

// As `typedBeside`.
function chosenBeside(select) {
  const fields = [...select.closest(".fields").querySelectorAll("select")];
  const chosen = ({ levels }, i) => levels[fields[i].selectedIndex];
  return Object.fromEntries(state.study.factors.map((f, i) => [f.name, chosen(f, i)]));
}

// Number pads of some phones have no minus sign: they are for what never was negative.
function neverNegative(node) {
  const seen = state.trials.rows.map((row) => entryOf(row.values, node)).filter((x) => x != null);
  return seen.length > 0 && seen.every((x) => x >= 0);
}

// Settings in words: "Switch heat on, catalyst to new; leave the rest."

import { html } from "./vendor/lit-html.js";

export const isSwitch = (factor) =>
  factor.levels.length === 2 && factor.levels[0] === "off" && factor.levels[1] === "on";

export const moved = (levels, factors) =>
  factors.filter((f) => f.name in levels && levels[f.name] !== f.levels[0]);

export function sentence(levels, factors) {
  const parts = moved(levels, factors);
  if (!parts.length) return html`Leave everything as it is.`;
  const rest = parts.length < factors.length ? "; leave the rest." : ".";
  return html`Switch ${parts.map((f, i) => [i ? ", " : "", part(f, levels[f.name])])}${rest}`;
}

// For a cell of a table.
export function brief(levels, factors) {
  const parts = moved(levels, factors);
  if (!parts.length) return "nothing switched";
  return parts.map((f) => (isSwitch(f) ? f.name : `${f.name} ${levels[f.name]}`)).join(", ");
}

export function part(factor, level) {
  return isSwitch(factor)
    ? html`<b>${factor.name}</b> ${level}`
    : html`<b>${factor.name}</b> to <b>${level}</b>`;
}

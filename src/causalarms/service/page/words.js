// Settings in words: "Switch on heat and fan, switch catalyst to new; leave the rest."

import { html, nothing } from "./vendor/lit-html.js";

const isSwitch = (factor) => factor.is_switch;

// What a table by names of the user's says of one. Never what objects inherit: a node may be called
// `constructor`.
export const entryOf = (table, name) =>
  table != null && Object.hasOwn(table, name) ? table[name] : undefined;

export const moved = (levels, factors) =>
  factors.filter((f) => (entryOf(levels, f.name) ?? f.levels[0]) !== f.levels[0]);

export function sentence(levels, factors) {
  const parts = moved(levels, factors);
  if (!parts.length) return html`Leave everything as it is.`;
  const on = parts.filter(isSwitch);
  const others = parts.filter((f) => !isSwitch(f));
  const bold = (text) => html`<b>${name(text)}</b>`;
  const rest = parts.length < factors.length ? "; leave the rest." : ".";
  return html`Switch ${on.length ? html`on ${joined(on.map((f) => bold(f.name)))}` : nothing}${
    on.length && others.length ? ", switch " : nothing
  }${joined(others.map((f) => html`${bold(f.name)} to ${bold(levels[f.name])}`))}${rest}`;
}

const joined = (items) =>
  items.map((item, i) => [i === 0 ? "" : i === items.length - 1 ? " and " : ", ", item]);

// A name of the user's: it breaks after underscores and the like, and its direction of writing does
// not leak.
export function name(text) {
  const parts = String(text).split(/(?<=[_./-])/);
  return html`<bdi>${parts.map((part, i) => (i ? html`<wbr />${part}` : part))}</bdi>`;
}

// For a cell of a table.
export function brief(levels, factors) {
  const parts = moved(levels, factors);
  if (!parts.length) return "nothing switched";
  return parts.map((f, i) => [
    i ? ", " : "",
    isSwitch(f) ? name(f.name) : html`${name(f.name)} ${name(levels[f.name])}`,
  ]);
}

export function part(factor, level) {
  return isSwitch(factor)
    ? html`<b>${name(factor.name)}</b> ${level}`
    : html`<b>${name(factor.name)}</b> to <b>${name(level)}</b>`;
}

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

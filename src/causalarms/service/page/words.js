// What people read: settings in words, numbers, times.
//
// A setting names the level of every factor. That of a trial has those first that change from the
// trial before, as the words of the library do (`in_words`): catalyst A → C, pump high → normal.

import { html, nothing } from "./vendor/lit-html.js";
import { state } from "./store.js";

// An own entry of a table whose keys are names of the user. Never an inherited one: a node may be
// called `constructor`.
export const entryOf = (table, name) =>
  table != null && Object.hasOwn(table, name) ? table[name] : undefined;

export const moved = (levels, factors) =>
  factors.filter((f) => (entryOf(levels, f.name) ?? f.levels[0]) !== f.levels[0]);

// Those first that are not at their first level.
export function setting(levels, factors) {
  const away = moved(levels, factors);
  const first = factors.filter((f) => !away.includes(f));
  return listed(
    away.map((f) => html`${name(f.name)} <b>${name(levels[f.name])}</b>`),
    first.map((f) => html`${name(f.name)} ${name(f.levels[0])}`),
    away.length ? "at the first level:" : "every factor at its first level:",
  );
}

// What to set in a trial, or what was set: what changes from the trial before comes first.
export function settingOf({ levels, before, trial, worker }, factors) {
  if (!before) return setting(levels, factors);
  const was = (f) => entryOf(before.levels, f.name);
  const changes = factors.filter((f) => was(f) !== levels[f.name]);
  const same = factors.filter((f) => was(f) === levels[f.name]);
  const direct = trial === before.number + 1 && worker === before.worker;
  return listed(
    changes.map((f) => html`${name(f.name)} ${name(was(f))} → <b>${name(levels[f.name])}</b>`),
    same.map((f) => html`${name(f.name)} ${name(levels[f.name])}`),
    html`${changes.length ? "" : "nothing changes; "}as in trial
    ${before.number}${direct ? "" : html` of ${name(before.worker)}`}:`,
  );
}

function listed(marked, others, label) {
  const commas = (items) => items.map((item, i) => [i ? ", " : "", item]);
  return html`${marked.length ? html`<span class="marked">${commas(marked)}</span>` : nothing}${
    marked.length && others.length ? html`<span class="unseen">; </span>` : nothing
  }${others.length ? html`<span class="kept">${label} ${commas(others)}</span>` : nothing}`;
}

// A name of the user: lines may break after underscores and the like, and its direction of writing
// does not leak. A level that is a number stays in one piece.
export function name(text) {
  if (typeof text === "number") return html`<span class="unbroken">${text}</span>`;
  const parts = String(text).split(/(?<=[_./-])/);
  return html`<bdi>${parts.map((part, i) => (i ? html`<wbr />${part}` : part))}</bdi>`;
}

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// -- numbers --------------------------------------------------------------------------------------
//
// The server sends null for what nobody can know (NaN): a dash here.

export const DASH = "–";
const LARGEST_PLAIN = 1e7;
const SMALLEST_PLAIN = 1e-3;

export const known = (x) => typeof x === "number" && Number.isFinite(x);

// `span` is what makes a difference (the width of an interval): it is shown with two digits, and
// the number to the same place. Without it four digits are shown.
export function shown(x, span = null) {
  if (!known(x)) return DASH;
  const size = Math.abs(x);
  const spanned = known(span) && span > 0;
  const place = spanned ? 1 - power(span) : Math.max(3 - power(size), 0);
  if (Math.abs(x) < 0.5 * 10 ** -place) return "0";
  const large = Math.max(size, known(span) ? span : 0);
  if (large !== 0 && (large >= LARGEST_PLAIN || large < SMALLEST_PLAIN)) {
    const digits = spanned ? place + power(size) : 3;
    return minus(x.toExponential(Math.min(Math.max(digits, 0), 9)));
  }
  const rounded = place < 0 ? Math.round(x * 10 ** place) / 10 ** place : x;
  const text = rounded.toFixed(Math.min(Math.max(place, 0), 9));
  return minus(grouped(spanned ? text : text.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")));
}

export function signed(x, span = null) {
  const text = shown(x, span);
  return known(x) && x > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

// A value and its standard error, of which two digits are shown.
export function withError(x, error) {
  return known(error) && error > 0 ? `${signed(x, error)} ± ${shown(error, error)}` : signed(x);
}

export function interval(low, high) {
  if (!known(low) || !known(high)) return DASH;
  return `${shown(low, high - low)} to ${shown(high, high - low)}`;
}

// With two digits, if more would suggest a precision that is not there.
export function roughly(x) {
  return known(x) && x !== 0 ? shown(x, Math.abs(x)) : shown(x);
}

// A probability, never rounded to certainty.
export function percent(p) {
  if (!known(p)) return DASH;
  if (p > 0.99) return "over 99 %";
  if (p < 0.01) return "under 1 %";
  return `${Math.round(100 * p)} %`;
}

export function count(n, word, words = `${word}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? word : words}`;
}

// 101,500 may be a hundred thousand or a hundred and a half: only 0,500 is sure.
export const AMBIGUOUS = /^[-+−]?[1-9]\d{0,2},\d{3}$/;

// What was typed: a decimal comma is understood, nothing typed was not measured (null), and NaN
// says that it is no number.
export function typed(text) {
  if (AMBIGUOUS.test(text.trim())) return NaN;
  const tidy = text.trim().replace(/[\s\u202f]/g, "").replace(/−/g, "-").replace(/^([^.,]*),([^.,]*)$/, "$1.$2");
  if (tidy === "") return null;
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(tidy)) return NaN;
  return Number.isFinite(Number(tidy)) ? Number(tidy) : NaN;
}

// Round steps (1, 2 or 5 times a power of ten) that cover low to high.
export function ticks(low, high, wanted = 5) {
  const rough = (high - low) / wanted;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step);
}

function power(size) {
  return size === 0 ? 3 : Math.floor(Math.log10(size) + 1e-12);
}

// 104 054: a thin space cannot be read as a decimal point or comma
function grouped(text) {
  const [whole, rest] = text.split(".");
  const spaced = whole.replace(/(\d)(?=(\d{3})+$)/g, "$1\u202f");
  const tidy = whole.replace("-", "").length > 4 ? spaced : whole;
  return rest === undefined ? tidy : `${tidy}.${rest}`;
}

function minus(text) {
  return text.replace("e+", "e").replace(/^-([0.]*)$/, "$1").replace(/-/g, "−");
}

// -- times and ages, by the clock of the server: the clock of this computer may be wrong ----------

// Of a pending trial, in words.
export function ageOf(row) {
  const seconds = (Date.now() + state.clockOffset - Date.parse(row.asked_at)) / 1000;
  if (!known(seconds)) return DASH;
  if (seconds < 45) return "just now";
  if (seconds < 5400) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

// In this computer's time zone, to the minute; of today only the time.
export function moment(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return "";
  const pad = (n) => String(n).padStart(2, "0");
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}`;
  if (!state.frozen && at.toDateString() === new Date().toDateString()) return time;
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${time}`;
}

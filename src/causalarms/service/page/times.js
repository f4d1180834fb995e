// Moments and ages, by the clock of the server: that of this computer may be wrong.

import { DASH, known } from "./numbers.js";
import { state } from "./store.js";

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

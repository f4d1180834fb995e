// What a person chose or typed: kept for this tab, so that a reload loses none of it.

const KEY = "causalarms:";

export function remember(name, value) {
  try {
    sessionStorage.setItem(KEY + location.pathname + name, JSON.stringify(value));
  } catch {
    // a browser that stores nothing forgets on reload, and nothing else happens
  }
}

export function recall(name, otherwise) {
  try {
    const text = sessionStorage.getItem(KEY + location.pathname + name);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

// The name under which this browser asks. Two browsers must not share one: they would be handed
// the same trial.
export function workerName() {
  const name = `${KEY}worker`;
  try {
    const found = localStorage.getItem(name) ?? `page-${randomHex(2)}`;
    localStorage.setItem(name, found);
    return found;
  } catch {
    return `page-${randomHex(2)}`;
  }
}

export function randomHex(bytes) {
  return [...crypto.getRandomValues(new Uint8Array(bytes))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

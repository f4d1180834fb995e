// What a person chose or typed: kept for this tab, so that a reload loses none of it.

const PREFIX = "causalarms:";
let study = ""; // another study at the same address has its own choices

export function choicesOf(hash) {
  study = hash.slice(0, 16);
}

export function remember(name, value) {
  try {
    sessionStorage.setItem(`${PREFIX}${study}:${name}`, JSON.stringify(value));
  } catch {
    // a browser that stores nothing forgets on reload, and nothing else happens
  }
}

export function recall(name, otherwise) {
  try {
    const text = sessionStorage.getItem(`${PREFIX}${study}:${name}`);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

// The name under which this browser asks. Two browsers must not share one: they would be handed
// the same trial.
export function workerName() {
  const name = `${PREFIX}worker`;
  const fresh = `page-${randomHex(2)}`;
  try {
    const found = localStorage.getItem(name) ?? fresh;
    localStorage.setItem(name, found);
    return found;
  } catch {
    return fresh;
  }
}

export function randomHex(bytes) {
  return [...crypto.getRandomValues(new Uint8Array(bytes))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

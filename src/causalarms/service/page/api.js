// The API of the server that sent this page, or the answers frozen into a report. Every address is
// relative, so that the page works wherever a proxy puts it.

const frozen = document.getElementById("frozen");
const answers = frozen === null ? null : JSON.parse(frozen.textContent);
const lastSeen = new Map(); // path -> { etag, data }: an unchanged answer stays the same object

export const isFrozen = answers !== null;

class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.body = body;
  }

  get unreachable() {
    return this.status === 0;
  }
}

export const address = (path) => new URL(`api/v1/${path}`, document.baseURI).href;

export async function get(path, signal) {
  if (isFrozen) {
    if (Object.hasOwn(answers, path)) return { data: answers[path], date: null };
    throw new Problem(404, { title: `The report does not hold ${path}.` });
  }
  // "no-cache" asks with the ETag of the copy the browser has, and hands out that copy on a 304
  const response = await send(path, { cache: "no-cache", signal });
  const etag = response.headers.get("ETag");
  const date = response.headers.get("Date");
  const before = lastSeen.get(path);
  if (etag !== null && before?.etag === etag) return { data: before.data, date };
  const data = await response.json();
  if (etag !== null) lastSeen.set(path, { etag, data });
  return { data, date };
}

export async function write(method, path, body, key = null) {
  const headers = { "Content-Type": "application/json" };
  if (key !== null) headers["Idempotency-Key"] = key;
  const response = await send(path, { method, headers, body: JSON.stringify(body) });
  return response.status === 204 ? null : response.json();
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(address(path), { credentials: "same-origin", ...options });
  } catch {
    throw new Problem(0, { title: "The server does not answer." });
  }
  if (response.ok) return response;
  let body = {};
  try {
    body = await response.json();
  } catch {
    // a proxy's own page, not ours
  }
  throw new Problem(response.status, body);
}

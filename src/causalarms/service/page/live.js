// The server says "head is now 812"; what changed is then asked for. Closed while the tab is hidden:
// a browser allows few connections to one server, and a tab nobody sees needs none.

import { address } from "./api.js";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15000;

export function listen({ onNews, onConnection }) {
  let source = null;
  let timer = null;
  let wait = FIRST_WAIT;

  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const retry = () => {
    close();
    timer = setTimeout(open, wait);
    wait = Math.min(2 * wait, LONGEST_WAIT);
  };
  const hear = (event) => {
    wait = FIRST_WAIT;
    onConnection("live");
    let news = {};
    try {
      news = JSON.parse(event.data);
    } catch {
      // news without a number is still news
    }
    onNews({ ...news, reset: event.type === "reset" });
  };
  function open() {
    close();
    if (document.hidden) return;
    source = new EventSource(address("events"));
    source.onmessage = hear;
    for (const kind of ["hello", "head", "reset"]) source.addEventListener(kind, hear);
    source.onerror = () => {
      onConnection("gone");
      retry();
    };
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && open());
  open();
}

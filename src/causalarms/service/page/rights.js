// Who may do what: read looks, a worker asks and tells, an operator does all.

import { state } from "./store.js";

export function mayWrite(role = "worker") {
  if (state.frozen) return false;
  const { role: mine } = state.study.caller;
  return mine === "operator" || mine === role;
}

// The pending trials whose results this person may tell.
export function mine() {
  const { caller } = state.study;
  return caller.role === "worker"
    ? state.pending.filter((row) => row.worker === caller.name)
    : state.pending;
}

// The name under which this person asks: that of the token, where a token is bound to one.
export function myName() {
  const { role, name } = state.study.caller;
  return role === "worker" ? name : state.worker;
}

// Callers that a limit or a check turned away: one line with the counts, and what to do about each reason behind it.

import { element, field, reconcile, setAttribute, setField, setText } from "./dom.js";
import { plural, whole } from "./numbers.js";

// Reasons that are named in the line; the others stand behind it.
const NAMED = 3;

export class Callers {
  constructor() {
    this.title = element("span");
    this.counts = element("dl", { class: "facts" });
    this.connections = field("callers.connections");
    const open = element("p", { class: "quiet" }, "Connections open now: ", this.connections);
    const details = element("details", {}, element("summary", {}, this.title), this.counts, open);
    this.node = element(
      "section",
      { class: "panel notice callers", "aria-label": "Refused callers", hidden: true },
      details,
    );
  }

  update({ callers }) {
    const refused = callers?.refused ?? [];
    setAttribute(this.node, "hidden", refused.length === 0);
    if (refused.length === 0) return;
    const all = refused.reduce((sum, { count }) => sum + count, 0);
    const reasons = refused.slice(0, NAMED).map(({ reason, count }) => `${whole(count)} ${reason}`);
    if (refused.length > NAMED) reasons.push("others");
    setText(
      this.title,
      `${plural(all, "request")} refused by a limit or a check since the gateway started: ${reasons.join(", ")}`,
    );
    reconcile(
      this.counts,
      refused,
      (one) => one.reason,
      refusal,
      (row, { count }) => setField(row.lastElementChild.firstElementChild, count, whole(count)),
    );
    setField(this.connections, callers.connections, whole(callers.connections));
  }
}

function refusal({ reason, remedy }) {
  return element(
    "div",
    {},
    element("dt", {}, element("b", {}, reason), `: ${remedy}`),
    element("dd", {}, field(`callers.refused.${reason}`)),
  );
}

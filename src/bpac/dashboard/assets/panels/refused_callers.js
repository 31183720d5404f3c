// A notice about requests that a limit or a check refused: the counts, and what to do about each reason.

import { element, field, find, reconcile, setAttribute, setField, setText } from "../dom.js";
import { integer, plural } from "../numbers.js";

/** @import { DashboardDocument, RefusedReason } from "../types.js" */

// Reasons named in the title; the rest are inside.
const MOST_NAMED = 3;

export class RefusedCallersNotice {
  constructor() {
    this.title = element("span");
    this.counts = element("dl", { class: "facts" });
    this.connections = field("callers.connections");
    const open = element("p", { class: "quiet" }, "Connections open now: ", this.connections);
    const details = element("details", {}, element("summary", {}, this.title), this.counts, open);
    const attributes = { class: "panel notice callers", "aria-label": "Refused callers", hidden: true };
    this.node = element("section", attributes, details);
  }

  /** @param {DashboardDocument} data */
  update({ callers }) {
    setAttribute(this.node, "hidden", !callers?.refused.length);
    if (!callers?.refused.length) return;
    const { refused, connections } = callers;
    const all = refused.reduce((sum, { count }) => sum + count, 0);
    const reasons = refused.slice(0, MOST_NAMED).map(({ reason, count }) => `${integer(count)} ${reason}`);
    if (refused.length > MOST_NAMED) reasons.push("others");
    setText(
      this.title,
      `${plural(all, "request")} refused by a limit or a check since the gateway started: ${reasons.join(", ")}`,
    );
    reconcile(
      this.counts,
      refused,
      ({ reason }) => reason,
      reasonRow,
      (row, { count }) => setField(find(row, "[data-field]"), count, integer(count)),
    );
    setField(this.connections, connections, integer(connections));
  }
}

/** @param {RefusedReason} refused */
function reasonRow({ reason, remedy }) {
  return element(
    "div",
    {},
    element("dt", {}, element("b", {}, reason), `: ${remedy}`),
    element("dd", {}, field(`callers.refused.${reason}`)),
  );
}

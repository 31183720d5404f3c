// The troubles of the gateway, above every view: what, since when, how often, what it costs and what to do.

import { element, escapeInvisible, find, icon, reconcile, setAttribute, setText } from "../dom.js";
import { keepUnits, plural, time } from "../numbers.js";

/** @import { DashboardDocument, Trouble } from "../types.js" */

// So many are shown; the others are counted. The list is bounded, because a gateway may have many routes.
const MOST_TROUBLES = 8;

export class TroublesNotice {
  constructor() {
    this.title = element("h2");
    this.list = element("ul", { class: "troubles" });
    this.more = element("p", { class: "quiet" });
    const attributes = { class: "panel notice trouble-list", "aria-label": "Troubles", hidden: true };
    const heading = element("div", { class: "trouble-title" }, icon("watch"), this.title);
    this.node = element("section", attributes, heading, this.list, this.more);
  }

  /** @param {DashboardDocument} data */
  update({ troubles = [] }) {
    setAttribute(this.node, "hidden", !troubles.length);
    setText(this.title, `${plural(troubles.length, "trouble")} to look at`);
    const shown = troubles.slice(0, MOST_TROUBLES);
    // By place: the texts contain counts, which change with every request.
    reconcile(
      this.list,
      [...shown.entries()],
      ([place]) => place,
      () => troubleItem(),
      (item, [, trouble]) => updateTrouble(item, trouble),
    );
    const left = troubles.length - shown.length;
    setAttribute(this.more, "hidden", left === 0);
    setText(this.more, `${plural(left, "more trouble")}: /dashboard/data lists all of them.`);
  }
}

function troubleItem() {
  return element(
    "li",
    {},
    element("p", { class: "trouble-what" }),
    element("p", { class: "trouble-cost" }),
    element("p", {}, element("b", {}, "What to do: "), element("span", { class: "trouble-remedy" })),
    element("p", { class: "trouble-since quiet number" }),
  );
}

/**
 * @param {HTMLLIElement} item
 * @param {Trouble} trouble
 */
function updateTrouble(item, { what, since, count, remedy, cost = "" }) {
  setText(find(item, ".trouble-what"), asSentence(what));
  setText(find(item, ".trouble-cost"), asSentence(cost));
  setAttribute(find(item, ".trouble-cost"), "hidden", cost === "");
  setText(find(item, ".trouble-remedy"), asSentence(remedy));
  const when = time(since) ? `Since ${time(since)}` : "Since when is not known";
  setText(find(item, ".trouble-since"), `${when}; counted ${count === 1 ? "once" : plural(count, "time")}.`);
}

/**
 * A text as a sentence. Texts may quote names and errors of servers, so invisible characters are escaped.
 * @param {string} text
 */
function asSentence(text) {
  const shown = keepUnits(escapeInvisible(text));
  return shown && `${shown[0].toUpperCase()}${shown.slice(1)}${/[.!?]$/.test(shown) ? "" : "."}`;
}

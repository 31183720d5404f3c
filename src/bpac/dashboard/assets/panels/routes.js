// The routes of a gateway whose traffic is divided into segments: the totals of all games of each.

import { element, escapeInvisible, find, reconcile, setAttribute, setText } from "../dom.js";
import { integer, percent, plural, tokens } from "../numbers.js";
import { levelPill, levelsText, URGENCY } from "./verdict.js";

/** @import { RouteTotals } from "../types.js" */

const ROUTE_HEADS = ["worst verdict", "route", "segments", "expert calls", "tokens saved", "requests"];

export class RoutesPanel {
  constructor() {
    this.rows = element("tbody");
    const head = element("tr", {}, ...ROUTE_HEADS.map((name) => element("th", { scope: "col" }, name)));
    const caption = element("caption", { class: "hidden-text" }, "Routes with all their segments");
    const table = element("table", { class: "games cards" }, caption, element("thead", {}, head), this.rows);
    const attributes = { class: "panel", "data-panel": "routes", "aria-label": "Routes", hidden: true };
    this.node = element("section", attributes, element("h2", {}, "By route"), table);
  }

  /** @param {RouteTotals[]} routes */
  update(routes) {
    // Where no route is divided, each has one row in the list of games already.
    setAttribute(this.node, "hidden", !routes.some(({ games }) => games > 1));
    reconcile(this.rows, routes, ({ route }) => route, routeRow, updateRouteRow);
  }
}

/** @param {RouteTotals} totals */
function routeRow({ route }) {
  const link = element("a", { href: `#${new URLSearchParams({ route })}` }, escapeInvisible(route));
  const cell = (/** @type {string} */ label, /** @type {string} */ style) =>
    element("td", { "data-label": label, class: `number ${style}` });
  return element(
    "tr",
    { "data-route": route },
    element("td", { class: "pill-cell" }),
    element("th", { scope: "row" }, link, element("span", { class: "game-text" })),
    cell("segments", "route-segments"),
    cell("expert calls", "route-calls"),
    cell("tokens saved", "route-saved"),
    cell("requests", "route-requests"),
  );
}

/**
 * @param {HTMLTableRowElement} row
 * @param {RouteTotals} totals
 */
function updateRouteRow(row, { games, unit, steps, expert_calls: calls, tokens_saved: saved, levels }) {
  const worst = URGENCY.find((level) => levels[level]) ?? "safe";
  const cell = find(row, ".pill-cell");
  if (cell.querySelector(`[data-level="${worst}"]`) === null) cell.replaceChildren(levelPill(worst));
  setText(find(row, ".game-text"), levelsText([levels]));
  setText(find(row, ".route-segments"), integer(games));
  setText(find(row, ".route-calls"), steps ? percent(calls / steps) : "–");
  setText(find(row, ".route-saved"), tokens(saved));
  setText(find(row, ".route-requests"), unit === "episode" ? plural(steps, unit) : integer(steps));
}

// All games, those that need attention first.

import { element, escapeInvisible, field, find, reconcile, setAttribute, setField, setText } from "../dom.js";
import { integer, keepUnits, money, percent, percentRoundedUp, plural, tokens } from "../numbers.js";
import { gameName } from "../panels/game_name.js";
import { LEVEL_NAMES, levelPill, withoutLevel } from "../panels/verdict.js";

/** @import { DashboardDocument, Game, Level } from "../types.js" */

/** @type {Level[]} the most urgent first */
const URGENCY = ["broken", "stopped", "watch", "warming", "safe"];
const urgencyOf = (/** @type {Game} */ game) => URGENCY.indexOf(game.verdict.level);
// With fewer games there is no need to search.
const LEAST_TO_SEARCH = 8;

export class OverviewView {
  constructor() {
    /** @type {Game[]} */
    this.games = [];
    this.heading = element("h1", { tabindex: "-1" }, "All routes");
    this.summary = element("p", { class: "overview-summary" });
    this.search = element("input", { type: "search", name: "search", autocomplete: "off" });
    const levels = URGENCY.map((level) => element("option", { value: level }, LEVEL_NAMES[level]));
    this.level = element("select", { name: "level" }, element("option", { value: "" }, "any"), ...levels);
    this.form = element(
      "form",
      { class: "filters", "aria-label": "Filter routes" },
      element("label", {}, element("span", {}, "Route or segment"), this.search),
      element("label", {}, element("span", {}, "Verdict"), this.level),
    );
    this.form.addEventListener("input", () => this.fillRows());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.rows = element("tbody");
    const names = ["verdict", "route and segment", "average loss at most", "expert calls", "tokens saved", "requests"];
    const head = element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name))));
    const caption = element("caption", { class: "hidden-text" }, "All routes and segments");
    this.table = element("table", { class: "games cards" }, caption, head, this.rows);
    this.empty = element("p", { class: "empty", role: "status" });
    const panel = element("section", { class: "panel", "data-panel": "overview" }, this.form, this.empty, this.table);
    this.node = element("div", { class: "view overview" }, this.heading, this.summary, panel);
  }

  /** @param {DashboardDocument} data */
  update(data) {
    this.games = data.games.toSorted(
      (one, other) => urgencyOf(one) - urgencyOf(other) || other.steps - one.steps || one.game - other.game,
    );
    setText(this.summary, summaryText(data));
    setAttribute(this.form, "hidden", data.games.length < LEAST_TO_SEARCH);
    this.fillRows();
  }

  fillRows() {
    const wanted = this.search.value.trim().toLowerCase();
    const shown = this.games.filter(
      (game) =>
        gameName(game).toLowerCase().includes(wanted) && (!this.level.value || game.verdict.level === this.level.value),
    );
    setAttribute(this.table, "hidden", shown.length === 0);
    setAttribute(this.empty, "hidden", shown.length > 0);
    setText(
      this.empty,
      this.games.length
        ? "No route or segment matches these filters."
        : "No requests yet. A route appears here with its first request.",
    );
    reconcile(this.rows, shown, (game) => game.game, gameRow, updateGameRow);
  }
}

/** @param {DashboardDocument} data */
function summaryText({ games, games_left_out: leftOut = 0 }) {
  if (!games.length) return "";
  const counts = URGENCY.map((level) => ({ level, count: games.filter((game) => game.verdict.level === level).length }))
    .filter(({ count }) => count > 0)
    .map(({ level, count }) => `${integer(count)} ${LEVEL_NAMES[level].toLowerCase()}`);
  const saved = games.reduce((sum, game) => sum + (game.savings?.tokens_saved ?? 0), 0);
  const priced = games.every((game) => game.savings?.money_saved !== undefined);
  const amount = games.reduce((sum, game) => sum + (game.savings?.money_saved ?? 0), 0);
  const inMoney = priced ? ` (${money(amount)} in money)` : "";
  const more = leftOut ? ` ${plural(leftOut, "more game")} with fewer requests not listed.` : "";
  return `${plural(games.length, "game")}: ${counts.join(", ")}. Tokens saved in total: ${tokens(saved)}${inMoney}.${more}`;
}

/** @param {Game} game */
function gameRow(game) {
  const route = element("span", { class: "route-name" }, escapeInvisible(game.route));
  const name = element("a", { href: `#game=${game.game}` }, route);
  if (game.segment) name.append(" ", element("bdi", { class: "segment-name" }, escapeInvisible(game.segment)));
  const limit = element("span", { class: "quiet" });
  return element(
    "tr",
    { "data-game": game.game },
    element("td", { class: "pill-cell" }),
    element("th", { scope: "row" }, name, element("span", { class: "game-text" })),
    element("td", { "data-label": "average loss at most" }, field("certificate.average_upper"), " ", limit),
    element("td", { "data-label": "expert calls" }, field("expert_call_rate")),
    element("td", { "data-label": "tokens saved" }, field("savings.tokens_saved")),
    element("td", { "data-label": "requests" }, field("steps")),
  );
}

/**
 * @param {HTMLTableRowElement} row
 * @param {Game} game
 */
function updateGameRow(row, game) {
  const { level } = game.verdict;
  const cell = find(row, ".pill-cell");
  if (cell.querySelector(`[data-level="${level}"]`) === null) cell.replaceChildren(levelPill(level));
  setText(find(row, ".game-text"), keepUnits(withoutLevel(game.verdict)));
  setText(find(row, ".quiet"), `of ${percent(game.epsilon)}`);
  const set = (
    /** @type {string} */ name,
    /** @type {number | null | undefined} */ value,
    /** @type {string} */ text,
  ) => setField(find(row, `[data-field="${name}"]`), value, text);
  set("certificate.average_upper", game.certificate.average_upper, percentRoundedUp(game.certificate.average_upper));
  const rate = game.expert_call_rate;
  set("expert_call_rate", rate, rate === null ? "–" : percent(rate));
  set("savings.tokens_saved", game.savings?.tokens_saved, tokens(game.savings?.tokens_saved));
  set("steps", game.steps, integer(game.steps));
}

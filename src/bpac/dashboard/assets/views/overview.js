// All games: their totals by route, and those that match the filters, sorted; the most urgent first unless chosen otherwise.

import {
  element,
  escapeInvisible,
  field,
  find,
  reconcile,
  setAttribute,
  setField,
  setText,
  unescapeInvisible,
} from "../dom.js";
import { integer, keepUnits, money, percent, percentRoundedUp, plural, tokens } from "../numbers.js";
import { RoutesPanel } from "../panels/routes.js";
import { LEVEL_NAMES, levelPill, levelsText, URGENCY, withoutLevel } from "../panels/verdict.js";
import { GAMES_PER_PAGE } from "../sources.js";

/** @import { DashboardDocument, Game, GameListQuery } from "../types.js" */

// With fewer games there is no need to search.
const LEAST_TO_SEARCH = 8;

/** @type {Record<string, string>} by what the list can be sorted, and in which order */
const SORTS = {
  urgency: "most urgent verdict",
  name: "name",
  loss: "highest average loss",
  expert_calls: "most expert calls",
  saved: "most tokens saved",
  requests: "most requests",
  unscored: "most without a score",
};
const GAME_HEADS = ["verdict", "route and segment", "average loss at most", "expert calls", "tokens saved", "requests"];
const FILTER_NAMES = /** @type {const} */ (["search", "route", "level", "sort", "reverse", "offset"]);

export class OverviewView {
  /** @param {(query: GameListQuery) => void} onQuery called when filters, order or page change */
  constructor(onQuery) {
    this.onQuery = onQuery;
    /** @type {GameListQuery} */
    this.query = {};
    this.heading = element("h1", { tabindex: "-1" }, "All routes");
    this.summary = element("p", { class: "overview-summary" });
    this.routes = new RoutesPanel();
    this.search = element("input", { type: "search", name: "search", autocomplete: "off", maxlength: "300" });
    this.route = element("select", { name: "route" }, element("option", { value: "" }, "any"));
    const levels = URGENCY.map((level) => element("option", { value: level }, LEVEL_NAMES[level]));
    this.level = element("select", { name: "level" }, element("option", { value: "" }, "any"), ...levels);
    const sorts = Object.entries(SORTS).map(([value, name]) => element("option", { value }, name));
    this.sort = element("select", { name: "sort" }, ...sorts);
    this.reverse = element("input", { name: "reverse", type: "checkbox" });
    this.form = element(
      "form",
      { class: "filters", "aria-label": "Filter routes" },
      element("label", {}, element("span", {}, "Route or segment"), this.search),
      element("label", {}, element("span", {}, "Route"), this.route),
      element("label", {}, element("span", {}, "Verdict"), this.level),
      element("label", {}, element("span", {}, "Sorted by"), this.sort),
      element("label", { class: "check" }, this.reverse, element("span", {}, "reversed")),
    );
    this.form.addEventListener("input", () => this.choose({ ...this.controlValues(), offset: "" }));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.rows = element("tbody");
    const names = GAME_HEADS.map((name) => element("th", { scope: "col" }, name));
    const head = element("thead", {}, element("tr", {}, ...names));
    const caption = element("caption", { class: "hidden-text" }, "All routes and segments");
    this.table = element("table", { class: "games cards" }, caption, head, this.rows);
    this.empty = element("p", { class: "empty", role: "status" });
    this.place = element("span", { class: "number quiet" });
    this.previous = element("button", { type: "button", class: "button" }, "Previous games");
    this.next = element("button", { type: "button", class: "button" }, "Next games");
    this.previous.addEventListener("click", () => this.turn(-GAMES_PER_PAGE));
    this.next.addEventListener("click", () => this.turn(GAMES_PER_PAGE));
    this.turns = element("div", { class: "turns" }, this.previous, this.next, this.place);
    const parts = [this.form, this.empty, this.table, this.turns];
    const panel = element("section", { class: "panel", "data-panel": "overview" }, ...parts);
    this.node = element("div", { class: "view overview" }, this.heading, this.summary, this.routes.node, panel);
  }

  /** @returns {GameListQuery} */
  controlValues() {
    return {
      search: unescapeInvisible(this.search.value.trim()),
      route: this.route.value,
      level: this.level.value,
      sort: this.sort.value === "urgency" ? "" : this.sort.value,
      reverse: this.reverse.checked ? "1" : "",
    };
  }

  /** @param {GameListQuery} change */
  choose(change) {
    this.query = { ...this.query, ...change };
    this.onQuery(this.query);
  }

  /** @param {number} games */
  turn(games) {
    this.choose({ offset: String(Math.max(0, Number(this.query.offset ?? 0) + games) || "") });
  }

  /**
   * Take the query from the address.
   * @param {URLSearchParams} address
   * @returns {GameListQuery}
   */
  follow(address) {
    this.query = Object.fromEntries(FILTER_NAMES.map((name) => [name, address.get(name) ?? ""]));
    const wanted = escapeInvisible(this.query.search ?? "");
    if (document.activeElement !== this.search) this.search.value = wanted;
    if (document.activeElement !== this.level) this.level.value = this.query.level ?? "";
    if (document.activeElement !== this.sort) this.sort.value = this.query.sort || "urgency";
    this.reverse.checked = this.query.reverse === "1";
    return this.query;
  }

  /** @param {DashboardDocument} data */
  update(data) {
    const { games, routes = [], games_in_all: all = games.length, games_found: found = games.length } = data;
    setText(this.summary, summaryText(data));
    this.routes.update(routes);
    const wanted = this.query.route ?? "";
    const named = [...new Set([...routes.map(({ route }) => route), ...(wanted ? [wanted] : [])])];
    reconcile(
      this.route,
      ["", ...named],
      (route) => route,
      (route) => element("option", { value: route }, route ? escapeInvisible(route) : "any"),
      () => {},
    );
    if (document.activeElement !== this.route) this.route.value = wanted;
    setAttribute(this.form, "hidden", all < LEAST_TO_SEARCH);
    setAttribute(this.table, "hidden", games.length === 0);
    setAttribute(this.empty, "hidden", games.length > 0);
    setText(this.empty, emptyText(all, found));
    reconcile(this.rows, games, (game) => game.game, gameRow, updateGameRow);
    const offset = Number(this.query.offset ?? 0);
    setAttribute(this.turns, "hidden", found <= games.length && offset === 0);
    setAttribute(this.previous, "disabled", offset === 0);
    setAttribute(this.next, "disabled", offset + games.length >= found);
    const range = `${integer(offset + 1)} to ${integer(offset + games.length)}`;
    setText(this.place, games.length ? `${range} of ${integer(found)}` : "");
  }
}

/**
 * @param {number} all
 * @param {number} found
 */
function emptyText(all, found) {
  if (!all) return "No requests yet. A route appears here with its first request.";
  return found ? "There are no further games." : "No route or segment matches these filters.";
}

/** @param {DashboardDocument} data */
function summaryText({ games, routes, games_in_all: all = games.length }) {
  if (!all) return "";
  const levels = routes ? routes.map((route) => route.levels) : games.map((game) => ({ [game.verdict.level]: 1 }));
  const saved = routes
    ? routes.reduce((sum, route) => sum + route.tokens_saved, 0)
    : games.reduce((sum, game) => sum + (game.savings?.tokens_saved ?? 0), 0);
  const priced = games.length === all && games.every((game) => game.savings?.money_saved !== undefined);
  const amount = games.reduce((sum, game) => sum + (game.savings?.money_saved ?? 0), 0);
  const always = games.reduce((sum, game) => sum + (game.savings?.always_money ?? 0), 0);
  const unit = games[0]?.savings?.currency || "in money";
  const inMoney = priced ? ` (${money(amount)} ${unit}${always > 0 ? `, ${percent(amount / always)}` : ""})` : "";
  return `${plural(all, "game")}: ${levelsText(levels)}. Tokens saved in total: ${tokens(saved)}${inMoney}.`;
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
  set("steps", game.steps, game.unit === "episode" ? plural(game.steps, "episode") : integer(game.steps));
}

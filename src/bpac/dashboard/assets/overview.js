// All games, those that need a look first.

import { element, field, reconcile, setAttribute, setField, setText, visible } from "./dom.js";
import { atMost, money, percent, plural, tokens, unbroken, whole } from "./numbers.js";
import { LEVELS, levelPill, withoutLevel } from "./verdict.js";

const URGENCY = ["broken", "watch", "warming", "safe"];
const rank = (game) => URGENCY.indexOf(game.verdict.level);

export const placeOf = (game) => visible(game.segment ? `${game.route} / ${game.segment}` : game.route);

export class Overview {
  constructor() {
    this.games = [];
    this.heading = element("h1", { tabindex: "-1" }, "All routes");
    this.summary = element("p", { class: "overview-summary" });
    this.search = element("input", { type: "search", name: "search", autocomplete: "off" });
    const levels = [
      element("option", { value: "" }, "any"),
      ...URGENCY.map((level) => element("option", { value: level }, LEVELS[level])),
    ];
    this.level = element("select", { name: "level" }, ...levels);
    const form = element(
      "form",
      { class: "filters", "aria-label": "Filters of routes" },
      element("label", {}, element("span", {}, "Route or segment"), this.search),
      element("label", {}, element("span", {}, "Verdict"), this.level),
    );
    form.addEventListener("input", () => this.fill());
    form.addEventListener("submit", (event) => event.preventDefault());
    this.form = form;
    this.rows = element("tbody");
    const heads = ["verdict", "route and segment", "served loss at most", "expert calls", "tokens saved", "rounds"];
    const head = element("thead", {}, element("tr", {}, ...heads.map((name) => element("th", { scope: "col" }, name))));
    const caption = element("caption", { class: "hidden-text" }, "All routes and segments");
    this.table = element("table", { class: "games cards" }, caption, head, this.rows);
    this.empty = element("p", { class: "empty", role: "status" });
    const panel = element("section", { class: "panel", "data-panel": "overview" }, form, this.empty, this.table);
    this.node = element("div", { class: "view overview" }, this.heading, this.summary, panel);
  }

  update({ games, games_left_out: leftOut = 0 }) {
    this.games = [...games].sort(
      (one, other) => rank(one) - rank(other) || other.steps - one.steps || one.game - other.game,
    );
    const counts = URGENCY.map((level) => [level, games.filter((game) => game.verdict.level === level).length]);
    const said = counts
      .filter(([, count]) => count > 0)
      .map(([level, count]) => `${count} ${LEVELS[level].toLowerCase()}`);
    const saved = games.reduce((sum, game) => sum + (game.savings?.tokens_saved ?? 0), 0);
    const priced = games.length > 0 && games.every((game) => game.savings?.money_saved !== undefined);
    const more = leftOut ? ` ${plural(leftOut, "game")} more, with the fewest rounds, are not listed.` : "";
    const sum = priced ? `, ${money(games.reduce((all, game) => all + game.savings.money_saved, 0))} in money` : "";
    setText(
      this.summary,
      games.length
        ? `${plural(games.length, "game")}: ${said.join(", ")}. ${tokens(saved)} tokens saved in all${sum}.${more}`
        : "",
    );
    setAttribute(this.form, "hidden", games.length < 8);
    this.fill();
  }

  fill() {
    const wanted = this.search.value.trim().toLowerCase();
    const fits = (game) =>
      placeOf(game).toLowerCase().includes(wanted) && (!this.level.value || game.verdict.level === this.level.value);
    const shown = this.games.filter(fits);
    setAttribute(this.table, "hidden", shown.length === 0);
    setAttribute(this.empty, "hidden", shown.length > 0);
    setText(
      this.empty,
      this.games.length
        ? "No route or segment fits these filters."
        : "Nothing has been asked yet. Routes appear here with their first question.",
    );
    reconcile(this.rows, shown, (game) => game.game, gameRow, updateGame);
  }
}

function gameRow(game) {
  const name = element(
    "a",
    { href: `#game=${game.game}` },
    element("span", { class: "route-name" }, visible(game.route)),
  );
  if (game.segment) name.append(" ", element("bdi", { class: "segment-name" }, visible(game.segment)));
  const limit = element("span", { class: "quiet" });
  return element(
    "tr",
    { "data-game": game.game },
    element("td", { class: "pill-cell" }),
    element("th", { scope: "row" }, name, element("span", { class: "game-text" })),
    element("td", { "data-label": "served loss at most" }, field("certificate.average_upper"), " ", limit),
    element("td", { "data-label": "expert calls" }, field("expert_call_rate")),
    element("td", { "data-label": "tokens saved" }, field("savings.tokens_saved")),
    element("td", { "data-label": "rounds" }, field("steps")),
  );
}

function updateGame(row, game) {
  const { level } = game.verdict;
  const cell = row.firstElementChild;
  if (cell.firstElementChild?.dataset.level !== level) cell.replaceChildren(levelPill(level));
  setText(row.querySelector(".game-text"), unbroken(withoutLevel(game.verdict)));
  setText(row.querySelector(".quiet"), `of ${percent(game.epsilon)}`);
  const set = (name, value, shown) => setField(row.querySelector(`[data-field="${name}"]`), value, shown);
  set("certificate.average_upper", game.certificate.average_upper, atMost(game.certificate.average_upper));
  const rate = game.expert_call_rate;
  set("expert_call_rate", rate, rate === null ? "–" : percent(rate));
  set("savings.tokens_saved", game.savings?.tokens_saved, game.savings ? tokens(game.savings.tokens_saved) : "unknown");
  set("steps", game.steps, whole(game.steps));
}

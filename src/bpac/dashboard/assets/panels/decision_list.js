// Recent decisions, newest first, with filters. The list follows the game while it shows the newest ones.

import { element, find, reconcile, setAttribute, setText, shape } from "../dom.js";
import { integer, percent, plural, score, time } from "../numbers.js";
import { SourceError } from "../sources.js";

/** @import { DataSource, Decision, DecisionPage, DecisionQuery, Unit } from "../types.js" */

/** @type {Record<string, [label: string, options: [value: string, text: string][]]>} */
const CHOICES = {
  answered_by: [
    "Answered by",
    [
      ["", "any"],
      ["draft", "draft"],
      ["expert", "expert"],
    ],
  ],
  state: [
    "Outcome",
    [
      ["", "any"],
      ["kept", "draft kept, not graded"],
      ["open", "waiting for a grade"],
      ["resolved", "graded"],
      ["refused", "refused by the expert"],
      ["forfeited", "could not be graded"],
    ],
  ],
  loss: [
    "Loss",
    [
      ["", "any"],
      ["some", "above 0"],
      ["none", "0"],
    ],
  ],
};
const BOUNDS = [
  { name: "min_uncertainty", label: "Uncertainty from", placeholder: "0" },
  { name: "max_uncertainty", label: "Uncertainty to", placeholder: "1" },
];
const HEADS = ["uncertainty and threshold", "answered by", "expert call probability", "outcome", "time"];
const PAGE_SIZE = 25;

/**
 * The outcome of a decision in a few words.
 * @param {Decision} decision
 */
export function outcomeText({ state, cause, loss }) {
  if (state === "kept") return "draft kept, not graded";
  if (state === "open") return "waiting for a grade";
  if (state === "refused") return "refused by the expert";
  if (state === "forfeited") return `could not be graded: ${cause || "unknown"}`;
  return loss ? `loss ${score(loss)}` : "no loss";
}

export class DecisionList {
  /**
   * @param {DataSource} source
   * @param {(filters: Record<string, string>) => void} onFilters called when a filter changes
   */
  constructor(source, onFilters) {
    this.source = source;
    this.onFilters = onFilters;
    /** @type {number | null} */
    this.game = null;
    /** @type {number | null} the page shows steps below this; null: the newest */
    this.before = null;
    /** @type {number | null} */
    this.next = null;
    /** @type {Unit} what a round is */
    this.unit = "request";
    this.requests = 0;
    /** @type {Record<string, HTMLSelectElement | HTMLInputElement>} */
    this.controls = {};
    const form = this.filterForm();
    this.rows = element("tbody");
    this.unitHead = element("th", { scope: "col" }, this.unit);
    const head = element("tr", {}, this.unitHead, ...HEADS.map((name) => element("th", { scope: "col" }, name)));
    const caption = element("caption", { class: "hidden-text" }, "Recent decisions");
    this.table = element("table", { class: "decisions cards" }, caption, element("thead", {}, head), this.rows);
    this.count = element("p", { class: "empty" });
    this.older = element("button", { type: "button", class: "button" }, "Older");
    this.newest = element("button", { type: "button", class: "button" }, "Newest");
    this.older.addEventListener("click", () => this.turnTo(this.next));
    this.newest.addEventListener("click", () => this.turnTo(null));
    const buttons = element("div", { class: "turns" }, this.newest, this.older);
    const heading = element("h2", {}, "Recent decisions");
    const parts = [heading, form, this.count, this.table, buttons];
    this.node = element("section", { class: "panel", "data-panel": "decisions" }, ...parts);
  }

  filterForm() {
    const form = element("form", { class: "filters", "aria-label": "Filter decisions" });
    for (const [name, [label, options]] of Object.entries(CHOICES)) {
      const choices = options.map(([value, text]) => element("option", { value }, text));
      this.controls[name] = element("select", { name }, ...choices);
      form.append(element("label", {}, element("span", {}, label), this.controls[name]));
    }
    for (const { name, label, placeholder } of BOUNDS) {
      const range = { type: "number", min: "0", max: "1", step: "any", inputmode: "decimal" };
      this.controls[name] = element("input", { ...range, name, placeholder });
      form.append(element("label", {}, element("span", {}, label), this.controls[name]));
    }
    form.addEventListener("change", () => this.applyFilters());
    form.addEventListener("submit", (event) => event.preventDefault());
    return form;
  }

  /**
   * Follow a game, with the filters that the address names.
   * @param {number} game
   * @param {Unit} unit what a round of it is
   * @param {URLSearchParams} filters
   */
  follow(game, unit, filters) {
    this.unit = unit;
    setText(this.unitHead, unit);
    for (const [name, control] of Object.entries(this.controls)) {
      const wanted = filters.get(name) ?? "";
      if (control.value !== wanted && document.activeElement !== control) control.value = wanted;
    }
    if (this.game !== game) {
      this.before = null;
      this.rows.replaceChildren();
    }
    this.game = game;
  }

  /** @returns {Record<string, string>} */
  filters() {
    const values = Object.entries(this.controls).map(([name, control]) => [name, control.value]);
    return Object.fromEntries(values.filter(([, value]) => value !== ""));
  }

  applyFilters() {
    this.before = null;
    this.onFilters(this.filters());
    this.refresh(true);
  }

  /** @param {number | null} before */
  turnTo(before) {
    this.before = before;
    this.refresh(true);
  }

  // The game has changed: load again, unless older decisions are shown.
  gameChanged() {
    if (this.before === null) this.refresh();
  }

  /**
   * @param {boolean} byUser whether the user asked for it: only then is the result announced to screen readers
   */
  async refresh(byUser = false) {
    if (this.game === null) return;
    setAttribute(this.count, "aria-live", byUser ? "polite" : "off");
    this.requests += 1;
    const request = this.requests;
    /** @type {DecisionQuery} */
    const query = { game: this.game, limit: PAGE_SIZE, ...this.filters() };
    if (this.before !== null) query.before = this.before;
    try {
      const page = await this.source.decisions(query);
      if (request === this.requests) this.fill(page);
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      // An unreachable gateway is reported at the top of the page.
      if (request !== this.requests || error.unreachable) return;
      setText(this.count, `Cannot load decisions: ${error.message}`);
    }
  }

  /** @param {DecisionPage} page */
  fill({ decisions, next }) {
    this.next = next;
    setText(this.count, this.countText(decisions, next));
    setAttribute(this.table, "hidden", decisions.length === 0);
    setAttribute(this.older, "disabled", next === null);
    setAttribute(this.newest, "disabled", this.before === null);
    reconcile(this.rows, decisions, (decision) => decision.id, decisionRow, updateRow);
  }

  /**
   * @param {Decision[]} decisions
   * @param {number | null} next
   */
  countText(decisions, next) {
    const limited = this.source.live ? "" : " A replay's page contains only the last decisions.";
    if (decisions.length) {
      const [newest, oldest] = [decisions[0], decisions[decisions.length - 1]];
      const range = `${this.unit}s ${integer(oldest.step)} to ${integer(newest.step)}`;
      return `${plural(decisions.length, "decision")}, ${range}.${limited}`;
    }
    if (!Object.keys(this.filters()).length) return `No decisions yet.${limited}`;
    const searched = next === null ? "" : ` in ${this.unit}s ${integer(next)} and later; older ones may`;
    return `No decision matches these filters${searched}.${limited}`;
  }
}

/** @param {Decision} decision */
function decisionRow(decision) {
  const link = element("a", { href: `#decision=${encodeURIComponent(decision.id)}` }, integer(decision.step));
  const cells = [
    element("th", { scope: "row", class: "number" }, link),
    element(
      "td",
      { class: "place-cell" },
      scoreBar(decision),
      element("span", { class: "number" }, `${score(decision.uncertainty)} `),
      element("span", { class: "number quiet" }, `/ ${score(decision.threshold)}`),
    ),
    element("td", { class: "answered" }),
    element("td", { class: "number", "data-label": "expert call probability" }, percent(decision.propensity)),
    element("td", { class: "outcome" }),
    element("td", { class: "number quiet" }, time(decision.at)),
  ];
  return element("tr", { "data-decision": decision.id }, ...cells);
}

/**
 * Which model answered; of a cascade, at which stage.
 * @param {Decision} decision
 */
export function answeredText(decision) {
  return decision.stage ? `${decision.answered_by}, stage ${decision.stage}` : decision.answered_by;
}

/**
 * Update what may change later; the rest of a decision never does.
 * @param {HTMLTableRowElement} row
 * @param {Decision} decision
 */
function updateRow(row, decision) {
  setText(find(row, ".answered"), answeredText(decision));
  setText(find(row, ".outcome"), outcomeText(decision));
  setAttribute(row, "data-state", decision.state === "resolved" && decision.loss ? "lost" : decision.state);
}

/**
 * The uncertainty and the threshold on a line from 0 to 1.
 * @param {Decision} decision
 */
function scoreBar({ uncertainty, threshold }) {
  const position = (/** @type {number} */ value) => (4 + 72 * Math.sqrt(Math.max(0, value))).toFixed(1);
  const edge = position(threshold);
  return shape(
    "svg",
    { viewBox: "0 0 80 14", class: "place", "aria-hidden": "true" },
    shape("line", { x1: 4, x2: 76, y1: 7, y2: 7, class: "place-track" }),
    shape("line", { x1: 4, x2: edge, y1: 7, y2: 7, class: "place-kept" }),
    shape("line", { x1: edge, x2: edge, y1: 2, y2: 12, class: "place-threshold" }),
    shape("circle", { cx: position(uncertainty), cy: 7, r: 3.5, class: "place-dot" }),
  );
}

// Recent decisions, newest first, with filters; live until somebody turns to older ones.

import { element, reconcile, setAttribute, setText, shape } from "./dom.js";
import { moment, percent, plural, score, whole } from "./numbers.js";

const CHOICES = {
  answered_by: [
    "Answered by",
    [
      ["", "anyone"],
      ["draft", "the draft"],
      ["expert", "the expert"],
    ],
  ],
  state: [
    "Outcome",
    [
      ["", "any"],
      ["kept", "kept, never graded"],
      ["open", "open"],
      ["resolved", "graded"],
      ["refused", "refused by the expert"],
      ["forfeited", "forfeited"],
    ],
  ],
  loss: [
    "Loss",
    [
      ["", "any"],
      ["some", "some"],
      ["none", "none"],
    ],
  ],
};
const LIMIT = 25;
const BOUNDS = { min_uncertainty: "Uncertainty from", max_uncertainty: "Uncertainty to" };

// What became of a decision, in a few words.
export function outcome(decision) {
  if (decision.state === "kept") return "kept, never graded";
  if (decision.state === "open") return "open";
  if (decision.state === "refused") return "refused by the expert";
  if (decision.state === "forfeited") return `forfeited: ${decision.cause || "unknown"}`;
  return decision.loss > 0 ? `loss ${score(decision.loss)}` : "no loss";
}

export class DecisionList {
  constructor(source, onFilters) {
    this.source = source;
    this.onFilters = onFilters;
    this.game = null;
    this.before = null;
    this.next = null;
    this.asked = 0;
    this.controls = {};
    const form = element("form", { class: "filters", "aria-label": "Filters of decisions" });
    for (const [name, [label, options]] of Object.entries(CHOICES)) {
      const select = element("select", { name }, ...options.map(([value, text]) => element("option", { value }, text)));
      form.append(element("label", {}, element("span", {}, label), select));
      this.controls[name] = select;
    }
    for (const [name, label] of Object.entries(BOUNDS)) {
      const input = element("input", {
        type: "number",
        name,
        min: "0",
        max: "1",
        step: "any",
        inputmode: "decimal",
        placeholder: name[1] === "i" ? "0" : "1",
      });
      form.append(element("label", {}, element("span", {}, label), input));
      this.controls[name] = input;
    }
    form.addEventListener("change", () => this.filtered());
    form.addEventListener("submit", (event) => event.preventDefault());
    this.rows = element("tbody");
    const heads = ["round", "uncertainty and threshold", "answered by", "probability of asking", "outcome", "time"];
    const head = element("thead", {}, element("tr", {}, ...heads.map((name) => element("th", { scope: "col" }, name))));
    const caption = element("caption", { class: "hidden-text" }, "Recent decisions");
    this.table = element("table", { class: "decisions cards" }, caption, head, this.rows);
    this.count = element("p", { class: "empty" });
    this.older = element("button", { type: "button", class: "button" }, "Older");
    this.newest = element("button", { type: "button", class: "button" }, "Newest");
    this.older.addEventListener("click", () => this.turn(this.next));
    this.newest.addEventListener("click", () => this.turn(null));
    const turns = element("div", { class: "turns" }, this.newest, this.older);
    const heading = element("h2", {}, "Recent decisions");
    this.node = element(
      "section",
      { class: "panel", "data-panel": "decisions" },
      heading,
      form,
      this.count,
      this.table,
      turns,
    );
  }

  // Follow a game; filters come from the address.
  show(game, filters) {
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

  filters() {
    const values = Object.entries(this.controls).map(([name, control]) => [name, control.value]);
    return Object.fromEntries(values.filter(([, value]) => value !== ""));
  }

  filtered() {
    this.before = null;
    this.onFilters(this.filters());
    this.refresh(true);
  }

  turn(before) {
    this.before = before;
    this.refresh(true);
  }

  // Something happened in the game: look again, unless older pages are being read.
  moved() {
    if (this.before === null) this.refresh();
  }

  // What somebody asked for is read out, and not what comes by itself all the time.
  async refresh(byHand = false) {
    setAttribute(this.count, "aria-live", byHand ? "polite" : "off");
    this.asked += 1;
    const asked = this.asked;
    const query = {
      game: this.game,
      limit: LIMIT,
      ...this.filters(),
      ...(this.before === null ? {} : { before: this.before }),
    };
    let found;
    try {
      found = await this.source.decisions(query);
    } catch (error) {
      if (asked === this.asked && !error.unreachable)
        setText(this.count, `These decisions cannot be shown: ${error.message}`);
      return; // who cannot reach the gateway is told at the top of the page
    }
    if (asked === this.asked) this.fill(found);
  }

  fill({ decisions, next }) {
    this.next = next;
    const filtered = Object.keys(this.filters()).length > 0;
    const further = next === null ? "" : ` among the rounds from ${whole(next)} on. Older ones may`;
    const nothing = filtered ? `No decision fits these filters${further}.` : "No decision yet.";
    const oldest = decisions.at(-1);
    const range = decisions.length
      ? `${plural(decisions.length, "decision")}, rounds ${whole(oldest.step)} to ${whole(decisions[0].step)}.`
      : nothing;
    setText(this.count, this.source.live ? range : `${range} A replay's page keeps the last ones only.`);
    setAttribute(this.table, "hidden", decisions.length === 0);
    setAttribute(this.older, "disabled", next === null);
    setAttribute(this.newest, "disabled", this.before === null);
    reconcile(this.rows, decisions, (decision) => decision.id, decisionRow, updateRow);
  }
}

function decisionRow(decision) {
  const link = element("a", { href: `#decision=${encodeURIComponent(decision.id)}` }, whole(decision.step));
  const cells = [
    element("th", { scope: "row", class: "number" }, link),
    element(
      "td",
      { class: "place-cell" },
      placePicture(decision),
      element("span", { class: "number" }, `${score(decision.uncertainty)} `),
      element("span", { class: "number quiet" }, `/ ${score(decision.threshold)}`),
    ),
    element("td", { class: "answered" }),
    element("td", { class: "number", "data-label": "asked with" }, percent(decision.propensity)),
    element("td", { class: "outcome" }),
    element("td", { class: "number quiet" }, moment(decision.at)),
  ];
  return element("tr", { "data-decision": decision.id }, ...cells);
}

// Who answered and what came of it may change; the rest of a decision never does.
function updateRow(row, decision) {
  setText(row.querySelector(".answered"), decision.answered_by);
  setText(row.querySelector(".outcome"), outcome(decision));
  setAttribute(row, "data-state", decision.state === "resolved" && decision.loss > 0 ? "lost" : decision.state);
}

// Where the uncertainty lies beside the threshold, on the way from 0 to 1.
function placePicture(decision) {
  const place = (value) => (4 + 72 * Math.sqrt(Math.max(0, value))).toFixed(1);
  return shape(
    "svg",
    { viewBox: "0 0 80 14", class: "place", "aria-hidden": "true" },
    shape("line", { x1: 4, x2: 76, y1: 7, y2: 7, class: "place-track" }),
    shape("line", { x1: 4, x2: place(decision.threshold), y1: 7, y2: 7, class: "place-kept" }),
    shape("line", {
      x1: place(decision.threshold),
      x2: place(decision.threshold),
      y1: 2,
      y2: 12,
      class: "place-threshold",
    }),
    shape("circle", { cx: place(decision.uncertainty), cy: 7, r: 3.5, class: "place-dot" }),
  );
}

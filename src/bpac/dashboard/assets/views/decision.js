// The page of one decision: what was known, what was decided and why, and the outcome.

import { LOADING } from "../charts/time_charts.js";
import { element, field, setField, setText, shape } from "../dom.js";
import { integer, keepUnits, percent, score, time, tokens } from "../numbers.js";
import { answeredText, outcomeText } from "../panels/decision_list.js";
import { gameName } from "../panels/game_name.js";
import { SourceError } from "../sources.js";

/** @import { Child } from "../dom.js" */
/** @import { DataSource, Decision } from "../types.js" */

/** @type {Record<string, string>} */
const TEXT_TITLES = { draft: "Answer of the draft model", expert: "Answer of the expert" };

export class SingleDecisionView {
  /** @param {DataSource} source */
  constructor(source) {
    this.source = source;
    /** @type {string | null} */
    this.id = null;
    this.back = element("a", { class: "back", href: "#" }, "Back to the route");
    this.heading = element("h1", { tabindex: "-1" }, "Decision");
    this.body = element("div");
    this.node = element("div", { class: "view decision-view" }, this.back, this.heading, this.body);
  }

  /** @param {string} id */
  async load(id) {
    const isNew = this.id !== id;
    if (isNew) this.body.replaceChildren(element("p", { class: "empty" }, LOADING));
    this.id = id;
    try {
      const decision = await this.source.decision(id);
      if (this.id === id) this.fill(decision);
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      // While the gateway is unreachable, a decision that is shown already stays.
      if (this.id !== id || (error.unreachable && !isNew)) return;
      this.back.href = "#";
      setText(this.heading, "Decision");
      const text = `Cannot show this decision: ${error.message}`;
      this.body.replaceChildren(element("p", { class: "panel empty" }, text));
    }
  }

  /** @param {Decision} decision */
  fill(decision) {
    this.back.href = `#game=${decision.game}`;
    setText(this.back, `Back to ${gameName(decision)}`);
    setText(this.heading, `${decision.unit === "episode" ? "Episode" : "Request"} ${integer(decision.step)}`);
    const answered = `${decision.answered_by === "draft" ? "The draft" : "The expert"} answered.`;
    const explained = [
      element("p", { class: "decision-answer" }, answered),
      element("p", { class: "decision-why" }, keepUnits(decision.why)),
      scorePicture(decision),
    ];
    this.body.replaceChildren(
      element("section", { class: "panel" }, ...explained),
      element("section", { class: "panel" }, element("h2", {}, "Recorded"), recordedFields(decision)),
      ...textPanels(decision),
    );
  }
}

/** @param {Decision} decision */
function recordedFields(decision) {
  /** @type {[name: string, value: Child][]} */
  const entries = [
    ["Decision", element("code", {}, decision.id)],
    ["Time", element("span", { class: "number" }, time(decision.at) || "not recorded")],
    ["Uncertainty of the draft", filled("uncertainty", decision.uncertainty, score(decision.uncertainty))],
    ["Threshold at that time", filled("threshold", decision.threshold, score(decision.threshold))],
    ["Probability of calling the expert", filled("propensity", decision.propensity, percent(decision.propensity))],
    ["Expert called", decision.call_expert ? "yes" : "no"],
    ["Answered by", filled("answered_by", decision.answered_by, answeredText(decision))],
    ["Outcome", filled("state", decision.state, outcomeText(decision))],
  ];
  if (decision.loss !== null) entries.push(["Loss", filled("loss", decision.loss, score(decision.loss))]);
  entries.push(["Epoch", filled("epoch", decision.epoch, integer(decision.epoch))]);
  for (const model of /** @type {const} */ (["draft", "expert", "judge"])) {
    const count = decision[`${model}_tokens`];
    if (count !== null) entries.push([`Tokens of the ${model}`, filled(`${model}_tokens`, count, tokens(count))]);
  }
  const rows = entries.map(([name, node]) => element("div", {}, element("dt", {}, name), element("dd", {}, node)));
  return element("dl", { class: "recorded" }, ...rows);
}

/**
 * @param {string} name
 * @param {number | string} value
 * @param {string} text
 */
function filled(name, value, text) {
  const node = field(`decision.${name}`);
  setField(node, value, text);
  return node;
}

/** @param {Decision} decision */
function textPanels({ texts }) {
  if (texts === null) {
    const text =
      "The answers are not stored: the gateway keeps them only while it waits for a loss reported by feedback.";
    return [element("p", { class: "empty" }, text)];
  }
  return Object.entries(texts).map(([model, text]) => {
    const title = TEXT_TITLES[model] ?? model;
    const body = element("pre", { tabindex: "0", "aria-label": title, role: "region" }, text);
    return element("section", { class: "panel" }, element("h2", {}, title), body);
  });
}

/**
 * A line from 0 to 1 with the threshold and the uncertainty; by square roots, because many scores lie close to 0.
 * @param {Decision} decision
 */
function scorePicture({ uncertainty, threshold }) {
  const position = (/** @type {number} */ value) => 12 + 576 * Math.sqrt(value);
  const [dot, edge] = [position(uncertainty), position(threshold)];
  const anchor = (/** @type {number} */ right) => (right < 90 ? "start" : right > 510 ? "end" : "middle");
  const label = (/** @type {number} */ x, /** @type {number} */ y, /** @type {string} */ text, style = "") =>
    shape("text", { x, y, "text-anchor": anchor(x), class: `place-name ${style}` }, text);
  const parts = [
    shape("line", { x1: 12, x2: 588, y1: 40, y2: 40, class: "place-track" }),
    shape("line", { x1: 12, x2: edge, y1: 40, y2: 40, class: "place-kept" }),
    shape("line", { x1: edge, x2: edge, y1: 28, y2: 52, class: "place-threshold" }),
    edge > 190 ? label(12, 70, "certain", "edge") : null,
    edge < 410 ? label(588, 70, "uncertain", "edge") : null,
    label(edge, 70, `threshold ${score(threshold)}`),
    shape("circle", { cx: dot, cy: 40, r: 8, class: "place-dot" }),
    label(dot, 20, `uncertainty ${score(uncertainty)}`, "strong"),
  ];
  const name = `Uncertainty ${score(uncertainty)}, threshold ${score(threshold)}`;
  return shape("svg", { viewBox: "0 0 600 78", class: "place-large", role: "img", "aria-label": name }, ...parts);
}

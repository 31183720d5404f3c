// The models behind the gateway: whether each one answers, since when, and how it failed.

import { element, escapeInvisible, find, icon, reconcile, setAttribute, setText } from "../dom.js";
import { integer, plural, time } from "../numbers.js";

/** @import { DashboardDocument, Health, Level, Model } from "../types.js" */

const MODEL_HEADS = ["model", "health", "since", "failures", "latest error"];
// Names in the title; a gateway may have many models.
const MOST_MODELS_NAMED = 3;

/** @type {Record<string, { name: string, level: Level }>} */
const MODEL_STATES = {
  up: { name: "answers", level: "safe" },
  down: { name: "fails", level: "broken" },
  failed: { name: "has failed", level: "watch" },
  unknown: { name: "no failure so far", level: "warming" },
};

export class ModelsNotice {
  constructor() {
    this.down = "";
    this.title = element("span");
    this.rows = element("tbody");
    const head = element("tr", {}, ...MODEL_HEADS.map((name) => element("th", { scope: "col" }, name)));
    const caption = element("caption", { class: "hidden-text" }, "Models");
    const table = element("table", { class: "models cards" }, caption, element("thead", {}, head), this.rows);
    this.details = element("details", {}, element("summary", {}, this.title), table);
    this.node = element("section", { class: "panel notice models-notice", "aria-label": "Models", hidden: true });
    this.node.append(this.details);
  }

  /** @param {DashboardDocument} data */
  update({ models = {} }) {
    const entries = Object.entries(models);
    setAttribute(this.node, "hidden", !entries.length);
    const down = entries.filter(([, model]) => modelState(model) === "down").map(([name]) => escapeInvisible(name));
    // Unfolds when another model goes down; afterwards it stays as the operator leaves it.
    if (down.join(" ") !== this.down && down.length) this.details.open = true;
    this.down = down.join(" ");
    setText(this.title, modelsTitle(entries.length, down));
    reconcile(
      this.rows,
      entries,
      ([name]) => name,
      ([name]) => modelRow(name),
      (row, [, model]) => updateModel(row, model),
    );
  }
}

/**
 * @param {number} count
 * @param {string[]} down names of the models that fail
 */
function modelsTitle(count, down) {
  const all = plural(count, "model");
  if (!down.length) return `${all}: none is known to fail now`;
  const more = down.length > MOST_MODELS_NAMED ? ` and ${integer(down.length - MOST_MODELS_NAMED)} more` : "";
  const verb = down.length === 1 ? "fails" : "fail";
  return `${all}: ${down.slice(0, MOST_MODELS_NAMED).join(", ")}${more} ${verb}`;
}

/** @param {Model} model */
function modelState({ health }) {
  if (health?.ok === false) return "down";
  if (health?.ok && health.since) return "up";
  return health?.failures ? "failed" : "unknown";
}

/** @param {string} name */
function modelRow(name) {
  const cell = (/** @type {string} */ label, /** @type {string} */ style) =>
    element("td", { class: style, "data-label": label });
  const cells = [cell("health", "health"), cell("since", "since number"), cell("failures", "failures")];
  const shown = element("th", { scope: "row" }, element("bdi", {}, escapeInvisible(name)));
  return element("tr", { "data-model": name }, shown, ...cells, cell("latest error", "error"));
}

/**
 * @param {HTMLTableRowElement} row
 * @param {Model} model
 */
function updateModel(row, model) {
  const state = modelState(model);
  const cell = find(row, ".health");
  if (row.dataset.state !== state) {
    const { name, level } = MODEL_STATES[state];
    cell.replaceChildren(element("span", { class: `pill level-${level}` }, icon(level), name));
    row.dataset.state = state;
  }
  const health = model.health ?? { ok: null };
  setText(find(row, ".since"), time(health.since) || "unknown");
  setText(find(row, ".failures"), failuresText(health));
  setText(find(row, ".error"), errorText(health));
}

/** @param {Health} health */
function failuresText({ failures = 0, kinds = [] }) {
  const named = kinds.map(
    ({ kind, status, count }) => `${integer(count)} × ${kind}${status === null ? "" : ` (status ${status})`}`,
  );
  return named.length ? named.join(", ") : integer(failures);
}

/** @param {Health} health */
function errorText({ error, last }) {
  if (error) return escapeInvisible(error);
  return last ? `${time(last.at)}: ${escapeInvisible(last.error)}` : "none";
}

// The models behind the gateway: whether each one and its deployments answer, since when, how it failed, and what its
// latest probe found.

import { element, escapeInvisible, find, icon, reconcile, setAttribute, setText } from "../dom.js";
import { integer, plural, time } from "../numbers.js";

/** @import { DashboardDocument, Deployment, Finding, Health, Level, Model } from "../types.js" */

/** Name and class of the cells of a row. @type {[string, string][]} */
const MODEL_CELLS = [
  ["health", "health"],
  ["deployments", "deployments"],
  ["since", "since number"],
  ["failures", "failures"],
  ["latest error", "error"],
  ["latest probe", "probe"],
];
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
    const names = ["model", ...MODEL_CELLS.map(([name]) => name)];
    const heads = names.map((name) => element("th", { scope: "col", class: name }, name));
    const head = element("tr", {}, ...heads);
    const caption = element("caption", { class: "hidden-text" }, "Models");
    this.table = element("table", { class: "models cards" }, caption, element("thead", {}, head), this.rows);
    this.details = element("details", {}, element("summary", {}, this.title), this.table);
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
    // Most gateways have none, and the other columns need the room.
    const several = entries.some(([, model]) => model.deployments?.length);
    for (const cell of this.table.querySelectorAll(".deployments")) setAttribute(cell, "hidden", !several);
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
  const cells = MODEL_CELLS.map(([label, style]) => element("td", { class: style, "data-label": label }));
  const shown = element("th", { scope: "row" }, element("bdi", {}, escapeInvisible(name)));
  return element("tr", { "data-model": name }, shown, ...cells);
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
  updateLines(find(row, ".deployments"), (model.deployments ?? []).map(deploymentLine), "–");
  updateLines(find(row, ".probe"), probeLines(health.probe ?? []), "not probed");
}

/**
 * @param {HTMLElement} cell
 * @param {string[]} lines
 * @param {string} otherwise what is shown if there are none
 */
function updateLines(cell, lines, otherwise) {
  const shown = lines.length ? lines : [otherwise];
  if (cell.dataset.lines === shown.join("\n")) return;
  cell.dataset.lines = shown.join("\n");
  cell.replaceChildren(element("span", { class: "lines" }, ...shown.map((line) => element("span", {}, line))));
}

/** @param {Deployment} deployment */
function deploymentLine({ name, up, answers, failures }) {
  const failed = failures ? `, ${plural(failures, "failure")}` : "";
  return `${escapeInvisible(name)}: ${up ? "up" : "down"}, ${plural(answers, "answer")}${failed}`;
}

/**
 * What a probe found in one line, what is wrong first and with what to do. Deployments with the same line share it.
 * @param {Finding[]} findings
 */
function probeLines(findings) {
  /** @type {Map<string, Finding[]>} */
  const byDeployment = new Map();
  for (const one of findings) {
    const name = one.deployment ?? "";
    byDeployment.set(name, [...(byDeployment.get(name) ?? []), one]);
  }
  /** @type {Map<string, string[]>} */
  const byLine = new Map();
  for (const [name, found] of byDeployment) {
    const line = probeLine(found);
    byLine.set(line, [...(byLine.get(line) ?? []), name.slice(name.indexOf("/") + 1)]);
  }
  return [...byLine].map(([line, names]) => (names[0] ? `${escapeInvisible(names.join(", "))}: ${line}` : line));
}

/** @param {Finding[]} findings */
function probeLine(findings) {
  const wrong = findings.filter(({ level }) => level !== "ok");
  const fine = findings.filter(({ level }) => level === "ok").map(({ message }) => message);
  const texts = wrong.map(({ message, remedy }) => (remedy ? `${message} (what to do: ${remedy})` : message));
  return escapeInvisible([...texts, ...(fine.length ? [fine.join(", ")] : [])].join("; "));
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

// The models of a cascade: how often each was asked, how often its answer was served, and what that cost.

import { element, field, find, reconcile, setAttribute, setField, setText } from "../dom.js";
import { integer, money, percent } from "../numbers.js";

/** @import { CascadeModel, Game } from "../types.js" */

const CASCADE_NUMBERS = /** @type {const} */ (["asked", "answered", "share", "call_price", "cost"]);

export class CascadePanel {
  constructor() {
    this.rows = element("tbody");
    const heads = ["model", "asked", "answered", "share of answers", "price of a call", "cost"].map((name) =>
      element("th", { scope: "col" }, name),
    );
    const caption = element("caption", { class: "hidden-text" }, "Models of the cascade");
    const table = element(
      "table",
      { class: "latency" },
      caption,
      element("thead", {}, element("tr", {}, ...heads)),
      this.rows,
    );
    const region = { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers: Models of the cascade" };
    const sentence = element(
      "p",
      { class: "chart-sentence" },
      "Models in the order in which they are asked; the last one is the reference. Audits are counted.",
    );
    this.cost = field("cascade.cost.mean");
    this.always = field("cascade.cost.always");
    this.saved = element("span");
    const costs = element(
      "p",
      { class: "chart-sentence" },
      "Cost per request, in units of the prices: ",
      this.cost,
      "; always asking the last model: ",
      this.always,
      this.saved,
    );
    const heading = element("h3", {}, "Which model answered");
    this.node = element(
      "section",
      { class: "panel chart", "data-chart": "cascade" },
      heading,
      sentence,
      costs,
      element("div", region, table),
    );
  }

  /** @param {Game} game */
  update(game) {
    const models = game.stages ?? [];
    setAttribute(this.node, "hidden", !models.length);
    if (!models.length) return;
    const requests = models.reduce((sum, model) => sum + model.answered, 0);
    const mean = models.reduce((sum, model) => sum + costOf(model), 0) / Math.max(requests, 1);
    const always = models[models.length - 1].call_price;
    setField(this.cost, mean, money(mean));
    setField(this.always, always, money(always));
    const share = percent(Math.abs(1 - mean / always));
    setText(this.saved, requests ? ` (${share} ${mean > always ? "more" : "saved"})` : "");
    reconcile(
      this.rows,
      models,
      (model) => `${model.stage}`,
      cascadeRow,
      (row, model) => {
        for (const name of CASCADE_NUMBERS) {
          const value = name === "cost" ? costOf(model) : model[name];
          const text =
            name === "share"
              ? percent(value)
              : name === "call_price"
                ? `${value}`
                : name === "cost"
                  ? money(value)
                  : integer(value);
          setField(find(row, `[data-field="cascade.${model.stage}.${name}"]`), value, text);
        }
      },
    );
  }
}

/** @param {CascadeModel} model */
function costOf(model) {
  return model.asked * model.call_price;
}

/** @param {CascadeModel} model */
function cascadeRow(model) {
  const cells = CASCADE_NUMBERS.map((name) => element("td", {}, field(`cascade.${model.stage}.${name}`)));
  return element("tr", {}, element("th", { scope: "row" }, model.model), ...cells);
}

// The models of a cascade: how often each was asked, and how often its answer was served.

import { element, field, find, reconcile, setAttribute, setField } from "../dom.js";
import { integer, percent } from "../numbers.js";

/** @import { CascadeModel, Game } from "../types.js" */

const CASCADE_NUMBERS = /** @type {const} */ (["asked", "answered", "share", "call_price"]);

export class CascadePanel {
  constructor() {
    this.rows = element("tbody");
    const heads = ["model", "asked", "answered", "share of answers", "price of a call"].map((name) =>
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
    const heading = element("h3", {}, "Which model answered");
    this.node = element(
      "section",
      { class: "panel chart", "data-chart": "cascade" },
      heading,
      sentence,
      element("div", region, table),
    );
  }

  /** @param {Game} game */
  update(game) {
    const models = game.stages ?? [];
    setAttribute(this.node, "hidden", !models.length);
    reconcile(
      this.rows,
      models,
      (model) => `${model.stage}`,
      cascadeRow,
      (row, model) => {
        for (const name of CASCADE_NUMBERS) {
          const value = model[name];
          const text = name === "share" ? percent(value) : name === "call_price" ? `${value}` : integer(value);
          setField(find(row, `[data-field="cascade.${model.stage}.${name}"]`), value, text);
        }
      },
    );
  }
}

/** @param {CascadeModel} model */
function cascadeRow(model) {
  const cells = CASCADE_NUMBERS.map((name) => element("td", {}, field(`cascade.${model.stage}.${name}`)));
  return element("tr", {}, element("th", { scope: "row" }, model.model), ...cells);
}

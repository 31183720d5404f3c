// Latency by stage: a table with a picture of the median, the 90th and the 99th percentile of each stage.

import { logarithmic } from "../charts/scales.js";
import { element, field, find, reconcile, setAttribute, setField, setText, shape } from "../dom.js";
import { duration, integer } from "../numbers.js";

/** @import { Scale } from "../charts/scales.js" */
/** @import { Game, Stage } from "../types.js" */

const WIDTH = 200;
// The upper bound of the histograms' first bucket, in seconds: a percentile inside it is not known any better.
const FIRST_BUCKET = 0.001;
const NOT_MEASURED = "Not measured: callers ask their models themselves.";
const STATISTICS = /** @type {const} */ (["count", "mean", "p50", "p90", "p99"]);

export class LatencyPanel {
  constructor() {
    this.rows = element("tbody");
    const heads = ["stage", "requests", "mean", "median", "90 %", "99 %"].map((name) =>
      element("th", { scope: "col" }, name),
    );
    this.scale = element("th", { scope: "col", class: "latency-scale" });
    const caption = element("caption", { class: "hidden-text" }, "Latency by stage");
    const head = element("thead", {}, element("tr", {}, heads[0], this.scale, ...heads.slice(1)));
    const table = element("table", { class: "latency" }, caption, head, this.rows);
    this.empty = element("p", { class: "empty" });
    this.sentence = element(
      "p",
      { class: "chart-sentence" },
      "Of the whole route, since the gateway started. Circle: median; bar: up to the 90th percentile; line: up to the " +
        "99th percentile (logarithmic scale).",
    );
    const region = { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers: Latency by stage" };
    this.scroll = element("div", region, table);
    const heading = element("h3", {}, "Latency by stage");
    const parts = [heading, this.sentence, this.empty, this.scroll];
    this.node = element("section", { class: "panel chart", "data-chart": "latency" }, ...parts);
  }

  /**
   * @param {Game} game
   * @param {boolean} live
   */
  update(game, live) {
    const stages = game.latency.filter((stage) => stage.count > 0);
    setAttribute(this.node, "hidden", !live);
    setAttribute(this.scroll, "hidden", !stages.length);
    setAttribute(this.sentence, "hidden", !stages.length);
    setAttribute(this.empty, "hidden", stages.length > 0);
    setText(this.empty, game.about === null ? "No requests since the gateway started." : NOT_MEASURED);
    if (!stages.length) return;
    const low = 10 ** Math.floor(Math.log10(Math.max(FIRST_BUCKET, Math.min(...stages.map((stage) => stage.p50)))));
    const high = 10 ** Math.ceil(Math.log10(Math.max(10 * low, ...stages.map((stage) => stage.p99))));
    const x = logarithmic(low, high, 8, WIDTH - 8);
    setText(this.scale, `${duration(low)} to ${duration(high)}`);
    reconcile(
      this.rows,
      stages,
      (stage) => stage.stage,
      stageRow,
      (row, stage) => {
        row.querySelector("svg")?.replaceChildren(...rangeShapes(stage, x));
        for (const name of STATISTICS) {
          const value = stage[name];
          const text = name === "count" ? integer(value) : name === "mean" ? duration(value) : percentile(value);
          setField(find(row, `[data-field="latency.${CSS.escape(stage.stage)}.${name}"]`), value, text);
        }
      },
    );
  }
}

/** @param {number} seconds */
function percentile(seconds) {
  return seconds < FIRST_BUCKET ? `<${duration(FIRST_BUCKET)}` : duration(seconds);
}

/** @param {Stage} stage */
function stageRow(stage) {
  const picture = shape("svg", { viewBox: `0 0 ${WIDTH} 20`, class: "range", "aria-hidden": "true" });
  const cells = STATISTICS.map((name) => element("td", {}, field(`latency.${stage.stage}.${name}`)));
  const name = element("th", { scope: "row" }, stage.stage);
  return element("tr", {}, name, element("td", { class: "range-cell" }, picture), ...cells);
}

/**
 * @param {Stage} stage
 * @param {Scale} x
 */
function rangeShapes(stage, x) {
  const [p50, p90, p99] = [stage.p50, stage.p90, stage.p99].map((value) => x.position(value));
  return [
    shape("line", { x1: 0, x2: WIDTH, y1: 10, y2: 10, class: "grid" }),
    shape("line", { x1: p50, x2: p99, y1: 10, y2: 10, class: "range-line" }),
    shape("line", { x1: p99, x2: p99, y1: 6, y2: 14, class: "range-line" }),
    shape("rect", { x: p50, y: 6, width: Math.max(0.5, p90 - p50), height: 8, rx: 2, class: "range-bar" }),
    shape("circle", { cx: p50, cy: 10, r: 4.5, class: "range-dot" }),
  ];
}

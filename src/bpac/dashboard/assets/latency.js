// Latency by stage: a table, each row with a picture of its median, its 90 % and its 99 %.

import { element, field, reconcile, setAttribute, setField, setText, shape } from "./dom.js";
import { duration, whole } from "./numbers.js";
import { logarithmic } from "./scales.js";

const WIDTH = 200;
const NAMES = { draft: "draft", journal: "journal", expert: "expert", grading: "grading" };
// The histograms' first cell: what lies in it is not known any better.
const FINEST = 0.001;
const COLUMNS = ["count", "mean", "p50", "p90", "p99"];

export class Latency {
  constructor() {
    this.rows = element("tbody");
    const heads = ["stage", "rounds", "mean", "median", "90 %", "99 %"].map((name) =>
      element("th", { scope: "col" }, name),
    );
    this.scale = element("th", { scope: "col", class: "latency-scale" });
    const caption = element("caption", { class: "hidden-text" }, "Latency by stage");
    const head = element("thead", {}, element("tr", {}, heads[0], this.scale, ...heads.slice(1)));
    this.table = element("table", { class: "latency" }, caption, head, this.rows);
    this.empty = element("p", { class: "empty" });
    this.sentence = element(
      "p",
      { class: "chart-sentence" },
      "Of the whole route, since the gateway started. Circle: median; bar: to 90 %; line: to 99 % (logarithmic scale).",
    );
    const scroll = element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers: Latency by stage" },
      this.table,
    );
    this.scroll = scroll;
    this.node = element(
      "section",
      { class: "panel chart", "data-chart": "latency" },
      element("h3", {}, "Latency by stage"),
      this.sentence,
      this.empty,
      scroll,
    );
  }

  update(game) {
    const stages = (game.latency ?? []).filter((stage) => stage.count > 0);
    setAttribute(this.node, "hidden", !game.live);
    setAttribute(this.scroll, "hidden", !stages.length);
    setAttribute(this.sentence, "hidden", !stages.length);
    setAttribute(this.empty, "hidden", stages.length > 0);
    setText(this.empty, "Nothing has been timed since the gateway started.");
    if (!stages.length) return;
    const low = 10 ** Math.floor(Math.log10(Math.max(FINEST, Math.min(...stages.map((stage) => stage.p50)))));
    const high = 10 ** Math.ceil(Math.log10(Math.max(10 * low, ...stages.map((stage) => stage.p99))));
    const x = logarithmic(low, high, 8, WIDTH - 8);
    setText(this.scale, `${duration(low)} to ${duration(high)}`);
    reconcile(
      this.rows,
      stages,
      (stage) => stage.stage,
      stageRow,
      (row, stage) => {
        row.querySelector("svg").replaceChildren(...rangeShapes(stage, x));
        for (const name of COLUMNS) {
          const node = row.querySelector(`[data-field="latency.${CSS.escape(stage.stage)}.${name}"]`);
          setField(
            node,
            stage[name],
            name === "count" ? whole(stage[name]) : name === "mean" ? duration(stage[name]) : quantile(stage[name]),
          );
        }
      },
    );
  }
}

function quantile(seconds) {
  return seconds < FINEST ? `<${duration(FINEST)}` : duration(seconds);
}

function stageRow(stage) {
  const picture = shape("svg", { viewBox: `0 0 ${WIDTH} 20`, class: "range", "aria-hidden": "true" });
  const cells = COLUMNS.map((name) => element("td", {}, field(`latency.${stage.stage}.${name}`)));
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, NAMES[stage.stage] ?? stage.stage),
    element("td", { class: "range-cell" }, picture),
    ...cells,
  );
}

function rangeShapes(stage, x) {
  const [middle, most, nearlyAll] = [stage.p50, stage.p90, stage.p99].map((value) => x.place(value));
  return [
    shape("line", { x1: 0, x2: WIDTH, y1: 10, y2: 10, class: "grid" }),
    shape("line", { x1: middle, x2: nearlyAll, y1: 10, y2: 10, class: "range-line" }),
    shape("line", { x1: nearlyAll, x2: nearlyAll, y1: 6, y2: 14, class: "range-line" }),
    shape("rect", { x: middle, y: 6, width: Math.max(0.5, most - middle), height: 8, rx: 2, class: "range-bar" }),
    shape("circle", { cx: middle, cy: 10, r: 4.5, class: "range-dot" }),
  ];
}

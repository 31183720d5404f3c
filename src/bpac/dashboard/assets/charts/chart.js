// A chart: a title, a sentence, a legend that shows the numbers, the picture, and a table of the same numbers.
// A slider lies over the picture: point at it with a mouse or move along it with the arrow keys to read the numbers.

import { element, find, reconcile, setAttribute, setText, shape } from "../dom.js";
import { axes, bandPath, barShapes, linePath, MARGIN, markShape, ruleShape, zoneShape } from "./drawing.js";
import { linear, nearest } from "./scales.js";

/** @import { Scale } from "./scales.js" */
/** @import { ChartSpec, Column, DrawnSpec, Line, Value } from "./specs.js" */

const HEIGHT = 216;
let charts = 0;

export class Chart {
  /**
   * @param {string} id
   * @param {string} title
   * @param {{ estimate?: boolean }} options
   */
  constructor(id, title, { estimate = false } = {}) {
    charts += 1;
    /** @type {DrawnSpec | null} */
    this.spec = null;
    /** @type {number | null} the place that is read out; null if none is pointed at */
    this.cursor = null;
    /** @type {{ y: Scale, positions: number[], pointer: SVGGElement } | null} */
    this.drawn = null;
    this.name = `chart-${charts}`;
    this.sentence = element("p", { class: "chart-sentence" });
    this.where = element("span", { class: "chart-where" });
    this.legend = element("ul", { class: "legend" });
    this.picture = element("div", { class: "chart-picture" });
    const slider = { class: "chart-slider", role: "slider", tabindex: "0", "aria-label": `Read values: ${title}` };
    this.slider = element("div", { ...slider, "aria-valuemin": "0", "aria-valuemax": "0", "aria-valuenow": "0" });
    this.plot = element("div", { class: "chart-plot" }, this.picture, this.slider);
    this.empty = element("p", { class: "empty" });
    this.table = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Numbers: ${title}` });
    this.numbers = element("details", { class: "numbers" }, element("summary", {}, "Numbers"), this.table);
    const badge = estimate ? element("span", { class: "badge" }, "estimate") : null;
    const heading = element("h3", {}, title, badge);
    this.readout = element("div", { class: "readout" }, this.legend, this.where);
    const parts = [heading, this.sentence, this.empty, this.readout, this.plot, this.numbers];
    this.node = element("section", { class: "panel chart", "data-chart": id }, ...parts);
    this.title = title;
    this.numbers.addEventListener("toggle", () => this.fillTable());
    this.slider.addEventListener("keydown", (event) => this.onKey(event));
    this.slider.addEventListener("pointermove", (event) => this.onPointer(event));
    this.slider.addEventListener("pointerdown", (event) => this.onPointer(event));
    this.slider.addEventListener("pointerleave", () => this.moveCursor(null));
    this.slider.addEventListener("blur", () => this.moveCursor(null));
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  /** @param {ChartSpec} spec */
  update(spec) {
    this.spec = spec.empty === undefined ? spec : null;
    setText(this.sentence, spec.sentence ?? "");
    setAttribute(this.sentence, "hidden", !spec.sentence);
    setAttribute(this.empty, "hidden", this.spec !== null);
    setText(this.empty, spec.empty ?? "");
    for (const node of [this.readout, this.plot, this.numbers]) setAttribute(node, "hidden", this.spec === null);
    if (this.spec !== null && this.cursor !== null && this.cursor >= this.spec.x.values.length) this.cursor = null;
    this.draw();
    this.fillTable();
  }

  draw() {
    const width = this.plot.clientWidth;
    const spec = this.spec;
    if (spec === null || width === 0) return;
    const size = { width, height: HEIGHT };
    const scale = spec.x.scale ?? linear;
    const x = scale(spec.x.low, spec.x.high, MARGIN.left, width - MARGIN.right);
    const y = linear(spec.y.low, spec.y.high, HEIGHT - MARGIN.bottom, MARGIN.top);
    const inside = { x: MARGIN.left, y: MARGIN.top - 2, width: Math.max(1, width - MARGIN.left - MARGIN.right + 2) };
    const clip = shape(
      "clipPath",
      { id: `${this.name}-clip` },
      shape("rect", { ...inside, height: HEIGHT - MARGIN.bottom - MARGIN.top + 3 }),
    );
    const layers = shape("g", { "clip-path": `url(#${this.name}-clip)` });
    for (const zone of spec.zones ?? []) layers.append(zoneShape(zone, x, y, size));
    if (spec.bars) layers.append(barShapes(spec.bars, x, y));
    for (const line of spec.lines) layers.append(...lineShapes(line, spec.x.values, x, y));
    for (const rule of spec.rules ?? []) layers.append(ruleShape(rule, x, y, size));
    for (const mark of spec.marks ?? []) layers.append(markShape(mark, x, size));
    const pointer = shape("g", { class: "pointer" });
    const named = { role: "img", "aria-labelledby": `${this.name}-title ${this.name}-desc` };
    const drawing = shape(
      "svg",
      { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, ...named },
      shape("title", { id: `${this.name}-title` }, this.title),
      shape("desc", { id: `${this.name}-desc` }, spec.sentence || this.title),
      shape("defs", {}, clip),
      axes(spec, x, y, size),
      layers,
      pointer,
    );
    this.picture.replaceChildren(drawing);
    this.drawn = { y, positions: spec.x.values.map((value) => x.position(value)), pointer };
    this.readOut();
  }

  /**
   * The index whose numbers the legend shows: at the cursor, or else the one the spec names, or the last.
   * @param {DrawnSpec} spec
   */
  shownIndex(spec) {
    return this.cursor ?? spec.x.rest ?? spec.x.values.length - 1;
  }

  readOut() {
    const { spec, drawn } = this;
    if (spec === null || drawn === null) return;
    const last = spec.x.values.length - 1;
    const at = this.shownIndex(spec);
    const shown = spec.bars ? spec.bars.stacks : spec.lines;
    const textOf = (/** @type {Line} */ line) =>
      (this.cursor === null && line.resting) || spec.y.text(line.values[at], line, at);
    reconcile(
      this.legend,
      shown,
      (line) => line.name,
      (line) => legendItem(line, spec.bars !== undefined),
      (item, line) => setText(find(item, ".number"), textOf(line)),
    );
    const where = (this.cursor === null && spec.x.resting) || spec.x.text(at);
    setText(this.where, where);
    const spoken = shown.map((line) => `${line.name} ${textOf(line)}`).join(", ");
    setAttribute(this.slider, "aria-valuemax", Math.max(0, last));
    setAttribute(this.slider, "aria-valuenow", Math.max(0, at));
    setAttribute(this.slider, "aria-valuetext", `${where}: ${spoken}`);
    drawn.pointer.replaceChildren();
    if (this.cursor === null || last < 0) return;
    const right = drawn.positions[at];
    drawn.pointer.append(shape("line", { x1: right, x2: right, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }));
    for (const line of spec.lines) {
      const value = line.values[at];
      if (typeof value !== "number") continue;
      const up = Math.min(HEIGHT - MARGIN.bottom, Math.max(MARGIN.top, drawn.y.position(value)));
      drawn.pointer.append(shape("circle", { cx: right, cy: up, r: 4, class: `dot ${line.style}` }));
    }
  }

  /** @param {number | null} cursor */
  moveCursor(cursor) {
    if (this.spec === null || cursor === this.cursor) return;
    this.cursor = cursor;
    this.readOut();
  }

  /** @param {PointerEvent} event */
  onPointer(event) {
    if (!this.drawn?.positions.length) return;
    this.moveCursor(nearest(this.drawn.positions, event.clientX - this.plot.getBoundingClientRect().left));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (this.spec === null) return;
    const last = this.spec.x.values.length - 1;
    const at = this.shownIndex(this.spec);
    const far = Math.max(1, Math.round(last / 10));
    const moves = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1 };
    const targets = new Map(Object.entries({ ...moves, PageDown: at - far, PageUp: at + far, Home: 0, End: last }));
    const target = targets.get(event.key);
    if (event.key === "Escape") this.moveCursor(null);
    if (target === undefined) return;
    event.preventDefault();
    this.moveCursor(Math.min(last, Math.max(0, target)));
  }

  // The table has hundreds of rows, so it is filled only while it is open.
  fillTable() {
    if (!this.numbers.open || this.spec === null) {
      this.table.replaceChildren();
      return;
    }
    const { columns, rows } = this.spec.table;
    const head = element("tr", {}, ...columns.map((column) => element("th", { scope: "col" }, column.name)));
    const body = rows.map((row) => element("tr", {}, ...row.map((value, index) => tableCell(columns[index], value))));
    const caption = element("caption", { class: "hidden-text" }, this.title);
    this.table.replaceChildren(
      element("table", {}, caption, element("thead", {}, head), element("tbody", {}, ...body)),
    );
  }
}

/**
 * @param {Column} column
 * @param {Value} value
 */
function tableCell(column, value) {
  return element("td", { "data-value": value }, column.text(value));
}

/**
 * A line with its band and dots.
 * @param {Line} line
 * @param {number[]} xs
 * @param {Scale} x
 * @param {Scale} y
 */
function lineShapes(line, xs, x, y) {
  const d = linePath(x, y, xs, line.values, line.stepped);
  /** @type {SVGElement[]} */
  const shapes = [shape("path", { d, class: `line ${line.style}`, "data-series": line.name })];
  if (line.band) {
    const area = bandPath(x, y, xs, line.band.low, line.band.high);
    shapes.unshift(shape("path", { d: area, class: `band ${line.style}` }));
  }
  for (const [index, value] of line.dots ? line.values.entries() : []) {
    if (typeof value !== "number") continue;
    const place = { cx: x.position(xs[index]), cy: y.position(value) };
    shapes.push(shape("circle", { ...place, r: 3, class: `dot ${line.style}` }));
  }
  return shapes;
}

/**
 * @param {Line} line
 * @param {boolean} isBar
 */
function legendItem(line, isBar) {
  const swatch = isBar
    ? shape("rect", { x: 5, y: 1, width: 11, height: 10, class: `bar ${line.style}` })
    : shape("line", { x1: 1, x2: 21, y1: 6, y2: 6, class: `line ${line.style}` });
  const drawn = shape("svg", { viewBox: "0 0 22 12", width: 22, height: 12, "aria-hidden": "true" }, swatch);
  const name = element("span", { class: "legend-name" }, line.name);
  return element("li", {}, drawn, name, element("span", { class: "number" }));
}

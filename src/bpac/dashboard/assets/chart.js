// A chart: its name, a sentence, a legend that reads out the numbers, the picture, and a table of the same numbers.
// A slider lies over the picture: a mouse points at it, the arrow keys move along it, and it says where it is.

import { element, reconcile, setAttribute, setText, shape } from "./dom.js";
import { MARGIN, axes, bandPath, bars, linePath, mark, rule } from "./drawing.js";
import { linear, nearest } from "./scales.js";

const HEIGHT = 216;
let charts = 0;

export class Chart {
  constructor(id, title, { estimate = false } = {}) {
    charts += 1;
    this.spec = null;
    this.cursor = null; // null: the latest
    this.name = `chart-${charts}`;
    this.sentence = element("p", { class: "chart-sentence" });
    this.where = element("span", { class: "chart-where" });
    this.legend = element("ul", { class: "legend" });
    this.picture = element("div", { class: "chart-picture" });
    const slider = { class: "chart-slider", role: "slider", tabindex: "0", "aria-label": `Read out: ${title}` };
    this.slider = element("div", { ...slider, "aria-valuemin": "0", "aria-valuemax": "0", "aria-valuenow": "0" });
    this.plot = element("div", { class: "chart-plot" }, this.picture, this.slider);
    this.empty = element("p", { class: "empty" });
    this.table = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Numbers: ${title}` });
    this.numbers = element("details", { class: "numbers" }, element("summary", {}, "Numbers"), this.table);
    const badge = estimate ? element("span", { class: "badge" }, "estimate") : null;
    const heading = element("h3", {}, title, badge);
    const readout = element("div", { class: "readout" }, this.legend, this.where);
    const parts = [heading, this.sentence, this.empty, readout, this.plot, this.numbers];
    this.node = element("section", { class: "panel chart", "data-chart": id }, ...parts);
    this.title = title;
    this.readout = readout;
    this.numbers.addEventListener("toggle", () => this.fillTable());
    this.slider.addEventListener("keydown", (event) => this.key(event));
    this.slider.addEventListener("pointermove", (event) => this.point(event));
    this.slider.addEventListener("pointerdown", (event) => this.point(event));
    this.slider.addEventListener("pointerleave", () => this.look(null));
    this.slider.addEventListener("blur", () => this.look(null));
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  // Show a spec: either {sentence?, empty}, or {sentence, x, y, lines, bins?, zones?, rules?, marks?, table}.
  update(spec) {
    this.spec = spec;
    setText(this.sentence, spec.sentence ?? "");
    setAttribute(this.sentence, "hidden", !spec.sentence);
    setAttribute(this.empty, "hidden", !spec.empty);
    setText(this.empty, spec.empty ?? "");
    for (const node of [this.readout, this.plot, this.numbers]) setAttribute(node, "hidden", Boolean(spec.empty));
    if (spec.empty) return;
    if (this.cursor !== null && this.cursor >= spec.x.values.length) this.cursor = null;
    this.draw();
    this.fillTable();
  }

  draw() {
    const width = this.plot.clientWidth;
    if (this.spec === null || this.spec.empty || width === 0) return;
    const spec = this.spec;
    const size = { width, height: HEIGHT };
    const scale = spec.x.scale ?? linear;
    const x = scale(spec.x.low, spec.x.high, MARGIN.left, width - MARGIN.right);
    const y = linear(spec.y.low, spec.y.high, HEIGHT - MARGIN.bottom, MARGIN.top);
    this.y = y;
    this.places = spec.x.values.map((value) => x.place(value));
    const inside = { x: MARGIN.left, y: MARGIN.top - 2, width: Math.max(1, width - MARGIN.left - MARGIN.right + 2) };
    const clip = shape(
      "clipPath",
      { id: `${this.name}-clip` },
      shape("rect", { ...inside, height: HEIGHT - MARGIN.bottom - MARGIN.top + 3 }),
    );
    const layers = shape("g", { "clip-path": `url(#${this.name}-clip)` });
    for (const zone of spec.zones ?? []) layers.append(zoneBox(zone, x, y, size));
    if (spec.bins) layers.append(bars(spec.bins, x, y));
    for (const line of spec.lines) {
      if (line.band) {
        const d = bandPath(x, y, spec.x.values, line.band.low, line.band.high);
        layers.append(shape("path", { d, class: `band ${line.style}` }));
      }
      const d = linePath(x, y, spec.x.values, line.values, line.stepped);
      layers.append(shape("path", { d, class: `line ${line.style}`, "data-series": line.name }));
      for (const place of line.dots ? spec.x.values.keys() : []) {
        layers.append(
          shape("circle", {
            cx: x.place(spec.x.values[place]),
            cy: y.place(line.values[place]),
            r: 3,
            class: `dot ${line.style}`,
          }),
        );
      }
    }
    for (const item of spec.rules ?? []) layers.append(rule(item, x, y, size));
    for (const item of spec.marks ?? []) layers.append(mark(item, x, size));
    this.pointer = shape("g", { class: "pointer" });
    const named = { role: "img", "aria-labelledby": `${this.name}-title ${this.name}-desc` };
    const drawing = shape(
      "svg",
      { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, ...named },
      shape("title", { id: `${this.name}-title` }, this.title),
      shape("desc", { id: `${this.name}-desc` }, spec.sentence || this.title),
      shape("defs", {}, clip),
      axes(spec, x, y, size),
      layers,
      this.pointer,
    );
    this.picture.replaceChildren(drawing);
    this.read();
  }

  // The legend says what the lines are at the cursor, or where it rests: at the latest place unless told otherwise.
  read() {
    const spec = this.spec;
    const last = spec.x.values.length - 1;
    const at = this.cursor ?? spec.x.rest ?? last;
    const shown = spec.bins ? spec.bins.stacks : spec.lines;
    const textOf = (line) => (this.cursor === null && line.resting) || spec.y.text(line.values[at], line, at);
    reconcile(
      this.legend,
      shown,
      (line) => line.name,
      legendItem,
      (item, line) => setText(item.lastElementChild, textOf(line)),
    );
    const where = (this.cursor === null && spec.x.resting) || spec.x.text(at);
    setText(this.where, where);
    const spoken = shown.map((line) => `${line.name} ${textOf(line)}`).join(", ");
    setAttribute(this.slider, "aria-valuemax", Math.max(0, last));
    setAttribute(this.slider, "aria-valuenow", Math.max(0, at));
    setAttribute(this.slider, "aria-valuetext", `${where}: ${spoken}`);
    this.pointer.replaceChildren();
    if (this.cursor === null || last < 0) return;
    const right = this.places[at];
    this.pointer.append(shape("line", { x1: right, x2: right, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }));
    for (const line of spec.bins ? [] : shown) {
      const up = this.y.place(line.values[at]);
      if (Number.isFinite(up)) {
        const seen = Math.min(HEIGHT - MARGIN.bottom, Math.max(MARGIN.top, up));
        this.pointer.append(shape("circle", { cx: right, cy: seen, r: 4, class: `dot ${line.style}` }));
      }
    }
  }

  look(cursor) {
    if (this.spec === null || this.spec.empty || cursor === this.cursor) return;
    this.cursor = cursor;
    this.read();
  }

  point(event) {
    if (!this.places?.length) return;
    this.look(nearest(this.places, event.clientX - this.plot.getBoundingClientRect().left));
  }

  key(event) {
    const last = this.spec.x.values.length - 1;
    const at = this.cursor ?? this.spec.x.rest ?? last;
    const far = Math.max(1, Math.round(last / 10));
    const moves = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1 };
    const to = { ...moves, PageDown: at - far, PageUp: at + far, Home: 0, End: last }[event.key];
    if (event.key === "Escape") this.look(null);
    if (to === undefined) return;
    event.preventDefault();
    this.look(Math.min(last, Math.max(0, to)));
  }

  // Hundreds of rows: only for those who look.
  fillTable() {
    if (!this.numbers.open || this.spec === null || this.spec.empty) {
      this.table.replaceChildren();
      return;
    }
    const { columns, rows } = this.spec.table;
    const head = element("tr", {}, ...columns.map((column) => element("th", { scope: "col" }, column.name)));
    const body = rows.map((row) => element("tr", {}, ...row.map((value, index) => cell(columns[index], value))));
    const caption = element("caption", { class: "hidden-text" }, this.title);
    this.table.replaceChildren(
      element("table", {}, caption, element("thead", {}, head), element("tbody", {}, ...body)),
    );
  }
}

function cell(column, value) {
  return element("td", { "data-value": value }, column.text(value));
}

function legendItem(line) {
  const form =
    line.values && !line.bar ? shape("line", { x1: 1, x2: 21, y1: 6, y2: 6, class: `line ${line.style}` }) : null;
  const swatch = form ?? shape("rect", { x: 5, y: 1, width: 11, height: 10, class: `bar ${line.style}` });
  const drawn = shape("svg", { viewBox: "0 0 22 12", width: 22, height: 12, "aria-hidden": "true" }, swatch);
  return element(
    "li",
    {},
    drawn,
    element("span", { class: "legend-name" }, line.name),
    element("span", { class: "number" }),
  );
}

// A part of the plot with another ground: an epoch, or where the promise would be broken.
function zoneBox(zone, x, y, size) {
  const left = zone.x ? x.place(zone.x[0]) : MARGIN.left;
  const right = zone.x ? x.place(zone.x[1]) : size.width - MARGIN.right;
  const top = zone.y ? y.place(zone.y[1]) : MARGIN.top;
  const bottom = zone.y ? y.place(zone.y[0]) : size.height - MARGIN.bottom;
  const box = { x: left, y: top, width: Math.max(0, right - left), height: Math.max(0, bottom - top) };
  return shape("rect", { ...box, class: `zone ${zone.style}` });
}

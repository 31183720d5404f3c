// The parts of a chart as SVG: axes, lines, bands, bars, rules and marks.

import { shape } from "../dom.js";

/** @import { Scale } from "./scales.js" */
/** @import { Bars, DrawnSpec, Mark, Rule, Value, Zone } from "./specs.js" */
/** @typedef {{ width: number, height: number }} Size */

// Around the plot: the left one holds the numbers of the axis, the right one half of the last number below it.
export const MARGIN = { top: 10, right: 24, bottom: 34, left: 46 };

const rounded = (/** @type {number} */ value) => Math.round(100 * value) / 100;

/**
 * The d attribute of a path through points, with a gap where a value is unknown.
 * @param {Scale} x
 * @param {Scale} y
 * @param {number[]} xs
 * @param {Value[]} ys
 * @param {boolean} stepped
 */
export function linePath(x, y, xs, ys, stepped = false) {
  let path = "";
  let drawing = false;
  for (let index = 0; index < xs.length; index += 1) {
    const value = ys[index];
    if (typeof value !== "number" || !Number.isFinite(value)) {
      drawing = false;
      continue;
    }
    const [right, up] = [rounded(x.position(xs[index])), rounded(y.position(value))];
    if (!drawing) path += `M${right} ${up}`;
    else path += stepped ? `H${right}V${up}` : `L${right} ${up}`;
    drawing = true;
  }
  return path;
}

/**
 * The d attribute of the area between two lines.
 * @param {Scale} x
 * @param {Scale} y
 * @param {number[]} xs
 * @param {number[]} lows
 * @param {number[]} highs
 */
export function bandPath(x, y, xs, lows, highs) {
  const known = xs.map((_, index) => index).filter((index) => Number.isFinite(lows[index] + highs[index]));
  if (known.length < 2) return "";
  const point = (/** @type {number} */ index, /** @type {number[]} */ values) =>
    `${rounded(x.position(xs[index]))} ${rounded(y.position(values[index]))}`;
  const there = known.map((index) => point(index, highs)).join("L");
  const back = known
    .toReversed()
    .map((index) => point(index, lows))
    .join("L");
  return `M${there}L${back}Z`;
}

/**
 * @param {DrawnSpec} spec
 * @param {Scale} x
 * @param {Scale} y
 * @param {Size} size
 */
export function axes(spec, x, y, size) {
  const group = shape("g", { class: "axes", "aria-hidden": "true" });
  const bottom = size.height - MARGIN.bottom;
  for (const tick of spec.y.ticks ?? y.ticks(4)) {
    const up = rounded(y.position(tick));
    group.append(
      shape("line", { x1: MARGIN.left, x2: size.width - MARGIN.right, y1: up, y2: up, class: "grid" }),
      shape("text", { x: MARGIN.left - 8, y: up, class: "tick-y" }, spec.y.tick(tick)),
    );
  }
  let free = -Infinity;
  for (const tick of x.ticks(Math.max(2, Math.floor((size.width - MARGIN.left) / 70)))) {
    const right = rounded(x.position(tick));
    const text = spec.x.tick(tick);
    const half = 3.4 * text.length;
    if (right - half < free || right + half > size.width) continue;
    free = right + half + 10;
    group.append(
      shape("line", { x1: right, x2: right, y1: bottom, y2: bottom + 4, class: "tick" }),
      shape("text", { x: right, y: bottom + 16, class: "tick-x" }, text),
    );
  }
  group.append(
    shape("line", { x1: MARGIN.left, x2: size.width - MARGIN.right, y1: bottom, y2: bottom, class: "axis" }),
    shape("text", { x: size.width - MARGIN.right, y: size.height - 3, class: "axis-name" }, spec.x.name),
  );
  return group;
}

/**
 * Stacked bars.
 * @param {Bars} bars
 * @param {Scale} x
 * @param {Scale} y
 */
export function barShapes(bars, x, y) {
  const group = shape("g", { class: "bars" });
  const below = bars.edges.slice(1).map(() => 0);
  for (const stack of bars.stacks) {
    for (const [index, value] of stack.values.entries()) {
      if (value <= 0) continue;
      const [left, right] = [x.position(bars.edges[index]), x.position(bars.edges[index + 1])];
      const [base, top] = [y.position(below[index]), y.position(below[index] + value)];
      below[index] += value;
      const gap = right - left > 4 ? 1 : 0;
      const box = { x: rounded(left), width: rounded(Math.max(0.5, right - left - gap)), y: rounded(top) };
      group.append(shape("rect", { ...box, height: rounded(Math.max(0.5, base - top)), class: `bar ${stack.style}` }));
    }
  }
  return group;
}

/**
 * A straight line across the plot with its name.
 * @param {Rule} rule
 * @param {Scale} x
 * @param {Scale} y
 * @param {Size} size
 */
export function ruleShape(rule, x, y, size) {
  const group = { class: `rule ${rule.style}` };
  if (rule.y !== undefined) {
    const up = rounded(y.position(rule.y));
    const above = up - 6 < MARGIN.top + 6 ? up + 14 : up - 6;
    return shape(
      "g",
      group,
      shape("line", { x1: MARGIN.left, x2: size.width - MARGIN.right, y1: up, y2: up }),
      shape("text", { x: size.width - MARGIN.right - 4, y: above, "text-anchor": "end" }, rule.label),
    );
  }
  const right = rounded(x.position(rule.x));
  const onTheLeft = right > size.width - MARGIN.right - 7 * rule.label.length;
  const name = { x: right + (onTheLeft ? -6 : 6), y: MARGIN.top + 10, "text-anchor": onTheLeft ? "end" : "start" };
  return shape(
    "g",
    group,
    shape("line", { x1: right, x2: right, y1: MARGIN.top, y2: size.height - MARGIN.bottom }),
    shape("text", name, rule.label),
  );
}

/**
 * A mark for an event, at the bottom of the plot.
 * @param {Mark} mark
 * @param {Scale} x
 * @param {Size} size
 */
export function markShape(mark, x, size) {
  const [right, bottom] = [rounded(x.position(mark.x)), size.height - MARGIN.bottom];
  const forms = {
    up: `M${right - 5} ${bottom - 1}h10l-5-9z`,
    down: `M${right - 5} ${bottom - 10}h10l-5 9z`,
    bell: `M${right} ${bottom - 1}l-5-5.5 5-5.5 5 5.5z`,
  };
  const group = shape(
    "g",
    {},
    shape("title", {}, mark.label),
    shape("path", { d: forms[mark.form], class: `mark mark-${mark.form}` }),
  );
  if (mark.form === "bell") {
    group.append(shape("line", { x1: right, x2: right, y1: MARGIN.top, y2: bottom - 12, class: "mark-line" }));
  }
  return group;
}

/**
 * A shaded part of the plot: an epoch, or where the limit is exceeded.
 * @param {Zone} zone
 * @param {Scale} x
 * @param {Scale} y
 * @param {Size} size
 */
export function zoneShape(zone, x, y, size) {
  const left = zone.x ? x.position(zone.x[0]) : MARGIN.left;
  const right = zone.x ? x.position(zone.x[1]) : size.width - MARGIN.right;
  const top = zone.y ? y.position(zone.y[1]) : MARGIN.top;
  const bottom = zone.y ? y.position(zone.y[0]) : size.height - MARGIN.bottom;
  const box = { x: left, y: top, width: Math.max(0, right - left), height: Math.max(0, bottom - top) };
  return shape("rect", { ...box, class: `zone ${zone.style}` });
}

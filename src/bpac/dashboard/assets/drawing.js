// The parts of a chart: axes, lines, steps, bands, bars, rules and marks, as plain SVG.

import { shape } from "./dom.js";

// Of the plot inside its picture. Numbers at the axis need room on the left, the last one half a number on the right.
export const MARGIN = { top: 10, right: 24, bottom: 34, left: 46 };

const round = (value) => Math.round(100 * value) / 100;

// The d of a path through points; a gap where a value is not known.
export function linePath(x, y, xs, ys, stepped = false) {
  let path = "";
  let drawing = false;
  for (let index = 0; index < xs.length; index += 1) {
    if (!Number.isFinite(ys[index])) {
      drawing = false;
      continue;
    }
    const [right, up] = [round(x.place(xs[index])), round(y.place(ys[index]))];
    if (!drawing) path += `M${right} ${up}`;
    else path += stepped ? `H${right}V${up}` : `L${right} ${up}`;
    drawing = true;
  }
  return path;
}

// The d of the area between two lines.
export function bandPath(x, y, xs, lows, highs) {
  const known = xs.map((_, index) => index).filter((index) => Number.isFinite(lows[index] + highs[index]));
  if (known.length < 2) return "";
  const point = (index, values) => `${round(x.place(xs[index]))} ${round(y.place(values[index]))}`;
  const there = known.map((index) => point(index, highs)).join("L");
  const back = known
    .reverse()
    .map((index) => point(index, lows))
    .join("L");
  return `M${there}L${back}Z`;
}

export function axes(spec, x, y, size) {
  const group = shape("g", { class: "axes", "aria-hidden": "true" });
  const bottom = size.height - MARGIN.bottom;
  for (const tick of spec.y.ticks ?? y.ticks(4)) {
    const up = round(y.place(tick));
    group.append(
      shape("line", { x1: MARGIN.left, x2: size.width - MARGIN.right, y1: up, y2: up, class: "grid" }),
      shape("text", { x: MARGIN.left - 8, y: up, class: "tick-y" }, spec.y.tick(tick)),
    );
  }
  let free = -Infinity;
  for (const tick of x.ticks(Math.max(2, Math.floor((size.width - MARGIN.left) / 70)))) {
    const right = round(x.place(tick));
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

// Stacked bars between edges.
export function bars(bins, x, y) {
  const group = shape("g", { class: "bars" });
  const below = bins.edges.slice(1).map(() => 0);
  for (const stack of bins.stacks) {
    stack.values.forEach((value, index) => {
      if (value <= 0) return;
      const [left, right] = [x.place(bins.edges[index]), x.place(bins.edges[index + 1])];
      const [base, top] = [y.place(below[index]), y.place(below[index] + value)];
      below[index] += value;
      const gap = right - left > 4 ? 1 : 0;
      const box = { x: round(left), width: round(Math.max(0.5, right - left - gap)), y: round(top) };
      group.append(shape("rect", { ...box, height: round(Math.max(0.5, base - top)), class: `bar ${stack.style}` }));
    });
  }
  return group;
}

// A line across at a value, or up and down at a place, with its name.
export function rule(item, x, y, size) {
  const bottom = size.height - MARGIN.bottom;
  if (item.y !== undefined) {
    const up = round(y.place(item.y));
    const [ends, anchor] = item.left ? [MARGIN.left + 6, "start"] : [size.width - MARGIN.right - 4, "end"];
    const above = up - 6 < MARGIN.top + 6 ? up + 14 : up - 6;
    return shape(
      "g",
      { class: `rule ${item.style}` },
      shape("line", { x1: MARGIN.left, x2: size.width - MARGIN.right, y1: up, y2: up }),
      shape("text", { x: ends, y: above, "text-anchor": anchor }, item.label),
    );
  }
  const right = round(x.place(item.x));
  const turned = right > size.width - MARGIN.right - 7 * item.label.length;
  const name = { x: right + (turned ? -6 : 6), y: MARGIN.top + 10, "text-anchor": turned ? "end" : "start" };
  return shape(
    "g",
    { class: `rule ${item.style}` },
    shape("line", { x1: right, x2: right, y1: MARGIN.top, y2: bottom }),
    shape("text", name, item.label),
  );
}

// A mark at the bottom of the plot: something happened here.
export function mark(item, x, size) {
  const [right, bottom] = [round(x.place(item.x)), size.height - MARGIN.bottom];
  const forms = {
    up: `M${right - 5} ${bottom - 1}h10l-5-9z`,
    down: `M${right - 5} ${bottom - 10}h10l-5 9z`,
    bell: `M${right} ${bottom - 1}l-5-5.5 5-5.5 5 5.5z`,
  };
  const parts = [
    shape("title", {}, item.label),
    shape("path", { d: forms[item.form], class: `mark mark-${item.form}` }),
  ];
  if (item.form === "bell") {
    parts.push(shape("line", { x1: right, x2: right, y1: MARGIN.top, y2: bottom - 12, class: "mark-line" }));
  }
  return shape("g", {}, ...parts);
}

// The horizontal axis of charts over the requests of a game: their numbers, or the clock.

import { integer, time } from "../numbers.js";
import { linear } from "./scales.js";

/** @import { GameEvent, Series, Unit } from "../types.js" */
/** @import { ScaleMaker } from "./scales.js" */
/** @import { Column, HorizontalAxis, Value } from "./specs.js" */
/** @typedef {"requests" | "time"} AxisName */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
// Distances between the ticks of a clock, in seconds.
const CLOCK_STEPS = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 7, 14, 30, 90, 180, 365].map((days) => days * DAY),
];

/** @type {Column} */
const TIME_COLUMN = { name: "time", text: (at) => time(at) || "unknown" };

/**
 * What a chart needs of its horizontal axis.
 * @typedef {object} SeriesAxis
 * @property {Series} series the points that have a place on the axis
 * @property {HorizontalAxis} x
 * @property {string} left what is said about points that have no place; empty if there are none
 * @property {Column[]} columns of the table, before those of the chart
 * @property {(index: number) => Value[]} cells
 * @property {(event: GameEvent) => number | null} placeOf null if the event has no place
 */

/**
 * @param {Series} series
 * @param {AxisName} name
 * @param {Unit} unit
 * @returns {SeriesAxis | null} null if no point has a place
 */
export function seriesAxis(series, name, unit) {
  /** @type {Column} */
  const numbers = { name: unit, text: integer };
  if (name === "requests") {
    const first = series.step[0];
    return {
      series,
      x: requestAxis(series, unit),
      left: "",
      columns: [numbers],
      cells: (index) => [series.step[index]],
      placeOf: ({ step }) => (step >= first ? step : null),
    };
  }
  const known = withTimes(series);
  if (!known.step.length) return null;
  const missing = series.step.length - known.step.length;
  const x = clockAxis(known, unit);
  return {
    series: known,
    x,
    left: missing ? ` ${integer(missing)} of ${integer(series.step.length)} points have no known time.` : "",
    columns: [numbers, TIME_COLUMN],
    cells: (index) => [known.step[index], known.at[index]],
    placeOf: ({ at }) => (at >= x.low && at <= x.high ? at : null),
  };
}

/**
 * @param {Series} series
 * @param {Unit} unit
 * @returns {HorizontalAxis}
 */
function requestAxis(series, unit) {
  const last = series.step.length - 1;
  return {
    values: series.step,
    low: Math.min(1, series.step[0] ?? 0),
    high: Math.max(2, series.step[last] ?? 1),
    name: `${unit}s`,
    tick: integer,
    text: (index) => placeText(series, index, unit),
    resting: `latest: ${unit} ${integer(series.step[last])}`,
  };
}

/**
 * @param {Series} series whose times are known
 * @param {Unit} unit
 * @returns {HorizontalAxis}
 */
function clockAxis(series, unit) {
  // A clock that was set back must not fold the line: places never move to the left.
  let latest = 0;
  const values = series.at.map((at) => {
    latest = Math.max(latest, at);
    return latest;
  });
  const [low, high] = [values[0], Math.max(values[0] + 1, latest)];
  return {
    values,
    low,
    high,
    scale: clock,
    name: high - low < 2 * DAY ? "time of day" : "date",
    tick: (at) => clockText(at, high - low),
    text: (index) => placeText(series, index, unit),
    resting: `latest: ${time(series.at.at(-1))}`,
  };
}

/**
 * @param {Series} series
 * @param {number} index
 * @param {Unit} unit
 */
function placeText(series, index, unit) {
  const when = time(series.at[index]);
  return `${unit} ${integer(series.step[index])}${when ? `, ${when}` : ""}`;
}

/**
 * The points of a series whose times are known.
 * @param {Series} series
 * @returns {Series}
 */
function withTimes(series) {
  const known = series.at.map((at, index) => (at > 0 ? index : -1)).filter((index) => index >= 0);
  const columns = Object.entries(series).map(([name, values]) => [name, known.map((index) => values[index])]);
  return Object.fromEntries(columns);
}

/**
 * For times; ticks at round times of the local clock.
 * @type {ScaleMaker}
 */
function clock(low, high, from, to) {
  const ticks = (/** @type {number} */ wanted) => {
    const rough = (high - low) / Math.max(1, wanted);
    const step = CLOCK_STEPS.find((size) => size >= rough) ?? 365 * DAY * Math.ceil(rough / (365 * DAY));
    const offset = MINUTE * new Date(1000 * low).getTimezoneOffset();
    const found = [];
    for (let tick = Math.ceil((low - offset) / step) * step + offset; tick <= high; tick += step) found.push(tick);
    return found;
  };
  return { ...linear(low, high, from, to), ticks };
}

/**
 * @param {number} at unix seconds
 * @param {number} span of the axis, in seconds
 */
function clockText(at, span) {
  const date = new Date(1000 * at);
  if (span > 400 * DAY) return date.toLocaleDateString("en-GB", { month: "short", year: "numeric" });
  const midnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
  if (span >= 2 * DAY || midnight) return date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return date.toLocaleTimeString("en-GB").slice(0, span < 10 * MINUTE ? 8 : 5);
}

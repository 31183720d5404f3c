// Charts over the requests of a game: threshold, expert calls and tokens, average loss.

import { integer, percent, percentRoundedUp, score, time, tokens } from "../numbers.js";
import { scoreInForce } from "../score_in_force.js";
import { seriesAxis } from "./series_axis.js";

/** @import { Game, Series } from "../types.js" */
/** @import { AxisName } from "./series_axis.js" */
/** @import { ChartSpec, Column, Line, Mark, Value } from "./specs.js" */

export const LOADING = "Loading…";
const NO_REQUESTS = "No requests yet. The chart starts with the first one.";
const NO_TIMES = "The times of these requests are not known. Choose charts by requests instead.";

/** @type {Record<string, Mark["form"]>} the shape of an event's mark; all others are bells */
const MARK_FORMS = { opened: "up", closed: "down" };

/** @param {Game} game */
function thresholdSentence(game) {
  const { threshold } = game;
  if (threshold === 0) return `The threshold is 0: the expert answers every ${game.unit}.`;
  if (scoreInForce(game) === "uncertainty") return `Drafts with an uncertainty below ${score(threshold)} are kept.`;
  return (
    `Drafts with a learned score below ${score(threshold)} are kept: it is the loss that the model predicts. ` +
    "Each score has its own scale, so the threshold jumps where another score comes into force."
  );
}

/**
 * @param {Game} game
 * @param {AxisName} axisName
 * @returns {ChartSpec}
 */
export function thresholdSpec(game, axisName) {
  const sentence = thresholdSentence(game);
  if (!game.series) return { empty: LOADING, sentence };
  if (!game.series.step.length) return { empty: NO_REQUESTS, sentence };
  const axis = seriesAxis(game.series, axisName, game.unit);
  if (axis === null) return { empty: NO_TIMES, sentence };
  const { series, x } = axis;
  const starts = x.values.filter((_, index) => index > 0 && series.epoch[index] !== series.epoch[index - 1]);
  const ends = [...starts, x.values[x.values.length - 1]];
  const highest = Math.max(...series.threshold);
  const times = starts.length === 1 ? "once" : `${starts.length} times`;
  return {
    sentence: `${sentence}${starts.length ? ` The drift alarm has reset it ${times} (shaded: later epochs).` : ""}${axis.left}`,
    x,
    y: { low: 0, high: highest > 0 ? Math.min(1, 1.15 * highest) : 1, tick: (value) => String(value), text: score },
    lines: [{ name: "threshold", values: series.threshold, style: "first", stepped: true }],
    zones: ends
      .slice(1)
      .map((end, index) => ({ x: [ends[index], end], style: index % 2 ? "epoch-even" : "epoch-odd" })),
    marks: game.events.flatMap((event) => {
      const place = axis.placeOf(event);
      return place === null ? [] : [{ x: place, form: MARK_FORMS[event.kind] ?? "bell", label: event.text }];
    }),
    table: {
      columns: [
        { name: game.unit, text: integer },
        { name: "time", text: time },
        { name: "threshold", text: score },
        { name: "epoch", text: integer },
      ],
      rows: series.step.map((step, at) => [step, series.at[at], series.threshold[at], series.epoch[at]]),
    },
  };
}

// How many points of the series "recent" spans: enough to be smooth, few enough to show what changed.
const recentPoints = (/** @type {Series} */ series) => Math.max(1, Math.round(series.step.length / 12));

/**
 * The share of expert calls among the recent requests before each point; unknown at the first points.
 * @param {Series} series
 * @returns {(number | null)[]}
 */
export function recentRates(series) {
  const reach = recentPoints(series);
  return series.step.map((step, at) => {
    if (at < reach) return null;
    return (series.expert_calls[at] - series.expert_calls[at - reach]) / (step - series.step[at - reach]);
  });
}

/**
 * How many requests are recent at the last point; null if too few for a meaningful share.
 * @param {Series} series
 */
export function recentRequests(series) {
  const last = series.step.length - 1;
  const requests = series.step[last] - series.step[Math.max(0, last - recentPoints(series))];
  return requests >= 20 ? requests : null;
}

/**
 * Tokens used relative to always asking the expert, at each point; null if tokens are not counted.
 * @param {Series} series
 * @returns {(number | null)[] | null}
 */
function tokenRatios({ spent_tokens: spent, always_tokens: always }) {
  if (!always.some((count) => count > 0)) return null;
  return always.map((count, at) => (count > 0 ? spent[at] / count : null));
}

/**
 * @param {Game} game
 * @param {AxisName} axisName
 * @returns {ChartSpec}
 */
export function ratesSpec(game, axisName) {
  if (!game.series) return { empty: LOADING };
  if (!game.series.step.length) return { empty: NO_REQUESTS };
  const axis = seriesAxis(game.series, axisName, game.unit);
  if (axis === null) return { empty: NO_TIMES };
  const { series } = axis;
  const rates = series.step.map((step, at) => (step ? series.expert_calls[at] / step : null));
  const recent = recentRates(series);
  const ratios = tokenRatios(series);
  /** @type {Line[]} */
  const lines = [
    { name: "expert calls", values: rates, style: "first" },
    { name: "recent calls", values: recent, style: "third" },
  ];
  /** @type {Column[]} */
  const columns = [...axis.columns, { name: "expert calls", text: integer }, { name: "rate", text: percent }];
  /** @type {Value[][]} */
  const rows = series.step.map((_, at) => [...axis.cells(at), series.expert_calls[at], rates[at]]);
  const requests = recentRequests(series);
  const lately = requests ? `, and for ${percent(recent.at(-1))} of the last ${integer(requests)}` : "";
  let sentence = `The expert was called for ${percent(rates.at(-1))} of all ${game.unit}s${lately}.`;
  if (game.expert_busy) {
    sentence += ` The expert is busy, so only ${percent(game.exploration_rate)} of the accepted drafts are audited.`;
  }
  let highest = 0;
  let latest = 0;
  if (ratios) {
    const estimated = game.savings?.tokens_saved_at_least === undefined ? "" : " (estimated)";
    sentence += ` Token usage is ${percent(ratios.at(-1))} of what always asking the expert would use${estimated}.`;
    highest = Math.max(...ratios.slice(Math.floor(ratios.length / 4)).map((ratio) => ratio ?? 0));
    latest = ratios.at(-1) ?? 0;
    lines.push({ name: "tokens", values: ratios, style: "second" });
    columns.push(
      { name: "tokens used", text: tokens },
      { name: "always the expert", text: tokens },
      { name: "ratio", text: percent },
    );
    for (const [at, row] of rows.entries()) row.push(series.spent_tokens[at], series.always_tokens[at], ratios[at]);
  }
  return {
    sentence: sentence + axis.left,
    x: axis.x,
    // A costly start is cut off, but never the present.
    y: { low: 0, high: Math.max(1, Math.min(1.5, 1.05 * highest), 1.05 * latest), tick: percent, text: percent },
    lines,
    rules: highest > 1 ? [{ y: 1, label: "always the expert", style: "quiet" }] : [],
    table: { columns, rows },
  };
}

/**
 * @param {Game} game
 * @param {AxisName} axisName
 * @returns {ChartSpec}
 */
export function certificateSpec(game, axisName) {
  const { epsilon, certificate } = game;
  if (!game.series) return { empty: LOADING };
  if (!game.series.step.length) return { empty: NO_REQUESTS };
  const axis = seriesAxis(game.series, axisName, game.unit);
  if (axis === null) return { empty: NO_TIMES };
  const { series } = axis;
  const highest = Math.max(0, ...series.average_upper.slice(Math.floor(series.step.length / 20)));
  const high = Math.max(1.3 * epsilon, Math.min(3 * epsilon, 1.1 * highest));
  /** @type {Line[]} */
  const lines = [{ name: "at most", values: series.average_upper, style: "first" }];
  /** @type {Column[]} */
  const columns = [...axis.columns, { name: "average loss at most", text: percentRoundedUp }];
  /** @type {Value[][]} */
  const rows = series.step.map((_, at) => [...axis.cells(at), series.average_upper[at]]);
  const best = certificate.best_average_upper ?? null;
  const least = best === null ? "" : ` From the same audits it could be ${percent(best)} at best.`;
  const actual = series.served_loss;
  if (actual) {
    lines.push({ name: "actual loss", values: actual, style: "second" });
    columns.push({ name: "actual loss", text: percent });
    for (const [at, row] of rows.entries()) row.push(actual[at]);
  }
  return {
    sentence:
      `The average loss per ${game.unit} so far, compared with always asking the expert, is at most ` +
      `${percentRoundedUp(certificate.average_upper)} with ${percent(certificate.confidence)} confidence at any time.${least} ` +
      `The limit is ${percent(epsilon)}.${axis.left}`,
    x: axis.x,
    y: {
      low: 0,
      high,
      tick: percent,
      text: (value, line) => (line.style === "first" ? percentRoundedUp(value) : percent(value)),
    },
    lines,
    zones: [{ y: [epsilon, high], style: "forbidden" }],
    rules: [{ y: epsilon, label: `limit ε = ${percent(epsilon)}`, style: "limit" }],
    table: { columns, rows },
  };
}

// Charts over the uncertainty score: the betting wealth of each threshold, and how the drafts are distributed.

import { integer, percent, plural, score, wealth } from "../numbers.js";
import { scoreInForce } from "../score_in_force.js";
import { linear, squareRoot } from "./scales.js";
import { LOADING } from "./time_charts.js";

/** @import { Game, WealthCurve } from "../types.js" */
/** @import { ChartSpec, Rule } from "./specs.js" */

/**
 * The scale of the axis: where scores or the threshold lie close to 0, one that spreads them there.
 * @param {Game} game
 */
function scoreScale(game) {
  const edges = game.uncertainty?.edges ?? [];
  const lastWidth = edges.length > 1 ? edges[edges.length - 1] - edges[edges.length - 2] : 1;
  const finerNearZero = edges.length > 1 && edges[1] - edges[0] < 0.9 * lastWidth;
  return finerNearZero || (game.threshold > 0 && game.threshold < 0.1) ? squareRoot : linear;
}

/**
 * @param {{ threshold: number }} where
 * @returns {Rule[]}
 */
function thresholdRules({ threshold }) {
  return threshold > 0 ? [{ x: threshold, label: `threshold ${score(threshold)}`, style: "threshold" }] : [];
}

/**
 * How close the next larger threshold is to being certified: its index in the curve (-1 if there is none), in words.
 * @param {Game} game
 * @param {WealthCurve} curve
 */
function nextThreshold(game, curve) {
  const goal = curve.goal;
  const index = curve.threshold.findIndex((value, at) => value > game.threshold && curve.log_wealth[at] < goal);
  const now = score(game.threshold);
  const lapsed = curve.log_wealth[curve.threshold.indexOf(game.threshold)] < goal;
  const until = game.alarm ? " unless the drift alarm resets it" : "";
  const held = lapsed ? `${now} was certified earlier and stays in use${until}.` : `Certified up to ${now}.`;
  if (index < 0) return { index, sentence: `${held} No larger threshold is waiting to be certified.` };
  const share = percent(Math.max(0, curve.log_wealth[index]) / goal);
  const progress = `has reached ${wealth(curve.log_wealth[index])} of the ${wealth(goal)} needed (${share} of the way on the logarithmic scale).`;
  if (game.threshold === 0) {
    return { index, sentence: `No threshold is certified yet. The wealth of the smallest one ${progress}` };
  }
  const next = score(curve.threshold[index]);
  const where = next === now ? "just above it" : `of the next threshold, ${next},`;
  return { index, sentence: `${held} The wealth ${where} ${progress}` };
}

/**
 * The part of the axis where the curve changes: after many requests, wealth falls within a narrow range.
 * @param {Game} game
 * @param {WealthCurve} curve
 * @param {number[]} powers of ten of the wealth
 * @param {number} low
 * @param {number} high
 */
function visibleRange(game, curve, powers, low, high) {
  if (scoreScale(game) === squareRoot) return [0, 1];
  const from = curve.threshold.findLast((_, index) => powers[index] >= high) ?? 0;
  const to = curve.threshold.find((_, index) => powers[index] <= low) ?? 1;
  const [left, right] = [Math.min(from, game.threshold), Math.max(to, game.threshold)];
  const edge = Math.max(0.05, 0.5 * (0.2 - (right - left)));
  return right - left > 0.5 ? [0, 1] : [Math.max(0, left - edge), Math.min(1, right + edge)];
}

/**
 * @param {Game} game
 * @returns {ChartSpec}
 */
export function wealthSpec(game) {
  const curve = game.wealth;
  if (!curve) {
    const without = game.stages?.length
      ? "A cascade bets on several rules at once, each with its own thresholds: there is no single curve to draw."
      : `The policy ${game.policy} does not place bets on each threshold.`;
    return { empty: game.series === null ? LOADING : without };
  }
  if (!curve.threshold.length) return { empty: "No bets yet." };
  const goal = curve.goal / Math.LN10;
  // Where α is divided among thresholds or epochs, the wealth needed is higher than 1/α.
  const bar = Math.abs(curve.goal + Math.log(game.alpha)) < 1e-9 ? "1/α = " : "";
  const powers = curve.log_wealth.map((value) => value / Math.LN10);
  const { index, sentence } = nextThreshold(game, curve);
  const low = Math.max(Math.min(0, ...powers), -1.6 * goal) - 0.1 * goal;
  const high = Math.max(1.5 * goal, Math.min(3 * goal, Math.max(...powers) + 0.15 * goal));
  const [from, to] = visibleRange(game, curve, powers, low, high);
  const ticks = [];
  for (let power = Math.ceil(low); power <= high; power += 1) ticks.push(power);
  return {
    sentence,
    x: {
      values: curve.threshold,
      low: from,
      high: to,
      scale: scoreScale(game),
      name: "threshold",
      tick: String,
      text: (at) => `threshold ${score(curve.threshold[at])}`,
      rest: index < 0 ? curve.threshold.length - 1 : index,
      resting: index < 0 ? "threshold 1" : game.threshold > 0 ? "just above the threshold" : "the smallest threshold",
    },
    y: {
      low,
      high,
      ticks,
      tick: (power) => wealth(power * Math.LN10),
      text: (_value, _line, at) => wealth(curve.log_wealth[at]),
    },
    lines: [{ name: "wealth", values: powers, style: "first" }],
    zones: [{ y: [goal, high], style: "allowed" }],
    rules: [{ y: goal, label: `certified at ${bar}${wealth(curve.goal)}`, style: "limit" }, ...thresholdRules(game)],
    table: {
      columns: [
        { name: "threshold", text: score },
        { name: "wealth", text: wealth },
        { name: "logarithm of the wealth", text: (value) => value?.toFixed(3) ?? "" },
      ],
      rows: curve.threshold.map((value, at) => [value, curve.log_wealth[at], curve.log_wealth[at]]),
    },
  };
}

/**
 * @param {Game} game
 * @returns {ChartSpec}
 */
export function uncertaintySpec(game) {
  const histogram = game.uncertainty;
  if (!histogram) return { empty: LOADING };
  const { edges } = histogram;
  const totals = histogram.kept.map((count, index) => count + histogram.called[index]);
  const all = totals.reduce((sum, count) => sum + count, 0);
  if (all === 0) return { empty: "No drafts scored yet." };
  const kept = histogram.kept.reduce((sum, count) => sum + count, 0);
  const learned = scoreInForce(game) !== "uncertainty";
  return {
    sentence:
      `Of ${plural(all, "draft")}, ${integer(kept)} were kept and ${integer(all - kept)} went to the expert. ` +
      (learned
        ? "A learned score decides: the chart is about the score of the route itself."
        : "Drafts below the threshold are kept, except for a random sample that the expert audits."),
    x: {
      values: totals.map((_, index) => (edges[index] + edges[index + 1]) / 2),
      low: 0,
      high: 1,
      scale: scoreScale(game),
      name: "uncertainty",
      tick: String,
      text: (index) => `uncertainty ${score(edges[index])} to ${score(edges[index + 1])}`,
      rest: totals.indexOf(Math.max(...totals)),
      resting: "all drafts",
    },
    y: { low: 0, high: 1.1 * Math.max(...totals), tick: integer, text: integer },
    bars: {
      edges,
      stacks: [
        { name: "kept", values: histogram.kept, style: "first", resting: integer(kept) },
        { name: "expert called", values: histogram.called, style: "second", resting: integer(all - kept) },
      ],
    },
    lines: [],
    rules: learned ? [] : thresholdRules(game),
    table: {
      columns: [
        { name: "from", text: score },
        { name: "to", text: score },
        { name: "kept", text: integer },
        { name: "expert called", text: integer },
      ],
      rows: totals.map((_, index) => [edges[index], edges[index + 1], histogram.kept[index], histogram.called[index]]),
    },
  };
}

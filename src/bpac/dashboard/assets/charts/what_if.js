// The estimated expert call rate at other limits.

import { percent } from "../numbers.js";
import { LOADING } from "./time_charts.js";

/** @import { Game } from "../types.js" */
/** @import { ChartSpec } from "./specs.js" */

/**
 * @param {Game} game
 * @returns {ChartSpec}
 */
export function whatIfSpec(game) {
  const rows = game.what_if;
  if (!rows) return { empty: game.series === null ? LOADING : "No estimate yet." };
  if (!rows.length && game.stages?.length) return { empty: "Other limits are not estimated for cascades." };
  if (!rows.length) return { empty: "Too few requests have been graded to estimate other limits." };
  const limits = rows.map((row) => row.epsilon);
  const closest = limits.reduce(
    (best, value, at) => (Math.abs(value - game.epsilon) < Math.abs(limits[best] - game.epsilon) ? at : best),
    0,
  );
  const now = rows[closest];
  const edge = 0.02 * (Math.max(...limits) - Math.min(...limits));
  return {
    sentence:
      `Estimated from the ${game.unit}s graded so far: with a limit of ${percent(now.epsilon)} and the right threshold from ` +
      `the start, the expert would be called for about ${percent(now.expert_call_rate)} of all ${game.unit}s ` +
      `(95\u00a0% interval: ${percent(now.low)} to ${percent(now.high)}). This is not a guarantee` +
      `${game.scores.length > 1 ? ", and does without learned scores." : "."}`,
    x: {
      values: limits,
      low: Math.max(0, Math.min(...limits) - edge),
      high: Math.max(...limits) + edge,
      name: "limit ε",
      tick: percent,
      text: (at) => `limit ${percent(limits[at])}`,
      rest: closest,
    },
    y: {
      low: 0,
      high: 1,
      tick: percent,
      text: (value, _, at) => `${percent(value)} (${percent(rows[at].low)} to ${percent(rows[at].high)})`,
    },
    lines: [
      {
        name: "expert calls, estimated",
        values: rows.map((row) => row.expert_call_rate),
        style: "first",
        dots: true,
        band: { low: rows.map((row) => row.low), high: rows.map((row) => row.high) },
      },
    ],
    rules: [{ x: game.epsilon, label: "current limit", style: "threshold" }],
    table: {
      columns: ["limit ε", "expert calls, estimated", "from", "to"].map((name) => ({ name, text: percent })),
      rows: rows.map((row) => [row.epsilon, row.expert_call_rate, row.low, row.high]),
    },
  };
}
